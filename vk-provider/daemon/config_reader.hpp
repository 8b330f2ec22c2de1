// Reads a YAML tree into values and collects what is wrong with it, instead of stopping at the first fault.
//
// Used by the config_*.cpp files of this folder during one parse_config(), on main's thread. Knows the shape of YAML,
// not the meaning of a key.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vk-provider/daemon/config.hpp"
#include "vk-provider/daemon/config_values.hpp"

namespace spillway::daemon {

/// A place in the document: a value, or the place where it would stand.
struct At {
  At() = default;
  At(const At&) = default;
  At& operator=(const At&) = delete;  // a YAML::Node that is assigned to changes the document
  YAML::Node node;
  std::string path;
  int line = 0;
  bool present = false;  // false also for an explicit null: it means "the default"
};

/// What stands there, for a message: `"abc"`, a list, a mapping, nothing.
std::string describe(const YAML::Node& node);

class Reader {
 public:
  Reader(std::string file, std::set<std::string>* known_keys) : file_(std::move(file)), known_keys_(known_keys) {}

  void fault(const At& at, std::string message);
  void note_known(const std::string& path);
  bool faulty() const { return !faults_.empty(); }
  /// In the order of the lines.
  std::vector<Fault> take_faults();
  const std::string& file() const { return file_; }

  /// The text of a scalar; false (and a fault, unless it is absent) for everything else.
  bool text(const At& at, std::string& out, std::string_view allowed = "text");
  /// The entries of a list; none if it is absent.
  std::vector<At> list(const At& at, std::string_view allowed);
  /// Key and value of every entry of a mapping whose keys are free; doubled keys are faults.
  std::vector<std::pair<std::string, At>> entries(const At& at, std::string_view allowed);

 private:
  std::string file_;
  std::set<std::string>* known_keys_;
  std::multimap<int, Fault> faults_;  // by line; those of one line as they came
};

/// A mapping with known keys. Every key is asked for, then finish() reports those that nobody asked for.
class Section {
 public:
  Section(Reader& reader, const At& at);

  /// The value of a key.
  At get(std::string_view key);
  /// The same, with a fault if it is not there.
  At require(std::string_view key, std::string_view allowed);

  // Each leaves `out` as it is if the key is absent or wrong.
  void text(std::string_view key, std::string& out, std::string_view allowed = "text");
  void boolean(std::string_view key, bool& out);
  void integer(std::string_view key, int min, int max, int& out);
  void duration(std::string_view key, base::Duration min, base::Duration max, base::Duration& out);
  void strings(std::string_view key, std::vector<std::string>& out, std::string_view allowed);
  template <class T>
  void one_of(std::string_view key, const std::vector<std::pair<std::string, T>>& words, T& out) {
    const At at = get(key);
    std::string word;
    std::vector<std::string> names;
    names.reserve(words.size());
    for (const auto& entry : words) names.push_back(entry.first);
    if (!reader_.text(at, word, join(names))) return;
    for (const auto& [name, value] : words) {
      if (name == word) {
        out = value;
        return;
      }
    }
    reader_.fault(at, "found " + describe(at.node) + "; allowed: " + join(names));
  }

  void finish();

  Reader& reader() { return reader_; }
  const At& at() const { return at_; }

 private:
  Reader& reader_;
  At at_;
  std::map<std::string, At> values_;
  std::vector<std::pair<std::string, At>> keys_;  // as written, in order
  std::vector<std::string> known_;
};

}  // namespace spillway::daemon
