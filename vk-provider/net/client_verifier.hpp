// Who a TLS client says it is, and whether a CA that we trust says so, too. Of net/ alone.
//
// Owned by a server; reactor thread only. Looks anew each time, so that a certificate that expires on a connection that
// lasts is no longer believed. Knows no revocation lists.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <openssl/ssl.h>

#include "vk-provider/base/error.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::net {

class ClientVerifier {
 public:
  /// `ca_pem`: one or more certificates; each is trusted, also if it is an intermediate one, as Go does. kInvalid if it
  /// cannot be read.
  static base::Result<std::unique_ptr<ClientVerifier>> make(const std::string& ca_pem);

  /// Empty if the client showed no certificate.
  std::optional<PeerCertificate> look_at(const SSL* ssl) const;

 private:
  struct FreeStore {
    void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  };

  std::unique_ptr<X509_STORE, FreeStore> store_;
};

}  // namespace spillway::net
