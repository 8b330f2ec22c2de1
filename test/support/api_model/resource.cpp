#include "test/support/api_model/resource.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace spillway::test::api_model {
namespace {

constexpr Resource plain(std::string_view plural, std::string_view kind) {
  Resource out;
  out.plural = plural;
  out.kind = kind;
  out.api_version = "v1";
  return out;
}

constexpr Resource pods() {
  Resource out = plain("pods", "Pod");
  out.has_status = out.returns_deleted = out.has_generation = true;
  return out;
}

constexpr Resource nodes() {
  Resource out = plain("nodes", "Node");
  out.namespaced = false;
  out.has_status = out.managed = true;
  return out;
}

constexpr Resource events() {
  Resource out = plain("events", "Event");
  out.create_on_update = true;
  return out;
}

constexpr Resource namespaces() {
  Resource out = plain("namespaces", "Namespace");
  out.namespaced = false;
  out.has_status = out.returns_deleted = true;
  return out;
}

constexpr Resource leases() {
  Resource out = plain("leases", "Lease");
  out.group = "coordination.k8s.io";
  out.api_version = "coordination.k8s.io/v1";
  out.unconditional_update = false;
  out.create_on_update = true;
  return out;
}

constexpr Resource endpoint_slices() {
  Resource out = plain("endpointslices", "EndpointSlice");
  out.group = "discovery.k8s.io";
  out.api_version = "discovery.k8s.io/v1";
  out.has_generation = true;
  return out;
}

constexpr Resource budgets() {
  Resource out = plain("poddisruptionbudgets", "PodDisruptionBudget");
  out.group = "policy";
  out.api_version = "policy/v1";
  out.has_status = true;
  return out;
}

constexpr std::array kResources = {pods(),
                                   nodes(),
                                   leases(),
                                   events(),
                                   namespaces(),
                                   plain("configmaps", "ConfigMap"),
                                   plain("secrets", "Secret"),
                                   plain("services", "Service"),
                                   endpoint_slices(),
                                   plain("serviceaccounts", "ServiceAccount"),
                                   budgets()};

std::string decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ec == std::errc()) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    out.emplace_back(decoded(pair.substr(0, equals)), decoded(pair.substr(std::min(equals + 1, pair.size()))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> out;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const size_t end = std::min(path.find('/'), path.size());
    out.push_back(decoded(path.substr(0, end)));
    path.remove_prefix(end);
  }
  return out;
}

const Resource* find_resource(std::string_view plural, std::string_view group) {
  const auto it =
      std::ranges::find_if(kResources, [&](const Resource& r) { return r.plural == plural && r.group == group; });
  return it == kResources.end() ? nullptr : &*it;
}

}  // namespace

std::string Resource::qualified() const {
  return group.empty() ? std::string(plural) : std::string(plural) + "." + std::string(group);
}

std::string Resource::qualified_kind() const {
  return group.empty() ? std::string(kind) : std::string(kind) + "." + std::string(group);
}

std::span<const Resource> resources() { return kResources; }

const Resource& resource_named(std::string_view plural) {
  const auto it = std::ranges::find(kResources, plural, &Resource::plural);
  if (it == kResources.end()) throw std::invalid_argument("the API server model has no " + std::string(plural));
  return *it;
}

std::string_view Target::parameter(std::string_view wanted) const {
  for (const auto& [key, value] : query) {
    if (key == wanted) return value;
  }
  return {};
}

std::string Target::key() const { return ns.empty() ? name : ns + "/" + name; }

std::optional<Target> parse_target(std::string_view target) {
  Target out;
  const size_t question = std::min(target.find('?'), target.size());
  out.query = parse_query(target.substr(std::min(question + 1, target.size())));
  const std::vector<std::string> path = segments_of(target.substr(0, question));

  // api/v1 or apis/<group>/v1; then [namespaces/<ns>/]<resource>[/<name>[/<subresource>]].
  size_t at = 0;
  std::string group;
  if (path.size() > 2 && path[0] == "api" && path[1] == "v1") {
    at = 2;
  } else if (path.size() > 3 && path[0] == "apis" && path[2] == "v1") {
    group = path[1];
    at = 3;
  } else {
    return std::nullopt;
  }
  if (path[at] == "namespaces" && path.size() > at + 2 && path[at + 2] != "status") {
    out.ns = path[at + 1];
    at += 2;
  }
  out.resource = find_resource(path[at], group);
  if (out.resource == nullptr || path.size() > at + 3) return std::nullopt;
  if (path.size() > at + 1) out.name = path[at + 1];
  if (path.size() > at + 2) out.subresource = path[at + 2];
  const bool needs_namespace = out.resource->namespaced && !out.name.empty();
  if (out.resource->namespaced ? needs_namespace && out.ns.empty() : !out.ns.empty()) return std::nullopt;
  return out;
}

}  // namespace spillway::test::api_model
