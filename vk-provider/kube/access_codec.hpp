// What the API server is asked about callers and certificates: TokenReview, SubjectAccessReview,
// CertificateSigningRequest.
//
// Pure functions and values. An answer that broke off is kInvalid, never a yes. The body of a TokenReview holds the
// token: it is sent and forgotten.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/base/secret.hpp"

namespace spillway::kube {

/// Who somebody is to the API server.
struct UserInfo {
  UserInfo() = default;
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool operator==(const UserInfo&) const = default;
};

/// What a TokenReview came to.
struct TokenVerdict {
  TokenVerdict() = default;
  std::optional<UserInfo> user;  // empty: the token is not valid
};

/// May this user do that to a node?
struct AccessQuestion {
  AccessQuestion() = default;
  UserInfo user;
  std::string verb;         // get, create ...
  std::string node;         // the name of the node
  std::string subresource;  // of nodes: proxy, metrics ...
};

struct SigningRequest {
  SigningRequest() = default;
  std::string name_prefix;  // metadata.generateName
  std::string request_pem;  // PKCS #10
  std::string signer;       // spec.signerName
};

/// How far a CertificateSigningRequest is.
struct SigningState {
  SigningState() = default;
  enum class Step : std::uint8_t {
    kPending,  // nobody has approved it, or the signer has not come to it
    kRefused,  // denied, or failed: a new one is needed
    kIssued,
  };
  std::string name;
  Step step = Step::kPending;
  std::string message;          // why it was refused; for people
  std::string certificate_pem;  // kIssued: the chain, leaf first
};

std::string encode_token_review(const base::Secret& token);
base::Result<TokenVerdict> decode_token_review(std::string_view body);

std::string encode_access_review(const AccessQuestion& question);
/// status.allowed.
base::Result<bool> decode_access_review(std::string_view body);

std::string encode_signing_request(const SigningRequest& request);
base::Result<SigningState> decode_signing_request(std::string_view body);

}  // namespace spillway::kube
