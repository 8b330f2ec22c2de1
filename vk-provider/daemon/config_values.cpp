#include "vk-provider/daemon/config_values.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "vk-provider/base/nearest.hpp"

namespace spillway::daemon {
namespace {

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxSubdomain = 253;
constexpr std::size_t kTelling = 3;  // so many letters in common at the beginning are no accident

bool is_lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

}  // namespace

bool is_dns_label(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLabel && is_lower_alnum(text.front()) && is_lower_alnum(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_lower_alnum(c) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  if (text.size() > kMaxSubdomain) return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!is_dns_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_label_value(std::string_view text) {
  if (text.empty()) return true;
  return text.size() <= kMaxLabel && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_qualified_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return !text.empty() && is_label_value(text);
  const std::string_view name = text.substr(slash + 1);
  return is_dns_subdomain(text.substr(0, slash)) && !name.empty() && is_label_value(name);
}

bool is_ip_address(std::string_view text) {
  const std::string terminated(text);
  std::array<unsigned char, sizeof(in6_addr)> buffer{};
  return terminated.find('\0') == std::string::npos && (inet_pton(AF_INET, terminated.c_str(), buffer.data()) == 1 ||
                                                        inet_pton(AF_INET6, terminated.c_str(), buffer.data()) == 1);
}

std::string_view nearest(std::string_view word, std::span<const std::string> known) {
  const std::string wanted = lowered(word);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    // `maxPrice` is far from `maxPricePerHour` by its letters alone.
    const std::string full = lowered(candidate);
    const bool beginning = wanted.size() >= kTelling && (full.starts_with(wanted) || wanted.starts_with(full));
    const std::size_t distance = beginning ? 1 : base::edit_distance(wanted, full);
    // Less than all of it must be wrong, or `b` would be near to `a`.
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string join(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ", ";
    out += word;
  }
  return out;
}

}  // namespace spillway::daemon
