// Who a request comes from, and what it asks to do: the kubelet's rules for its API. Pure.
//
// Source of the rules: Kubernetes' pkg/kubelet/server/auth.go and its authenticators, version 1.36.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/secret.hpp"
#include "vk-provider/kube/access_codec.hpp"

namespace spillway::api {

/// What of a request says who sends it.
struct Credentials {
  Credentials() = default;
  std::optional<kube::UserInfo> certificate;  // of a client certificate that a client CA of the cluster has signed
  bool certificate_refused = false;           // there was one, and no client CA of the cluster has signed it
  std::optional<base::Secret> bearer;
};

/// The token of `Authorization: Bearer <token>`; empty for other schemes and for none.
std::optional<base::Secret> bearer_of(std::string_view authorization);

/// The groups of a user who was authenticated, by certificate as by token.
kube::UserInfo user_of_certificate(std::string common_name, std::vector<std::string> organizations);
kube::UserInfo anonymous_user();

/// What a request asks to do to a node, in the API server's words.
struct AccessAttributes {
  AccessAttributes() = default;
  std::string node;
  std::string verb;  // empty for a method that has none
  /// Of these, one must be allowed; never empty.
  std::vector<std::string> subresources;
};

std::string_view verb_of(std::string_view method);
/// By the first segment of the path. The finer one comes first: whoever may do all may do that, too.
std::vector<std::string> subresources_of(std::string_view first_segment);

/// The kubelet's words.
std::string forbidden_text(const kube::UserInfo& user, const AccessAttributes& wanted);
std::string authorization_error_text(const kube::UserInfo& user, const AccessAttributes& wanted,
                                     std::string_view subresource, std::string_view why);

}  // namespace spillway::api
