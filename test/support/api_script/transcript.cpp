#include "test/support/api_script/transcript.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <fmt/format.h>

namespace spillway::test::api_script {
namespace {

using nlohmann::json;

/// What the server fills in and nobody of ours reads. `*` is any element of a list.
constexpr std::array kDefaults = {
    "/spec/dnsPolicy",
    "/spec/schedulerName",
    "/spec/securityContext",
    "/spec/enableServiceLinks",
    "/spec/serviceAccount",
    "/spec/serviceAccountName",
    "/spec/preemptionPolicy",
    "/spec/priority",
    "/spec/tolerations",
    "/spec/containers/*/terminationMessagePath",
    "/spec/containers/*/terminationMessagePolicy",
    "/spec/containers/*/imagePullPolicy",
    "/spec/containers/*/resources/requests",
    "/status/qosClass",
    "/status/daemonEndpoints",
};

using Versions = std::set<std::uint64_t>;

void visit(json& value, const std::function<void(json&)>& each) {
  if (value.is_structured()) {
    for (json& child : value) visit(child, each);
  }
  if (value.is_object()) each(value);
}

bool is_version(const json& metadata) {
  if (!metadata.is_object() || !metadata.contains("resourceVersion")) return false;
  const json& version = metadata["resourceVersion"];
  return version.is_string() && !version.get_ref<const std::string&>().empty();
}

std::uint64_t version_of(const json& metadata) { return std::stoull(metadata["resourceVersion"].get<std::string>()); }

/// Versions at which objects stood, in the whole run.
Versions versions_of(std::vector<Said>& run) {
  Versions out;
  for (Said& said : run) {
    for (json& text : said.texts) {
      visit(text, [&](json& object) {
        if (object.contains("uid") && is_version(object)) out.insert(version_of(object));
      });
    }
  }
  return out;
}

void rank_version(json& metadata, const Versions& versions) {
  if (!is_version(metadata)) return;
  const auto after = versions.upper_bound(version_of(metadata));
  const auto rank = std::distance(versions.begin(), after);
  const bool of_object = metadata.contains("uid");
  metadata["resourceVersion"] = fmt::format("{}v{}", of_object ? "" : ">=", rank);
}

void drop(json& value, std::string_view path) {
  const size_t slash = path.find('/', 1);
  const std::string name(path.substr(1, slash == std::string_view::npos ? slash : slash - 1));
  if (slash == std::string_view::npos) {
    if (value.is_object()) value.erase(name);
  } else if (name == "*") {
    for (json& item : value) drop(item, path.substr(slash));
  } else if (value.is_object() && value.contains(name)) {
    drop(value[name], path.substr(slash));
  }
}

bool is_empty(const json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || (value.is_string() && value == "");
}

void drop_empty(json& value) {
  if (value.is_array()) {
    for (json& item : value) drop_empty(item);
  }
  if (!value.is_object()) return;
  for (auto it = value.begin(); it != value.end();) {
    drop_empty(*it);
    it = is_empty(*it) ? value.erase(it) : std::next(it);
  }
}

std::string text_at(const json& object, const char* member) {
  const auto it = object.find(member);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Who owns which labels and annotations, in an order that does not hang on the second of the write.
json owners(const json& managed_fields) {
  std::map<std::string, json> out;
  for (const json& entry : managed_fields) {
    json names = json::array();
    for (const char* map : {"f:labels", "f:annotations"}) {
      const json fields = entry.value(json::json_pointer("/fieldsV1/f:metadata"), json::object());
      for (const auto& [name, unused] : fields.value(map, json::object()).items()) {
        if (name.starts_with("f:")) names.push_back(name);
      }
    }
    if (names.empty()) continue;
    out[fmt::format("{} {} {}", entry.value("operation", ""), entry.value("manager", ""),
                    entry.value("subresource", ""))] = names;
  }
  return out;
}

void clean_metadata(json& metadata) {
  if (metadata.contains("continue")) metadata["continue"] = "<token>";
  if (metadata.contains("managedFields")) metadata["managedFields"] = owners(metadata["managedFields"]);
}

std::string clean_message(const std::string& text) {
  static const std::regex storage(
      "StorageError: [^,]*,( Code: [^,]*, Key: [^,]*, ResourceVersion: [^,]*,)?( AdditionalErrorMsg:)?");
  static const std::regex number("[0-9]+");
  const std::string out = std::regex_replace(text.substr(0, text.find('\n')), storage, "StorageError:");
  const bool of_versions =
      out.find("esource version") != std::string::npos || out.find("esourceVersion in") != std::string::npos;
  return of_versions ? std::regex_replace(out, number, "#") : out;
}

void clean_status(json& status) {
  const json::json_pointer causes("/details/causes");
  if (!text_at(status, "message").empty()) status["message"] = clean_message(text_at(status, "message"));
  if (!status.contains(causes)) return;
  for (json& cause : status[causes]) cause["message"] = clean_message(text_at(cause, "message"));
}

/// The script's own times lie in 2020.
void replace_times(json& object) {
  static const std::regex time("20(2[1-9]|[3-9][0-9])-[0-9-]*T[0-9:.]*Z");
  for (json& value : object) {
    if (value.is_string() && std::regex_match(value.get_ref<const std::string&>(), time)) value = "<time>";
  }
}

void clean_object(json& object) {
  const std::string kind = text_at(object, "kind");
  if (object.contains("metadata") && object["metadata"].is_object()) {
    clean_metadata(object["metadata"]);
    if (kind != "Node") object["metadata"].erase("managedFields");
  }
  for (const char* path : kDefaults) drop(object, path);
  if (text_at(object, "type") == "Opaque") object.erase("type");
  if (kind == "Status") clean_status(object);
  replace_times(object);
}

/// A bookmark that ends no initial list comes when it likes.
bool only_tells_the_time(const json& event) {
  return event.is_object() && text_at(event, "type") == "BOOKMARK" &&
         !event.contains(json::json_pointer("/object/metadata/annotations"));
}

/// Every UID that the server gave, by the order in which they were first said.
void number_uids(std::string& text) {
  static const std::regex uid("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::map<std::string, size_t> known;
  std::string out;
  auto from = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), uid), end; it != end; ++it) {
    out.append(from, text.cbegin() + it->position());
    out += fmt::format("<uid {}>", known.emplace(it->str(), known.size() + 1).first->second);
    from = text.cbegin() + it->position() + it->length();
  }
  text = out.append(from, text.cend());
}

}  // namespace

std::string to_transcript(const std::vector<Said>& run) {
  std::vector<Said> copy = run;
  const Versions versions = versions_of(copy);
  std::string out;
  for (Said& said : copy) {
    if (!said.title.empty()) out += "\n# " + said.title + "\n";
    out += said.line + "\n";
    if (said.code != 0) out += fmt::format("  {}\n", said.code);
    std::erase_if(said.texts, only_tells_the_time);
    for (json& text : said.texts) {
      visit(text, [&](json& object) { rank_version(object, versions); });
      visit(text, clean_object);
      drop_empty(text);
      out += "  " + text.dump() + "\n";
    }
  }
  number_uids(out);
  return out;
}

std::string first_difference(const std::string& expected, const std::string& actual) {
  constexpr int kShown = 3;
  std::istringstream left(expected);
  std::istringstream right(actual);
  std::string title;
  for (int number = 1;; ++number) {
    std::string a;
    std::string b;
    const bool more_a = static_cast<bool>(std::getline(left, a));
    const bool more_b = static_cast<bool>(std::getline(right, b));
    if (!more_a && !more_b) return {};
    if (a.starts_with('#')) title = a;
    if (a == b && more_a == more_b) continue;
    std::string out = fmt::format("line {}, {}\n", number, title);
    for (int i = 0; i < kShown; ++i) {
      out += fmt::format("  expected: {}\n  actual:   {}\n", a, b);
      std::getline(left, a);
      std::getline(right, b);
    }
    return out;
  }
}

}  // namespace spillway::test::api_script
