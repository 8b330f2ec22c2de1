#include "vk-provider/core/downward.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "vk-provider/model/quantity.hpp"

namespace spillway::core {
namespace {

constexpr std::string_view kLabels = "metadata.labels";
constexpr std::string_view kAnnotations = "metadata.annotations";

/// What stands between [' and '] behind `map`.
std::optional<std::string> subscript(std::string_view field, std::string_view map) {
  if (!field.starts_with(map)) return std::nullopt;
  field.remove_prefix(map.size());
  if (field.size() < 4 || !field.starts_with("['") || !field.ends_with("']")) return std::nullopt;
  return std::string(field.substr(2, field.size() - 4));
}

std::string value_or_empty(const std::map<std::string, std::string>& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? std::string() : it->second;
}

struct Range {
  char32_t from;
  char32_t to;
};
/// What Go's unicode.IsPrint denies beyond ASCII, as far as it is assigned: controls, format characters, spaces,
/// private use.
constexpr std::array kUnprintable = {
    Range{0x80, 0xA0},       Range{0xAD, 0xAD},       Range{0x600, 0x605},     Range{0x61C, 0x61C},
    Range{0x6DD, 0x6DD},     Range{0x70F, 0x70F},     Range{0x890, 0x891},     Range{0x8E2, 0x8E2},
    Range{0x1680, 0x1680},   Range{0x180E, 0x180E},   Range{0x2000, 0x200F},   Range{0x2028, 0x202F},
    Range{0x205F, 0x206F},   Range{0x3000, 0x3000},   Range{0xD800, 0xF8FF},   Range{0xFDD0, 0xFDEF},
    Range{0xFEFF, 0xFEFF},   Range{0xFFF0, 0xFFFB},   Range{0xFFFE, 0xFFFF},   Range{0x110BD, 0x110BD},
    Range{0x110CD, 0x110CD}, Range{0x13430, 0x1343F}, Range{0x1BCA0, 0x1BCA3}, Range{0x1D173, 0x1D17A},
    Range{0xE0000, 0xE00FF}, Range{0xF0000, 0x10FFFF}};

bool is_printable(char32_t rune) {
  return std::ranges::none_of(kUnprintable, [&](const Range& r) { return r.from <= rune && rune <= r.to; });
}

struct Rune {
  char32_t value = 0;
  size_t bytes = 0;  // 0: no UTF-8 at this place
};

Rune rune_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xF0 && first < 0xF5 ? 4
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xC2 && first < 0xE0 ? 2
                                                        : 0;
  if (length == 0 || text.size() < length) return {};
  char32_t value = length == 1 ? first : first & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    value = value << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest.at(length) || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return {};
  return {value, length};
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const Rune rune = rune_at(text);
    const size_t bytes = std::max<size_t>(rune.bytes, 1);
    constexpr std::string_view kNamed = "\a\b\f\n\r\t\v\\\"";
    constexpr std::string_view kNames = "abfnrtv\\\"";
    const size_t named = kNamed.find(text.front());
    if (rune.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (named != std::string_view::npos) {
      out += '\\';
      out += kNames[named];
    } else if (rune.value < 0x20 || rune.value == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(rune.value));
    } else if (is_printable(rune.value)) {
      out += text.substr(0, bytes);
    } else if (rune.value < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(rune.value));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(rune.value));
    }
    text.remove_prefix(bytes);
  }
  out += '"';
}

std::int64_t limit_or(std::int64_t limit, std::int64_t allocatable) { return limit > 0 ? limit : allocatable; }

std::optional<std::int64_t> amount_of(const model::Resources& own, const model::Resources& node,
                                      std::string_view resource) {
  if (resource == "limits.cpu") return limit_or(own.cpu_limit_milli, node.cpu_limit_milli);
  if (resource == "limits.memory") return limit_or(own.memory_limit, node.memory_limit);
  if (resource == "limits.ephemeral-storage") return limit_or(own.ephemeral_limit, node.ephemeral_limit);
  if (resource == "requests.cpu") return own.cpu_request_milli;
  if (resource == "requests.memory") return own.memory_request;
  if (resource == "requests.ephemeral-storage") return own.ephemeral_request;
  return std::nullopt;
}

/// The API server writes a divisor that was not given as 0.
std::optional<std::int64_t> divisor_of(const std::string& text, bool cpu) {
  if (text.empty()) return cpu ? 1000 : 1;
  auto value = cpu ? model::quantity_milli(text) : model::quantity_value(text);
  if (value && *value == 0) return cpu ? 1000 : 1;
  if (value && *value < 0) return std::nullopt;
  return value;
}

}  // namespace

bool is_metadata_field(std::string_view field) { return field.starts_with(kLabels) || field.starts_with(kAnnotations); }

base::Result<std::string> field_value(const model::PodSpec& pod, const Surroundings& read, std::string_view field) {
  if (field == "metadata.name") return pod.key.name.str();
  if (field == "metadata.namespace") return pod.key.ns.str();
  if (field == "metadata.uid") return pod.key.uid.str();
  if (field == "spec.nodeName") return pod.node_name.str();
  if (field == "spec.serviceAccountName") return pod.service_account.str();
  if (field == "status.hostIP" || field == "status.hostIPs") return read.node_ip;
  if (field == kLabels) return format_map(read.metadata.labels);
  if (field == kAnnotations) return format_map(read.metadata.annotations);
  if (const auto key = subscript(field, kLabels)) return value_or_empty(read.metadata.labels, *key);
  if (const auto key = subscript(field, kAnnotations)) return value_or_empty(read.metadata.annotations, *key);
  return base::fail(base::ErrorKind::kInvalid, fmt::format("unsupported fieldPath: {}", field));
}

base::Result<std::string> resource_value(const model::PodSpec& pod, const Surroundings& read,
                                         const model::ResourceRef& ref, std::string_view own) {
  const std::string_view wanted = ref.container.empty() ? own : std::string_view(ref.container);
  const auto containers = all_containers(pod);
  const auto it = std::ranges::find_if(containers, [&](const auto* c) { return c->name.str() == wanted; });
  if (it == containers.end()) {
    return base::fail(base::ErrorKind::kInvalid, fmt::format("container {} not found", wanted));
  }
  const auto amount = amount_of((*it)->resources, read.allocatable, ref.resource);
  if (!amount) return base::fail(base::ErrorKind::kInvalid, "unsupported container resource : " + ref.resource);
  const auto divisor = divisor_of(ref.divisor, ref.resource.ends_with(".cpu"));
  if (!divisor) return base::fail(base::ErrorKind::kInvalid, "the divisor of " + ref.resource + " is no quantity");
  return std::to_string(*amount / *divisor + (*amount % *divisor > 0 ? 1 : 0));
}

std::string format_map(const std::map<std::string, std::string>& map) {
  std::string out;
  for (const auto& [key, value] : map) {
    if (!out.empty()) out += '\n';
    out += key;
    out += '=';
    append_quoted(out, value);
  }
  return out;
}

}  // namespace spillway::core
