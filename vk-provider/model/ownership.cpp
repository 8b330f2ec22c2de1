#include "vk-provider/model/ownership.hpp"

#include <array>
#include <charconv>

namespace spillway::model {
namespace {

// RFC 4648 base32 in lower case, without padding.
constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
constexpr size_t kUuidBytes = 16;
constexpr size_t kUuidChars = 26;
constexpr int kMaxAttempt = 99999;

std::string base32(const std::uint8_t* bytes, size_t size) {
  std::string out;
  out.reserve((size * 8 + 4) / 5);
  std::uint32_t buffer = 0;
  int bits = 0;
  for (size_t i = 0; i < size; ++i) {
    buffer = (buffer << 8) | bytes[i];
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      out += kAlphabet[(buffer >> bits) & 31U];
    }
    buffer &= (1U << bits) - 1U;
  }
  if (bits > 0) out += kAlphabet[(buffer << (5 - bits)) & 31U];
  return out;
}

/// Place in the alphabet; -1 for what does not stand in it.
int base32_value(char c) {
  if (c >= 'a' && c <= 'z') return c - 'a';
  if (c >= '2' && c <= '7') return c - '2' + 26;
  return -1;
}

using Uuid = std::array<std::uint8_t, kUuidBytes>;

/// `text` has kUuidChars.
std::optional<Uuid> uuid_from_base32(std::string_view text) {
  Uuid out{};
  size_t filled = 0;
  std::uint32_t buffer = 0;
  int bits = 0;
  for (const char c : text) {
    const int value = base32_value(c);
    if (value < 0) return std::nullopt;
    buffer = (buffer << 5) | static_cast<std::uint32_t>(value);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      out.at(filled++) = static_cast<std::uint8_t>((buffer >> bits) & 0xFFU);
    }
    buffer &= (1U << bits) - 1U;
  }
  if (buffer != 0) return std::nullopt;  // bits that base32() would never have written
  return out;
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool is_dash_position(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Uuid out{};
  size_t nibble = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_dash_position(i)) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int value = hex(text[i]);
    if (value < 0) return std::nullopt;
    auto& byte = out.at(nibble / 2);
    byte = static_cast<std::uint8_t>((byte << 4) | value);
    ++nibble;
  }
  return out;
}

std::string format_uuid(const Uuid& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (const std::uint8_t b : bytes) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15U];
    if (is_dash_position(out.size())) out += '-';
  }
  return out;
}

}  // namespace

Ownership::Ownership(const std::array<std::uint8_t, 32>& digest) : prefix_("spw-" + base32(digest.data(), 8) + "-") {}

std::optional<base::InstanceTag> Ownership::make_tag(const base::PodUid& uid, int attempt) const {
  const auto bytes = parse_uuid(uid.str());
  if (!bytes || attempt < 1 || attempt > kMaxAttempt) return std::nullopt;
  return base::InstanceTag(prefix_ + base32(bytes->data(), bytes->size()) + "-" + std::to_string(attempt));
}

std::optional<Ownership::Parsed> Ownership::parse(const base::InstanceTag& tag) const {
  std::string_view text = tag.str();
  if (prefix_.empty() || !text.starts_with(prefix_)) return std::nullopt;
  text.remove_prefix(prefix_.size());
  if (text.size() < kUuidChars + 2 || text[kUuidChars] != '-') return std::nullopt;
  const auto bytes = uuid_from_base32(text.substr(0, kUuidChars));
  if (!bytes) return std::nullopt;

  const std::string_view number = text.substr(kUuidChars + 1);
  Parsed parsed;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), parsed.attempt);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  if (number.front() == '0' || parsed.attempt < 1 || parsed.attempt > kMaxAttempt) return std::nullopt;
  parsed.uid = base::PodUid(format_uuid(*bytes));
  return parsed;
}

}  // namespace spillway::model
