// Certificates for tests of TLS, made on the spot: no key lies in the repository.
#pragma once

#include <chrono>
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
/// For a client: `usage` as OpenSSL writes it, `clientAuth`; empty for any. `lifetime` may be over: -1h.
Certificate issue_client(const Certificate& ca, const std::string& name, const std::vector<std::string>& organizations,
                         const std::string& usage = "clientAuth",
                         std::chrono::seconds lifetime = std::chrono::hours(24));

}  // namespace spillway::test
