#include "test/support/api_model/selector.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

/// What can be selected by (ToSelectableFields of the resource's strategy).
bool selectable(const Resource& resource, std::string_view field) {
  if (field == "metadata.name" || field == "metadata.namespace") return true;
  if (resource.plural == "pods") {
    static constexpr std::array kFields = {"spec.nodeName",           "spec.restartPolicy", "spec.schedulerName",
                                           "spec.serviceAccountName", "status.phase",       "status.podIP"};
    return std::ranges::find(kFields, field) != kFields.end();
  }
  if (resource.plural == "nodes") return field == "spec.unschedulable";
  if (resource.plural == "events") {
    static constexpr std::array kFields = {"involvedObject.kind",
                                           "involvedObject.namespace",
                                           "involvedObject.name",
                                           "involvedObject.uid",
                                           "reason",
                                           "type"};
    return std::ranges::find(kFields, field) != kFields.end();
  }
  return resource.plural == "namespaces" && field == "status.phase";
}

std::string dotted_to_pointer(std::string text) {
  std::ranges::replace(text, '.', '/');
  return "/" + text;
}

/// A label's key has dots and slashes of its own.
std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::string text_at(const json& value, const json::json_pointer& path) {
  if (!value.contains(path)) return {};
  const json& found = value.at(path);
  return found.is_string() ? found.get<std::string>() : found.dump();
}

}  // namespace

Outcome<std::vector<std::pair<std::string, Selector::Term>>> Selector::split(std::string_view text) {
  std::vector<std::pair<std::string, Term>> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    const size_t at = part.find_first_of("=!");
    if (at == std::string_view::npos || at == 0) {
      return refuse(bad_request(fmt::format("invalid selector: '{}'; can't understand '{}'", text, part)));
    }
    const std::string_view rest = part.substr(at);
    const size_t width = rest.starts_with("!=") || rest.starts_with("==") ? 2 : 1;
    Term term;
    term.equal = rest.front() == '=';
    term.value = rest.substr(width);
    out.emplace_back(part.substr(0, at), std::move(term));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Outcome<Selector> Selector::parse(const Target& target) {
  Selector out;
  out.ns_ = target.ns;
  auto fields = split(target.parameter("fieldSelector"));
  if (!fields) return refuse(std::move(fields.error()));
  for (auto& [field, term] : *fields) {
    if (!selectable(*target.resource, field)) {
      return refuse(bad_request(fmt::format("field label not supported: {}", field)));
    }
    term.path = json::json_pointer(dotted_to_pointer(field));
    out.terms_.push_back(std::move(term));
  }
  auto labels = split(target.parameter("labelSelector"));
  if (!labels) return refuse(std::move(labels.error()));
  for (auto& [label, term] : *labels) {
    term.path = json::json_pointer("/metadata/labels/" + escaped(label));
    out.terms_.push_back(std::move(term));
  }
  return out;
}

bool Selector::matches(const Object& object) const {
  if (!ns_.empty() && object.ns() != ns_) return false;
  return std::ranges::all_of(
      terms_, [&](const Term& term) { return (text_at(object.value(), term.path) == term.value) == term.equal; });
}

}  // namespace spillway::test::api_model
