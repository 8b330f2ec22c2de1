#include "providers/docker/config_fields.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "vk-provider/model/quantity.hpp"

namespace spillway::providers::docker {
namespace {

std::string join(const std::vector<std::string_view>& words) {
  std::string out;
  for (const std::string_view word : words) {
    if (!out.empty()) out += ", ";
    out += word;
  }
  return out;
}

std::optional<base::Duration> parse_duration(std::string_view text) {
  base::Duration total{};
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0 || number > 1'000'000) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return std::nullopt;
    switch (text.front()) {
      case 's': total += std::chrono::seconds(number); break;
      case 'm': total += std::chrono::minutes(number); break;
      case 'h': total += std::chrono::hours(number); break;
      default: return std::nullopt;
    }
    text.remove_prefix(1);
  }
  return total;
}

}  // namespace

std::string shown(const nlohmann::json& value) {
  constexpr size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

Fields::Fields(const nlohmann::json& node, std::string path, std::vector<provider::ConfigFault>& faults)
    : node_(node), path_(std::move(path)), faults_(faults) {}

std::string Fields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void Fields::fault(std::string_view key, std::string message) {
  faults_.emplace_back(path_of(key), std::move(message));
}

const nlohmann::json* Fields::find(std::string_view key, bool required) {
  known_.emplace_back(key);
  const auto it = node_.find(key);
  if (it != node_.end() && !it->is_null()) return &*it;
  if (required) fault(key, "is missing; it has no default");
  return nullptr;
}

std::optional<std::string> Fields::text(std::string_view key, bool required) {
  const nlohmann::json* const value = find(key, required);
  if (value == nullptr) return std::nullopt;
  const auto* const text = value->get_ptr<const std::string*>();
  if (text == nullptr || text->empty()) {
    fault(key, "is " + shown(*value) + "; allowed is a text that is not empty");
    return std::nullopt;
  }
  return *text;
}

/// Numbers come as JSON numbers or as text, as the writer of the file liked.
std::optional<std::string> Fields::scalar(std::string_view key, bool required, std::string_view wanted) {
  const nlohmann::json* const value = find(key, required);
  if (value == nullptr) return std::nullopt;
  if (const auto* const text = value->get_ptr<const std::string*>()) return *text;
  if (value->is_number()) return value->dump();
  fault(key, "is " + shown(*value) + "; allowed is " + std::string(wanted));
  return std::nullopt;
}

std::optional<int> Fields::count(std::string_view key, int least, int most) {
  const std::string wanted = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  const auto text = scalar(key, false, wanted);
  if (!text) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc{} || end != text->data() + text->size() || number < least || number > most) {
    fault(key, "is " + *text + "; allowed is " + wanted);
    return std::nullopt;
  }
  return number;
}

std::optional<base::Money> Fields::price(std::string_view key, bool required) {
  const std::string_view wanted = "a price in dollars with at most six digits after the point, such as 2.39";
  const auto text = scalar(key, required, wanted);
  if (!text) return std::nullopt;
  const auto money = base::Money::from_dollars(*text);
  if (!money) fault(key, "is " + *text + "; allowed is " + std::string(wanted));
  return money;
}

std::optional<std::int64_t> Fields::bytes(std::string_view key) {
  const std::string_view wanted = "a quantity greater than 0, such as 80Gi";
  const auto text = scalar(key, false, wanted);
  if (!text) return std::nullopt;
  const auto value = model::quantity_value(*text);
  if (value && *value > 0) return value;
  fault(key, "is " + *text + "; allowed is " + std::string(wanted));
  return std::nullopt;
}

std::optional<std::int64_t> Fields::cpu_milli(std::string_view key) {
  const std::string_view wanted = "a quantity greater than 0, such as 16 or 500m";
  const auto text = scalar(key, false, wanted);
  if (!text) return std::nullopt;
  const auto value = model::quantity_milli(*text);
  if (value && *value > 0) return value;
  fault(key, "is " + *text + "; allowed is " + std::string(wanted));
  return std::nullopt;
}

std::optional<base::Duration> Fields::duration(std::string_view key) {
  const std::string_view wanted = "a duration greater than 0, such as 90s, 10m or 1h30m";
  const auto text = scalar(key, false, wanted);
  if (!text) return std::nullopt;
  const auto value = parse_duration(*text);
  if (value && *value > base::Duration::zero()) return value;
  fault(key, "is " + *text + "; allowed is " + std::string(wanted));
  return std::nullopt;
}

std::optional<size_t> Fields::choice(std::string_view key, const std::vector<std::string_view>& words) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const text = value->get_ptr<const std::string*>()) {
    const auto it = std::find(words.begin(), words.end(), *text);
    if (it != words.end()) return static_cast<size_t>(it - words.begin());
  }
  fault(key, "is " + shown(*value) + "; allowed are " + join(words));
  return std::nullopt;
}

void Fields::finish() {
  for (const auto& item : node_.items()) {
    if (std::find(known_.begin(), known_.end(), item.key()) != known_.end()) continue;
    fault(item.key(), "is no key here; allowed are " + join({known_.begin(), known_.end()}));
  }
}

}  // namespace spillway::providers::docker
