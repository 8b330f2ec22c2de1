// Certificates for tests of TLS, made on the spot: no key lies in the repository.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/base/secret.hpp"

namespace spillway::test {

struct Certificate {
  std::string cert_pem;
  base::Secret key_pem;
};

/// Signs itself.
Certificate make_ca(const std::string& name);
/// `alt_names` as OpenSSL writes them: `DNS:cluster.test`, `IP:127.0.0.1`.
Certificate issue(const Certificate& ca, const std::string& name, const std::vector<std::string>& alt_names);

}  // namespace spillway::test
