#include "test/support/api_model/merge.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kOrderPrefix = "$setElementOrder/";
constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList/";

/// patchMergeKey of the lists that merge (k8s.io/api/core/v1/types.go); empty for a list of scalars; no value for a
/// list that is taken as a whole, such as containerStatuses and taints.
std::optional<std::string_view> merge_key_of(std::string_view list) {
  using Pair = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kKeys = {Pair{"conditions", "type"},
                                       Pair{"addresses", "type"},
                                       Pair{"podIPs", "ip"},
                                       Pair{"hostIPs", "ip"},
                                       Pair{"ownerReferences", "uid"},
                                       Pair{"finalizers", ""},
                                       Pair{"podCIDRs", ""},
                                       Pair{"containers", "name"},
                                       Pair{"initContainers", "name"},
                                       Pair{"ephemeralContainers", "name"},
                                       Pair{"volumes", "name"},
                                       Pair{"env", "name"},
                                       Pair{"ports", "containerPort"},
                                       Pair{"volumeMounts", "mountPath"},
                                       Pair{"volumeDevices", "devicePath"},
                                       Pair{"imagePullSecrets", "name"},
                                       Pair{"hostAliases", "ip"},
                                       Pair{"topologySpreadConstraints", "topologyKey"},
                                       Pair{"schedulingGates", "name"},
                                       Pair{"resourceClaims", "name"},
                                       Pair{"resourceClaimStatuses", "name"},
                                       Pair{"allocatedResourcesStatus", "name"}};
  const auto it = std::ranges::find(kKeys, list, &Pair::first);
  return it == kKeys.end() ? std::nullopt : std::optional(it->second);
}

const json& key_value(const json& item, std::string_view key) {
  static const json nothing;
  if (key.empty() || !item.is_object()) return item;
  const auto it = item.find(key);
  return it == item.end() ? nothing : *it;
}

std::ptrdiff_t index_of(const json& list, const json& item, std::string_view key) {
  const json& wanted = key_value(item, key);
  const auto it = std::ranges::find_if(list, [&](const json& one) { return key_value(one, key) == wanted; });
  return it == list.end() ? -1 : it - list.begin();
}

void sort_by(json& list, const json& order, std::string_view key) {
  std::vector<std::pair<std::ptrdiff_t, size_t>> places;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::ptrdiff_t at = index_of(order, list[i], key);
    places.emplace_back(at < 0 ? std::ssize(order) : at, i);
  }
  std::ranges::sort(places);
  json sorted = json::array();
  for (const auto& [place, i] : places) sorted.push_back(std::move(list[i]));
  list = std::move(sorted);
}

/// What the patch names stands in the patch's order; what only the server has keeps its place as far as that goes.
json in_order(const json& merged, const json& patch_order, const json& server_order, std::string_view key) {
  json named = json::array();
  json others = json::array();
  for (const json& item : merged) (index_of(patch_order, item, key) < 0 ? others : named).push_back(item);
  sort_by(named, patch_order, key);
  sort_by(others, server_order, key);
  json out = json::array();
  size_t i = 0;
  size_t j = 0;
  while (i < others.size() || j < named.size()) {
    bool take_other = j >= named.size();
    if (!take_other && i < others.size()) {
      const std::ptrdiff_t left = index_of(server_order, others[i], key);
      const std::ptrdiff_t right = index_of(server_order, named[j], key);
      take_other = left >= 0 && right >= 0 && left < right;
    }
    out.push_back(std::move(take_other ? others[i++] : named[j++]));
  }
  return out;
}

/// A value that is new: nulls and directives mean nothing in it. False if it is itself a directive.
bool strip(json& value) {
  if (value.is_object()) {
    if (value.contains(kDirective)) return false;
    for (auto it = value.begin(); it != value.end();) {
      it = it->is_null() || !strip(*it) ? value.erase(it) : std::next(it);
    }
  } else if (value.is_array()) {
    json kept = json::array();
    for (json& item : value) {
      if (strip(item)) kept.push_back(std::move(item));
    }
    value = std::move(kept);
  }
  return true;
}

Outcome<void> merge_map(json& into, json patch);

ApiError no_merge_key(std::string_view key) {
  return {500, "InternalError", fmt::format("map: does not contain declared merge key: {}", key)};
}

Outcome<void> merge_items(json& into, const json& patch, std::string_view key) {
  for (const json& item : patch) {
    if (!item.is_object() || !item.contains(key)) return refuse(no_merge_key(key));
    const std::ptrdiff_t at = index_of(into, item, key);
    if (at < 0) {
      json fresh = item;
      if (strip(fresh)) into.push_back(std::move(fresh));
    } else if (auto merged = merge_map(into[static_cast<size_t>(at)], item); !merged) {
      return merged;
    }
  }
  return {};
}

/// Takes the items with $patch out of a list and carries them out.
Outcome<void> carry_out_directives(json& into, json& patch, std::string_view key) {
  json kept = json::array();
  bool replace = false;
  for (json& item : patch) {
    const std::string directive = item.is_object() ? item.value(kDirective, "") : "";
    if (directive == "delete") {
      if (!item.contains(key)) return refuse(no_merge_key(key));
      for (std::ptrdiff_t at = index_of(into, item, key); at >= 0; at = index_of(into, item, key)) {
        into.erase(static_cast<size_t>(at));
      }
    } else if (directive == "replace") {
      replace = true;
    } else {
      kept.push_back(std::move(item));
    }
  }
  patch = std::move(kept);
  if (replace) into = std::exchange(patch, json::array());
  return {};
}

Outcome<void> merge_list(json& into, json patch, std::string_view key) {
  if (into.empty() && patch.empty()) return {};
  if (!key.empty()) {
    if (auto done = carry_out_directives(into, patch, key); !done) return done;
  }
  const json server_order = into;
  if (!key.empty()) {
    if (auto merged = merge_items(into, patch, key); !merged) return merged;
  } else {
    for (const json& item : patch) {
      if (index_of(into, item, key) < 0) into.push_back(item);
    }
  }
  into = in_order(into, patch, server_order, key);
  return {};
}

void delete_scalars(json& into, const json& gone) {
  if (!into.is_array()) return;
  json kept = json::array();
  for (json& item : into) {
    if (index_of(gone, item, {}) < 0) kept.push_back(std::move(item));
  }
  into = std::move(kept);
}

/// Merges the lists for which the patch gives an order, and takes both out of the patch.
Outcome<void> merge_ordered_lists(json& into, json& patch) {
  std::vector<std::string> orders;
  for (const auto& [key, value] : patch.items()) {
    if (key.starts_with(kOrderPrefix)) orders.push_back(key);
  }
  for (const std::string& directive : orders) {
    const json order = patch[directive];
    patch.erase(directive);
    const std::string list = directive.substr(kOrderPrefix.size());
    const std::string_view key = merge_key_of(list).value_or("");
    const json before = into.value(list, json::array());
    json merged = before;
    if (patch.contains(list)) {
      if (auto done = merge_list(merged, patch[list], key); !done) return done;
      patch.erase(list);
    } else if (!into.contains(list)) {
      continue;
    }
    into[list] = in_order(merged, order, before, key);
  }
  return {};
}

Outcome<void> merge_member(json& into, const std::string& key, json& value) {
  if (value.is_null()) {
    into.erase(key);
    return {};
  }
  const auto known = into.find(key);
  if (known == into.end() || known->type() != value.type()) {
    if (strip(value)) {
      into[key] = std::move(value);
    } else {
      into.erase(key);
    }
    return {};
  }
  if (value.is_object()) return merge_map(*known, std::move(value));
  const auto merge_key = value.is_array() ? merge_key_of(key) : std::nullopt;
  if (merge_key) return merge_list(*known, std::move(value), *merge_key);
  *known = std::move(value);
  return {};
}

Outcome<void> merge_map(json& into, json patch) {
  if (const std::string directive = patch.value(kDirective, ""); !directive.empty()) {
    patch.erase(kDirective);
    into = directive == "replace" ? std::move(patch) : json::object();
    return {};
  }
  if (patch.contains(kRetainKeys)) {
    const json retained = patch[kRetainKeys];
    patch.erase(kRetainKeys);
    for (auto it = into.begin(); it != into.end();) {
      it = index_of(retained, it.key(), {}) < 0 ? into.erase(it) : std::next(it);
    }
  }
  if (auto merged = merge_ordered_lists(into, patch); !merged) return merged;
  for (auto& [key, value] : patch.items()) {
    if (key.starts_with(kDeletePrefix)) {
      if (const auto list = into.find(key.substr(kDeletePrefix.size())); list != into.end()) {
        delete_scalars(*list, value);
      }
    } else if (auto merged = merge_member(into, key, value); !merged) {
      return merged;
    }
  }
  return {};
}

/// Merges member by member, so that only the parts that the patch names are copied.
template <class Merge>
Outcome<void> merge_parts(Draft& into, json patch, Merge merge) {
  patch.erase("kind");
  patch.erase("apiVersion");
  for (auto& [key, value] : patch.items()) {
    const Slot slot = slot_of(key);
    json& part = into.edit(slot);
    json holder = json::object();
    if (slot != Slot::kRest) {
      if (!part.is_null()) holder[key] = std::move(part);
    } else if (!part.is_null()) {
      holder = std::move(part);
    }
    json one = json::object();
    one[key] = std::move(value);
    if (Outcome<void> merged = merge(holder, std::move(one)); !merged) return merged;
    if (slot == Slot::kRest) {
      part = std::move(holder);
    } else {
      part = holder.contains(key) ? std::move(holder[key]) : json();
    }
  }
  return {};
}

}  // namespace

void json_merge(Draft& into, json patch) {
  (void)merge_parts(into, std::move(patch), [](json& part, json one) -> Outcome<void> {
    part.merge_patch(one);
    return {};
  });
}

Outcome<void> strategic_merge(Draft& into, json patch) {
  return merge_parts(into, std::move(patch), [](json& part, json one) { return merge_map(part, std::move(one)); });
}

}  // namespace spillway::test::api_model
