#include "vk-provider/daemon/cli_manifest.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "vk-provider/kube/json_writer.hpp"

namespace spillway::daemon {
namespace {

constexpr int kMaxDepth = 64;  // an alias that contains itself ends here
constexpr int kMaxValues = 1'000'000;
constexpr const char* kNoUid = "00000000-0000-4000-8000-000000000000";  // a pod that is not created yet has none

using Members = std::vector<std::pair<std::string, YAML::Node>>;

struct TooMuch {};

/// With what `<<` brings in; a key's own value wins.
Members members_of(const YAML::Node& node) {
  Members out;
  if (!node.IsMap()) return out;
  std::vector<YAML::Node> merged;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) continue;
    if (entry.first.Scalar() != "<<") {
      out.emplace_back(entry.first.Scalar(), entry.second);
    } else if (entry.second.IsSequence()) {
      for (const auto& one : entry.second) merged.push_back(one);
    } else {
      merged.push_back(entry.second);
    }
  }
  for (const YAML::Node& one : merged) {
    if (!one.IsMap()) continue;
    for (const auto& entry : one) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (!key.empty() && std::ranges::find(out, key, &Members::value_type::first) == out.end()) {
        out.emplace_back(key, entry.second);
      }
    }
  }
  return out;
}

YAML::Node member(const YAML::Node& node, std::string_view key) {
  for (const auto& [name, value] : members_of(node)) {
    if (name == key) return value;
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

std::string text_of(const YAML::Node& node) { return node.IsDefined() && node.IsScalar() ? node.Scalar() : ""; }

bool is_plain(const YAML::Node& node) { return node.Tag() == "?" || node.Tag().empty(); }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_null_word(std::string_view word) { return is_one_of(word, {"", "~", "null", "Null", "NULL"}); }

std::optional<bool> truth_of(std::string_view word) {
  if (is_one_of(word, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"})) return true;
  if (is_one_of(word, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"})) return false;
  return std::nullopt;
}

std::optional<std::int64_t> whole_number_of(std::string_view word) {
  const bool negative = word.starts_with('-');
  std::string_view digits = word.substr(negative || word.starts_with('+') ? 1 : 0);
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char letter = digits[1];
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
    digits.remove_prefix(letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1);
  }
  if (digits.empty() || digits.front() == '-' || digits.front() == '+') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return negative ? -value : value;
}

bool is_number(std::string_view word) {
  if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
  if (word.find_first_of("0123456789.") != 0) return false;  // no inf, no second sign
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size();
}

/// Something but a text: where the API wants a text, it refuses that.
bool is_other_than_text(const YAML::Node& node) {
  if (!node.IsScalar()) return !node.IsNull();
  if (!is_plain(node)) return false;
  const std::string& word = node.Scalar();
  return truth_of(word) || whole_number_of(word) || is_number(word);
}

class JsonText {
 public:
  void write(kube::JsonWriter& out, const YAML::Node& node, int depth = 0) {
    if (depth > kMaxDepth || ++values_ > kMaxValues) throw TooMuch{};
    if (node.IsMap()) {
      out.open_object();
      for (const auto& [key, value] : members_of(node)) write(out.key(key), value, depth + 1);
      out.close_object();
    } else if (node.IsSequence()) {
      out.open_array();
      for (const auto& value : node) write(out, value, depth + 1);
      out.close_array();
    } else if (!node.IsDefined() || node.IsNull()) {
      out.null();
    } else {
      write_scalar(out, node);
    }
  }

 private:
  /// A number with a point stays a text: only quantities have one, and they are read as either.
  static void write_scalar(kube::JsonWriter& out, const YAML::Node& node) {
    const std::string& word = node.Scalar();
    const auto truth = is_plain(node) ? truth_of(word) : std::nullopt;
    const auto number = is_plain(node) ? whole_number_of(word) : std::nullopt;
    if (truth) {
      out.boolean(*truth);
    } else if (number) {
      out.number(*number);
    } else if (is_plain(node) && is_null_word(word)) {
      out.null();
    } else {
      out.string(word);
    }
  }

  int values_ = 0;
};

class Finder {
 public:
  explicit Finder(const std::string& file) : file_(file) {}

  /// One document, or an element of a list.
  void take(const YAML::Node& node, int depth = 0) {
    if (node.IsNull()) return;
    if (depth > kMaxDepth) throw TooMuch{};
    if (!node.IsMap()) return fault(node, "", "is no Kubernetes object");
    const std::string kind = text_of(member(node, "kind"));
    if (kind.empty()) return fault(node, "kind", "is missing");
    const YAML::Node items = member(node, "items");
    if (kind.ends_with("List") && items.IsDefined()) {
      for (const auto& item : items) take(item, depth + 1);
      return;
    }
    ManifestObject object;
    object.file = file_;
    object.line = node.Mark().line + 1;
    object.kind = kind;
    const YAML::Node metadata = member(node, "metadata");
    object.name = text_of(member(metadata, "name"));
    if (object.name.empty()) object.name = text_of(member(metadata, "generateName"));
    object.ns = text_of(member(metadata, "namespace"));
    const size_t before = manifest_.pods.size() + faults_.size();
    find(node, node, object, "", 0);
    if (manifest_.pods.size() + faults_.size() > before) return;
    if (kind == "Pod") return fault(node, "spec.containers", "is missing");
    manifest_.others.push_back(std::move(object));
  }

  void fault(int line, const std::string& path, const std::string& message) {
    Fault& fault = faults_.emplace_back();
    fault.file = file_;
    fault.line = line;
    fault.path = path;
    fault.message = message;
  }

  std::expected<Manifest, std::vector<Fault>> take_result() {
    if (!faults_.empty()) return std::unexpected(std::move(faults_));
    return std::move(manifest_);
  }

 private:
  void fault(const YAML::Node& node, const std::string& path, const std::string& message) {
    fault(node.Mark().line + 1, path, message);
  }

  /// The pods at and below `node`, which stands at `path` of `root`.
  void find(const YAML::Node& root, const YAML::Node& node, const ManifestObject& object, const std::string& path,
            int depth) {
    if (depth > kMaxDepth || ++visited_ > kMaxValues) throw TooMuch{};
    if (node.IsSequence()) {
      size_t i = 0;
      for (const auto& element : node) find(root, element, object, path + "[" + std::to_string(i++) + "]", depth + 1);
    }
    if (!node.IsMap()) return;
    const YAML::Node spec = member(node, "spec");
    if (spec.IsDefined() && spec.IsMap() && member(spec, "containers").IsSequence()) {
      return add_pod(root, node, object, path);
    }
    for (const auto& [key, value] : members_of(node)) {
      find(root, value, object, path.empty() ? key : path + "." + key, depth + 1);
    }
  }

  void add_pod(const YAML::Node& root, const YAML::Node& node, const ManifestObject& object, const std::string& path) {
    const YAML::Node metadata = member(node, "metadata");
    check_texts(metadata, member(node, "spec"), path);
    YAML::Node spec = YAML::Clone(member(node, "spec"));  // without the places in the file
    add_what_controllers_add(root, object, spec);
    const std::string own_name = text_of(member(metadata, "name"));
    std::string name = !own_name.empty() ? own_name : !object.name.empty() ? object.name : "pod";
    std::string ns = object.ns.empty() ? "default" : object.ns;
    kube::JsonWriter out;
    JsonText text;
    out.open_object().field("kind", "Pod").key("metadata").open_object();
    out.field("uid", kNoUid).field("name", name).field("namespace", ns);
    text.write(out.key("annotations"), member(metadata, "annotations"));
    out.close_object();
    text.write(out.key("spec"), spec);
    ManifestPod& pod = manifest_.pods.emplace_back();
    pod.object = object;
    pod.path = path;
    pod.json = out.close_object().take();
  }

  /// Where the API wants a text, `true` or `8` without quotes is refused.
  void check_texts(const YAML::Node& metadata, const YAML::Node& spec, const std::string& path) {
    const std::string at = path.empty() ? "" : path + ".";
    for (const char* map : {"labels", "annotations"}) {
      for (const auto& [key, value] : members_of(member(metadata, map))) {
        if (is_other_than_text(value)) fault(value, at + "metadata." + map + "[" + key + "]", kQuotes);
      }
    }
    for (const char* list : {"initContainers", "containers"}) {
      size_t i = 0;
      for (const auto& container : member(spec, list)) {
        const std::string where = at + "spec." + list + "[" + std::to_string(i++) + "]";
        size_t j = 0;
        for (const auto& variable : member(container, "env")) {
          const YAML::Node value = member(variable, "value");
          if (value.IsDefined() && is_other_than_text(value)) {
            fault(value, where + ".env[" + std::to_string(j) + "].value", kQuotes);
          }
          ++j;
        }
      }
    }
  }

  static void add_what_controllers_add(const YAML::Node& root, const ManifestObject& object, YAML::Node& spec) {
    const YAML::Node settings = member(root, "spec");
    const bool set = object.kind == "StatefulSet";
    const bool indexed = object.kind == "Job" && text_of(member(settings, "completionMode")) == "Indexed";
    if (set || indexed) spec["hostname"] = object.name + "-0";
    if (!set) return;
    const std::string service = text_of(member(settings, "serviceName"));
    if (!service.empty()) spec["subdomain"] = service;
    for (const auto& claim : member(settings, "volumeClaimTemplates")) {
      YAML::Node volume;
      volume["name"] = text_of(member(member(claim, "metadata"), "name"));
      volume["persistentVolumeClaim"]["claimName"] = volume["name"].Scalar() + "-" + object.name + "-0";
      spec["volumes"].push_back(volume);
    }
  }

  static constexpr const char* kQuotes = "must be a text; put it in quotes";

  const std::string& file_;
  Manifest manifest_;
  std::vector<Fault> faults_;
  int visited_ = 0;
};

}  // namespace

std::expected<Manifest, std::vector<Fault>> read_manifest(std::string_view text, const std::string& file) {
  Finder finder(file);
  try {
    for (const YAML::Node& document : YAML::LoadAll(std::string(text))) finder.take(document);
  } catch (const YAML::Exception& e) {
    finder.fault(e.mark.line + 1, "", "is not valid YAML: " + e.msg);
  } catch (const TooMuch&) {
    finder.fault(0, "", "has too many levels or values (an alias in itself?)");
  }
  return finder.take_result();
}

base::Result<std::string> yaml_to_json(std::string_view text) {
  try {
    kube::JsonWriter out;
    JsonText().write(out, YAML::Load(std::string(text)));
    return out.take();
  } catch (const YAML::Exception& e) {
    return base::fail(base::ErrorKind::kInvalid, "line " + std::to_string(e.mark.line + 1) + ": " + e.msg);
  } catch (const TooMuch&) {
    return base::fail(base::ErrorKind::kInvalid, "too many levels or values (an alias in itself?)");
  }
}

}  // namespace spillway::daemon
