#include "test/support/api_model/selector.hpp"

#include <algorithm>
#include <ranges>

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

std::vector<std::string> split_dots(std::string_view field) {
  std::vector<std::string> out;
  for (const auto part : std::views::split(field, '.')) out.emplace_back(part.begin(), part.end());
  return out;
}

/// What stands there says this; what is absent says nothing.
bool says(const json& part, const std::vector<std::string>& path, const std::string& text) {
  const json* node = &part;
  for (const std::string& member : path) {
    const auto it = node->is_object() ? node->find(member) : node->end();
    if (!node->is_object() || it == node->end()) return text.empty();
    node = &*it;
  }
  return node->is_string() ? node->get_ref<const std::string&>() == text : node->dump() == text;
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
    term.path = split_dots(field);
    term.slot = slot_of(term.path.front());
    if (term.slot != Slot::kRest) term.path.erase(term.path.begin());
    out.terms_.push_back(std::move(term));
  }
  auto labels = split(target.parameter("labelSelector"));
  if (!labels) return refuse(std::move(labels.error()));
  for (auto& [label, term] : *labels) {
    term.path = {"labels", label};
    out.terms_.push_back(std::move(term));
  }
  return out;
}

bool Selector::matches(const Object& object) const {
  if (!ns_.empty() && object.ns() != ns_) return false;
  return std::ranges::all_of(
      terms_, [&](const Term& term) { return says(object.part(term.slot), term.path, term.value) == term.equal; });
}

}  // namespace spillway::test::api_model
