#include "vk-provider/daemon/config_reader.hpp"

#include <algorithm>
#include <charconv>

namespace spillway::daemon {
namespace {

constexpr std::size_t kMaxShown = 60;

At child(const At& parent, const YAML::Node& node, std::string path) {
  At at;
  at.node.reset(node);
  at.path = std::move(path);
  at.line = node.Mark().is_null() ? parent.line : node.Mark().line + 1;
  at.present = !node.IsNull();
  return at;
}

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

/// Keys of people are words; a key with a dot or slash (a label) is quoted, so that the path can be read.
std::string entry_path(const std::string& path, const std::string& key) {
  const bool plain = std::ranges::none_of(key, [](char c) { return c == '.' || c == '/' || c == '[' || c == ' '; });
  return plain ? joined(path, key) : path + "[\"" + key + "\"]";
}

/// `nodes[12].offers` -> `nodes[].offers`
std::string without_indices(const std::string& path) {
  std::string out;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) out += c;
    if (c == '[') inside = true;
  }
  return out;
}

}  // namespace

std::string describe(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: return "a mapping";
    case YAML::NodeType::Sequence: return "a list";
    case YAML::NodeType::Scalar: {
      const std::string& text = node.Scalar();
      return '"' + (text.size() > kMaxShown ? text.substr(0, kMaxShown) + "..." : text) + '"';
    }
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined: break;
  }
  return "nothing";
}

void Reader::fault(const At& at, std::string message) {
  Fault f;
  f.file = file_;
  f.line = at.line;
  f.path = at.path;
  f.message = std::move(message);
  faults_.emplace(at.line, std::move(f));
}

void Reader::note_known(const std::string& path) {
  if (known_keys_ != nullptr) known_keys_->insert(without_indices(path));
}

std::vector<Fault> Reader::take_faults() {
  std::vector<Fault> out;
  for (auto& [line, fault] : faults_) out.push_back(std::move(fault));
  faults_.clear();
  return out;
}

bool Reader::text(const At& at, std::string& out, std::string_view allowed) {
  if (!at.present) return false;
  if (!at.node.IsScalar()) {
    fault(at, "found " + describe(at.node) + "; allowed: " + std::string(allowed));
    return false;
  }
  out = at.node.Scalar();
  return true;
}

std::vector<At> Reader::list(const At& at, std::string_view allowed) {
  std::vector<At> out;
  if (!at.present) return out;
  if (!at.node.IsSequence()) {
    fault(at, "found " + describe(at.node) + "; allowed: " + std::string(allowed));
    return out;
  }
  for (const YAML::Node& entry : at.node) {
    out.push_back(child(at, entry, at.path + "[" + std::to_string(out.size()) + "]"));
    if (out.back().present) continue;
    fault(out.back(), "found nothing; allowed: an entry, or no line at all");
    out.pop_back();
  }
  return out;
}

std::vector<std::pair<std::string, At>> Reader::entries(const At& at, std::string_view allowed) {
  std::vector<std::pair<std::string, At>> out;
  if (!at.present) return out;
  if (!at.node.IsMap()) {
    fault(at, "found " + describe(at.node) + "; allowed: " + std::string(allowed));
    return out;
  }
  std::map<std::string, int> first_line;
  for (const auto& entry : at.node) {
    At key = child(at, entry.first, at.path);
    if (!entry.first.IsScalar()) {
      fault(key, "found " + describe(entry.first) + " as a key; allowed: text");
      continue;
    }
    const std::string& name = entry.first.Scalar();
    key.path = entry_path(at.path, name);
    const auto [seen, fresh] = first_line.emplace(name, key.line);
    if (!fresh) {
      fault(key, "found a second time; allowed: once (the first is on line " + std::to_string(seen->second) + ")");
      continue;
    }
    // The line of the key is what a person looks for, also when the value begins on the next one.
    At value = child(key, entry.second, key.path);
    value.line = key.line;
    out.emplace_back(name, std::move(value));
  }
  return out;
}

Section::Section(Reader& reader, const At& at) : reader_(reader), at_(at) {
  keys_ = reader_.entries(at_, "a mapping");
  for (const auto& [key, value] : keys_) values_.emplace(key, value);
}

At Section::get(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  const std::string path = joined(at_.path, key);
  reader_.note_known(path);
  const auto found = values_.find(std::string(key));
  if (found != values_.end()) return found->second;
  At absent;
  absent.path = path;
  absent.line = at_.line;
  return absent;
}

At Section::require(std::string_view key, std::string_view allowed) {
  At at = get(key);
  // A section that is no mapping was reported as a whole.
  const bool asked = !at_.present || at_.node.IsMap();
  if (!at.present && asked) reader_.fault(at, "found nothing; allowed: " + std::string(allowed) + " (it is required)");
  return at;
}

void Section::text(std::string_view key, std::string& out, std::string_view allowed) {
  reader_.text(get(key), out, allowed);
}

void Section::boolean(std::string_view key, bool& out) {
  const At at = get(key);
  std::string word;
  if (!reader_.text(at, word, "true, false")) return;
  // A plain scalar has the tag `?`; "true" in quotes is text.
  if (at.node.Tag() == "?" && (word == "true" || word == "false")) {
    out = word == "true";
    return;
  }
  reader_.fault(at, "found " + describe(at.node) + "; allowed: true, false");
}

void Section::integer(std::string_view key, int min, int max, int& out) {
  const std::string allowed = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  const At at = get(key);
  std::string word;
  if (!reader_.text(at, word, allowed)) return;
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < min || value > max) {
    reader_.fault(at, "found " + describe(at.node) + "; allowed: " + allowed);
    return;
  }
  out = value;
}

void Section::duration(std::string_view key, base::Duration min, base::Duration max, base::Duration& out) {
  const std::string allowed =
      "a duration such as 20s, 5m or 1h30m, from " + format_duration(min) + " to " + format_duration(max);
  const At at = get(key);
  std::string word;
  if (!reader_.text(at, word, allowed)) return;
  const auto value = parse_duration(word);
  if (!value || *value < min || *value > max) {
    reader_.fault(at, "found " + describe(at.node) + "; allowed: " + allowed);
    return;
  }
  out = *value;
}

void Section::strings(std::string_view key, std::vector<std::string>& out, std::string_view allowed) {
  const At at = get(key);
  if (!at.present) return;
  std::vector<std::string> words;
  for (const At& entry : reader_.list(at, allowed)) {
    std::string word;
    if (!reader_.text(entry, word, allowed)) continue;
    if (word.empty()) {
      reader_.fault(entry, "found \"\"; allowed: " + std::string(allowed));
    } else if (std::ranges::find(words, word) != words.end()) {
      reader_.fault(entry, "found " + describe(entry.node) + " a second time; allowed: once");
    } else {
      words.push_back(std::move(word));
    }
  }
  out = std::move(words);
}

void Section::finish() {
  for (const auto& [key, value] : keys_) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    const std::string_view near = nearest(key, known_);
    std::string message = "found an unknown key; allowed: ";
    message += near.empty() ? join(known_) : std::string(near) + " (the nearest of " + join(known_) + ")";
    reader_.fault(value, std::move(message));
  }
}

}  // namespace spillway::daemon
