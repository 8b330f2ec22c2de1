#include "vk-provider/api/authn_rules.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

namespace spillway::api {
namespace {

constexpr std::string_view kAuthenticated = "system:authenticated";

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::optional<base::Secret> bearer_of(std::string_view authorization) {
  constexpr std::string_view kSpace = " \t";
  const size_t begin = authorization.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return std::nullopt;
  authorization.remove_prefix(begin);
  const size_t scheme_end = authorization.find(' ');
  if (scheme_end == std::string_view::npos) return std::nullopt;
  if (!equal_ignoring_case(authorization.substr(0, scheme_end), "bearer")) return std::nullopt;
  std::string_view token = authorization.substr(scheme_end + 1);
  token = token.substr(0, token.find_first_of(kSpace));
  if (token.empty()) return std::nullopt;
  return base::Secret(std::string(token));
}

kube::UserInfo user_of_certificate(std::string common_name, std::vector<std::string> organizations) {
  kube::UserInfo user;
  user.name = std::move(common_name);
  user.groups = std::move(organizations);
  if (std::ranges::find(user.groups, kAuthenticated) == user.groups.end()) user.groups.emplace_back(kAuthenticated);
  return user;
}

kube::UserInfo anonymous_user() {
  kube::UserInfo user;
  user.name = "system:anonymous";
  user.groups = {"system:unauthenticated"};
  return user;
}

std::string_view verb_of(std::string_view method) {
  if (method == "POST") return "create";
  if (method == "GET") return "get";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return "delete";
  return "";
}

std::vector<std::string> subresources_of(std::string_view first_segment) {
  if (first_segment == "pods" || first_segment == "runningpods") return {"pods", "proxy"};
  if (first_segment == "healthz") return {"healthz", "proxy"};
  if (first_segment == "configz") return {"configz", "proxy"};
  if (first_segment == "stats") return {"stats"};
  if (first_segment == "metrics") return {"metrics"};
  if (first_segment == "logs") return {"log"};
  if (first_segment == "checkpoint") return {"checkpoint"};
  if (first_segment == "statusz") return {"statusz"};
  if (first_segment == "flagz") return {"configz"};
  return {"proxy"};
}

std::string forbidden_text(const kube::UserInfo& user, const AccessAttributes& wanted) {
  return fmt::format("Forbidden (user={}, verb={}, resource=nodes, subresource(s)=[{}])\n", user.name, wanted.verb,
                     fmt::join(wanted.subresources, " "));
}

std::string authorization_error_text(const kube::UserInfo& user, const AccessAttributes& wanted,
                                     std::string_view subresource, std::string_view why) {
  return fmt::format("Authorization error (user={}, verb={}, resource=nodes, subresource={}): {}\n", user.name,
                     wanted.verb, subresource, why);
}

}  // namespace spillway::api
