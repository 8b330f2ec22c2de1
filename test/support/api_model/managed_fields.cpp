#include "test/support/api_model/managed_fields.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

// A path is its segments as FieldsV1 writes them (f:name, k:{"type":"Ready"}), each after a newline.
using Paths = std::set<std::string>;
using Leaves = std::map<std::string, json>;

struct Entry {
  std::string manager;
  std::string operation;  // Apply, Update
  std::string subresource;
  std::string api_version;
  std::string time;
  Paths paths;
};

/// The key of a list that merges; empty for one that is a value.
std::string key_of(std::string_view path) {
  return path.ends_with("\nf:conditions") || path.ends_with("\nf:addresses") ? "type" : "";
}

std::string item_segment(const std::string& key, const json& item) {
  return "\nk:" + json{{key, item.value(key, "")}}.dump();
}

void add_leaves(const json& value, const std::string& path, Leaves& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, child] : value.items()) add_leaves(child, path + "\nf:" + name, out);
    return;
  }
  const std::string key = value.is_array() ? key_of(path) : "";
  if (key.empty()) {
    out[path] = value;
    return;
  }
  for (const json& item : value) {
    const std::string at = path + item_segment(key, item);
    out[at] = true;
    add_leaves(item, at, out);
  }
}

/// Without what nobody owns: identity and what the server keeps itself.
Leaves leaves_of(json object) {
  object.erase("kind");
  object.erase("apiVersion");
  if (object.contains("metadata")) {
    for (const char* field : {"name", "namespace", "creationTimestamp", "uid", "generation", "managedFields",
                              "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
      object["metadata"].erase(field);
    }
    if (object["metadata"].empty()) object.erase("metadata");
  }
  Leaves out;
  for (const auto& [name, child] : object.items()) add_leaves(child, "\nf:" + name, out);
  return out;
}

std::vector<std::string> segments_of(const std::string& path) {
  std::vector<std::string> out;
  size_t at = 1;
  while (at <= path.size()) {
    const size_t end = std::min(path.find('\n', at), path.size());
    out.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

json encode_paths(const Paths& paths) {
  json out = json::object();
  const auto node_of = [&](const std::string& path) {
    json* node = &out;
    for (const std::string& segment : segments_of(path)) {
      node = &(*node)[segment];
      if (node->is_null()) *node = json::object();
    }
    return node;
  };
  for (const std::string& path : paths) node_of(path);
  for (const std::string& path : paths) {
    if (json* node = node_of(path); !node->empty()) (*node)["."] = json::object();
  }
  return out;
}

void decode_paths(const json& node, const std::string& path, Paths& out) {
  if (node.empty() || node.contains(".")) out.insert(path);
  for (const auto& [segment, child] : node.items()) {
    if (segment != ".") decode_paths(child, path + "\n" + segment, out);
  }
}

std::vector<Entry> entries_of(const json& object) {
  std::vector<Entry> out;
  for (const json& field : object.value(json::json_pointer("/metadata/managedFields"), json::array())) {
    Entry entry{field["manager"],    field["operation"], field.value("subresource", ""),
                field["apiVersion"], field["time"],      {}};
    decode_paths(field["fieldsV1"], "", entry.paths);
    out.push_back(std::move(entry));
  }
  return out;
}

void store_entries(json& object, std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.paths.empty(); });
  std::ranges::sort(entries, {},
                    [](const Entry& e) { return std::tie(e.operation, e.time, e.manager, e.subresource); });
  json list = json::array();
  for (const Entry& entry : entries) {
    json field{{"manager", entry.manager}, {"operation", entry.operation}, {"apiVersion", entry.api_version},
               {"time", entry.time},       {"fieldsType", "FieldsV1"},     {"fieldsV1", encode_paths(entry.paths)}};
    if (!entry.subresource.empty()) field["subresource"] = entry.subresource;
    list.push_back(std::move(field));
  }
  object["metadata"]["managedFields"] = std::move(list);
}

Entry& entry_of(std::vector<Entry>& entries, const Writer& writer, const char* operation) {
  const auto it = std::ranges::find_if(entries, [&](const Entry& e) {
    return e.manager == writer.manager && e.operation == operation && e.subresource == writer.subresource;
  });
  if (it != entries.end()) return *it;
  entries.push_back({writer.manager, operation, writer.subresource, writer.api_version, {}, {}});
  return entries.back();
}

void set_paths(Entry& entry, Paths paths, const Writer& writer) {
  if (entry.paths == paths) return;
  entry.paths = std::move(paths);
  entry.time = base::to_rfc3339(writer.now);
}

/// .metadata.labels.x, .status.conditions[type="Ready"].status
std::string for_people(const std::string& path) {
  std::string out;
  for (const std::string& segment : segments_of(path)) {
    if (segment.starts_with("f:")) {
      out += "." + segment.substr(2);
    } else {
      const json key = json::parse(segment.substr(2));
      out += fmt::format("[{}={}]", key.begin().key(), key.begin().value().dump());
    }
  }
  return out;
}

json* item_of(json& list, const std::string& segment) {
  const json key = json::parse(segment.substr(2));
  const std::string wanted = key.begin().value();
  const auto it =
      std::ranges::find_if(list, [&](const json& item) { return item.value(key.begin().key(), "") == wanted; });
  return it == list.end() ? nullptr : &*it;
}

void remove_at(json& object, const std::string& path) {
  json* node = &object;
  const std::vector<std::string> segments = segments_of(path);
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool last = i + 1 == segments.size();
    if (segments[i].starts_with("k:")) {
      json* item = node->is_array() ? item_of(*node, segments[i]) : nullptr;
      if (item == nullptr) return;
      if (last) return void(node->erase(static_cast<size_t>(item - &(*node)[0])));
      node = item;
    } else {
      const std::string name = segments[i].substr(2);
      if (!node->is_object() || !node->contains(name)) return;
      if (last) return void(node->erase(name));
      node = &(*node)[name];
    }
  }
}

void merge_config(json& into, const json& config, const std::string& path) {
  for (const auto& [name, value] : config.items()) {
    const std::string at = path + "\nf:" + name;
    json& place = into[name];
    const std::string key = value.is_array() ? key_of(at) : "";
    if (value.is_object()) {
      if (!place.is_object()) place = json::object();
      merge_config(place, value, at);
    } else if (key.empty() || !place.is_array()) {
      place = value;
    } else {
      for (const json& item : value) {
        json* known = item_of(place, item_segment(key, item).substr(1));
        if (known != nullptr) {
          merge_config(*known, item, at + item_segment(key, item));
        } else {
          place.push_back(item);
        }
      }
    }
  }
}

/// As messages name the owner of a field.
std::string owner_of(const Entry& entry) {
  std::string out = "\"" + entry.manager + "\"";
  if (!entry.subresource.empty()) out += " with subresource \"" + entry.subresource + "\"";
  return entry.operation == "Update" ? out + " using " + entry.api_version : out;
}

ApiError apply_conflict(const std::vector<std::pair<std::string, std::string>>& conflicts) {
  std::string text;
  json causes = json::array();
  for (const auto& [owner, path] : conflicts) {
    const std::string with = "conflict with " + owner;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", with, for_people(path));
    causes.push_back({{"reason", "FieldManagerConflict"}, {"message", with}, {"field", for_people(path)}});
  }
  ApiError error(
      409, "Conflict",
      fmt::format("Apply failed with {} conflict{}: {}", conflicts.size(), conflicts.size() == 1 ? "" : "s", text));
  error.details = {{"causes", std::move(causes)}};
  return error;
}

}  // namespace

Outcome<json> apply(const json& live, const json& config, const Writer& writer, bool force) {
  const Leaves wanted = leaves_of(config);
  const Leaves now = leaves_of(live);
  std::vector<Entry> entries = entries_of(live);
  entry_of(entries, writer, "Apply");

  std::vector<std::pair<std::string, std::string>> conflicts;
  Paths owned_by_others;
  for (Entry& entry : entries) {
    if (&entry == &entry_of(entries, writer, "Apply")) continue;
    for (const auto& [path, value] : wanted) {
      const auto known = now.find(path);
      const bool same = known != now.end() && known->second == value;
      if (same || !entry.paths.contains(path)) continue;
      conflicts.emplace_back(owner_of(entry), path);
      entry.paths.erase(path);
    }
    owned_by_others.insert(entry.paths.begin(), entry.paths.end());
  }
  if (!conflicts.empty() && !force) return refuse(apply_conflict(conflicts));

  json out = live;
  merge_config(out, config, "");
  Paths applied;
  for (const auto& [path, value] : wanted) applied.insert(path);
  Entry& own = entry_of(entries, writer, "Apply");
  for (const std::string& path : own.paths) {
    if (!applied.contains(path) && !owned_by_others.contains(path)) remove_at(out, path);
  }
  set_paths(own, std::move(applied), writer);
  store_entries(out, std::move(entries));
  return out;
}

void note_update(const json& live, json& wanted, const Writer& writer) {
  const Leaves before = live.empty() ? Leaves() : leaves_of(live);
  const Leaves after = leaves_of(wanted);
  std::vector<Entry> entries = entries_of(live);
  Paths changed;
  for (const auto& [path, value] : after) {
    const auto known = before.find(path);
    if (known == before.end() || known->second != value) changed.insert(path);
  }
  for (Entry& entry : entries) {
    std::erase_if(entry.paths,
                  [&](const std::string& path) { return !after.contains(path) || changed.contains(path); });
  }
  if (!changed.empty()) {
    Entry& own = entry_of(entries, writer, "Update");
    Paths paths = own.paths;
    paths.merge(changed);
    set_paths(own, std::move(paths), writer);
  }
  store_entries(wanted, std::move(entries));
}

bool same_but_for_managed_times(const json& a, const json& b) {
  const auto without_times = [](json object) {
    for (json& field : object["metadata"]["managedFields"]) field.erase("time");
    return object;
  };
  return a == b || without_times(a) == without_times(b);
}

}  // namespace spillway::test::api_model
