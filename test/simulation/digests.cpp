#include "test/simulation/digests.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace spillway::simulation {
namespace {

constexpr size_t kHexDigits = 16;

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Digest> parse_line(std::string_view line) {
  const size_t space = std::min(line.find(' '), line.size());
  const auto seed = number(line.substr(0, space), 10);
  const std::string_view hash = line.substr(std::min(space + 1, line.size()));
  const auto trace = hash.size() == kHexDigits ? number(hash, 16) : std::nullopt;
  if (!seed || !trace) return std::nullopt;
  return Digest{*seed, *trace};
}

}  // namespace

std::string to_text(const Digest& digest) { return fmt::format("{} {:016x}\n", digest.seed, digest.trace); }

base::Result<std::vector<Digest>> parse_digests(std::string_view text) {
  std::vector<Digest> digests;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const auto digest = parse_line(line);
    if (!digest) {
      return base::fail(base::ErrorKind::kInvalid,
                        fmt::format("line {}: expected a seed and the 16 hexadecimal digits of its trace", number));
    }
    digests.push_back(*digest);
  }
  if (digests.empty()) return base::fail(base::ErrorKind::kInvalid, "no digest is in it");
  return digests;
}

}  // namespace spillway::simulation
