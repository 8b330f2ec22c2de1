// Keys, signing requests and certificates as PEM: made, and read as far as a server needs to know its own.
//
// Pure but for the random bytes of a key. Does not verify anybody: tls does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/base/secret.hpp"

namespace spillway::net {

/// Whom a certificate speaks for.
struct CertificateSubject {
  CertificateSubject() = default;
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;  // without brackets
};

/// What stands in a certificate.
struct CertificateFacts {
  CertificateFacts() = default;
  std::string subject;  // for people: O=system:nodes, CN=system:node:burst
  std::string issuer;
  base::WallTime not_before;
  base::WallTime not_after;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
};

/// A new EC key on P-256, as PKCS #8.
base::Result<base::Secret> make_key();
/// PKCS #10. kInvalid for a subject that cannot be written, such as an address that is none.
base::Result<std::string> make_signing_request(const base::Secret& key_pem, const CertificateSubject& subject);
/// For servers, not a CA.
base::Result<std::string> self_sign(const base::Secret& key_pem, const CertificateSubject& subject,
                                    base::WallTime not_before, base::WallTime not_after);
/// Of the first certificate of the text. kInvalid if there is none.
base::Result<CertificateFacts> read_certificate(std::string_view pem);

}  // namespace spillway::net
