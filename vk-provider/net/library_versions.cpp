#include "vk-provider/net/library_versions.hpp"

#include <openssl/crypto.h>

namespace spillway::net {

std::string openssl_version() { return OpenSSL_version(OPENSSL_VERSION); }

}  // namespace spillway::net
