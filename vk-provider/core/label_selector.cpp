#include "vk-provider/core/label_selector.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace spillway::core {
namespace {

using Operator = model::NodeRequirement::Operator;

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// At the commas that stand outside of brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != ',' || depth > 0) continue;
    out.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  out.push_back(trim(text.substr(begin)));
  return out;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" ()=!,<>") == std::string_view::npos;
}

/// `key in (a, b)` and `key notin (a, b)`.
std::optional<model::NodeRequirement> parse_set(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const std::string_view head = trim(text.substr(0, open));
  const std::size_t blank = head.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string_view word = trim(head.substr(blank));
  if (word != "in" && word != "notin") return std::nullopt;
  model::NodeRequirement out;
  out.key = head.substr(0, blank);
  out.op = word == "in" ? Operator::kIn : Operator::kNotIn;
  for (const std::string_view value : split(text.substr(open + 1, text.size() - open - 2))) {
    out.values.emplace_back(value);
  }
  return out;
}

std::optional<model::NodeRequirement> parse_one(std::string_view text) {
  if (text.find('(') != std::string_view::npos) return parse_set(text);
  model::NodeRequirement out;
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    const bool absent = text.starts_with('!');
    if (absent) text = trim(text.substr(1));
    out.op = absent ? Operator::kDoesNotExist : Operator::kExists;
    out.key = text;
    return is_word(text) ? std::optional(out) : std::nullopt;
  }
  const bool differs = equals > 0 && text[equals - 1] == '!';
  const std::string_view key = trim(text.substr(0, differs ? equals - 1 : equals));
  std::string_view value = text.substr(equals + 1);
  if (!differs && value.starts_with('=')) value.remove_prefix(1);
  value = trim(value);
  if (!is_word(key) || (!value.empty() && !is_word(value))) return std::nullopt;
  out.key = key;
  out.op = differs ? Operator::kNotIn : Operator::kIn;
  out.values.emplace_back(value);
  return out;
}

}  // namespace

bool holds(const model::NodeRequirement& requirement, const std::string* value) {
  const auto& values = requirement.values;
  switch (requirement.op) {
    case Operator::kIn: return value != nullptr && std::ranges::find(values, *value) != values.end();
    case Operator::kNotIn: return value == nullptr || std::ranges::find(values, *value) == values.end();
    case Operator::kExists: return value != nullptr;
    case Operator::kDoesNotExist: return value == nullptr;
    case Operator::kGt:
    case Operator::kLt: {
      if (value == nullptr || values.size() != 1) return false;
      const auto has = whole_number(*value);
      const auto bound = whole_number(values.front());
      if (!has || !bound) return false;
      return requirement.op == Operator::kGt ? *has > *bound : *has < *bound;
    }
    case Operator::kUnknown: return false;
  }
  return false;
}

bool matches(const LabelSelector& selector, const std::map<std::string, std::string>& labels) {
  if (selector.nothing) return false;
  const auto value_of = [&labels](const std::string& key) {
    const auto it = labels.find(key);
    return it == labels.end() ? nullptr : &it->second;
  };
  for (const auto& [key, wanted] : selector.labels) {
    const std::string* const value = value_of(key);
    if (value == nullptr || *value != wanted) return false;
  }
  return std::ranges::all_of(selector.expressions,
                             [&](const auto& requirement) { return holds(requirement, value_of(requirement.key)); });
}

std::optional<LabelSelector> parse_label_selector(std::string_view text) {
  LabelSelector out;
  if (trim(text).empty()) return out;
  for (const std::string_view one : split(text)) {
    auto requirement = parse_one(one);
    if (!requirement) return std::nullopt;
    out.expressions.push_back(std::move(*requirement));
  }
  return out;
}

}  // namespace spillway::core
