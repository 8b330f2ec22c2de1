#include "vk-provider/model/image_name.hpp"

#include <algorithm>

namespace spillway::model {
namespace {

constexpr size_t kMaxName = 255;
constexpr size_t kMaxTag = 128;
constexpr size_t kMinDigestHex = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_word(char c) { return is_digit(c) || is_lower(c) || is_upper(c) || c == '_'; }

/// Letters and digits with single separators between: `.`, `_`, `__` or any number of `-`.
bool is_path_component(std::string_view text) {
  const auto plain = [](char c) { return is_lower(c) || is_digit(c); };
  if (text.empty() || !plain(text.front()) || !plain(text.back())) return false;
  for (size_t i = 0; i < text.size();) {
    if (plain(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (!plain(text[end])) ++end;  // the last character is plain
    const std::string_view separator = text.substr(i, end - i);
    const bool dashes = separator.find_first_not_of('-') == std::string_view::npos;
    if (!dashes && separator != "." && separator != "_" && separator != "__") return false;
    i = end;
  }
  return true;
}

bool is_port(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

bool is_host(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos || close == 1) return false;
    const std::string_view inside = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    return std::ranges::all_of(inside, [](char c) { return is_hex(c) || c == ':'; }) &&
           (rest.empty() || (rest.front() == ':' && is_port(rest.substr(1))));
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && !is_port(text.substr(colon + 1))) return false;
  std::string_view name = text.substr(0, colon);
  while (true) {
    const size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    const auto plain = [](char c) { return is_lower(c) || is_upper(c) || is_digit(c); };
    if (part.empty() || !plain(part.front()) || !plain(part.back())) return false;
    if (!std::ranges::all_of(part, [&](char c) { return plain(c) || c == '-'; })) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

bool is_tag(std::string_view text) {
  if (text.empty() || text.size() > kMaxTag || !is_word(text.front())) return false;
  return std::ranges::all_of(text, [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

/// algorithm:hex, the algorithm in components with `+._-` between.
bool is_digest(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view algorithm = text.substr(0, colon);
  const std::string_view hex = text.substr(colon + 1);
  const auto plain = [](char c) { return is_lower(c) || is_upper(c) || is_digit(c); };
  return (is_lower(algorithm.front()) || is_upper(algorithm.front())) && plain(algorithm.back()) &&
         std::ranges::all_of(algorithm,
                             [&](char c) { return plain(c) || c == '+' || c == '.' || c == '-' || c == '_'; }) &&
         hex.size() >= kMinDigestHex && std::ranges::all_of(hex, is_hex);
}

/// The first component is a host if it cannot be a path's: it has a dot, a colon or upper case, or is localhost.
bool looks_like_host(std::string_view text) {
  return text.find_first_of(".:[") != std::string_view::npos || text == "localhost" ||
         std::ranges::any_of(text, is_upper);
}

std::string wrong(std::string_view image, std::string_view what) {
  return "'" + std::string(image) + "' is no name of an image: " + std::string(what);
}

}  // namespace

std::optional<std::string> image_name_fault(std::string_view image) {
  if (image.empty()) return "no image is named";
  if (image.find("://") != std::string_view::npos) return wrong(image, "leave out what stands before and with ://");
  if (image.find_first_of(" \t\r\n") != std::string_view::npos) return wrong(image, "it has white space in it");
  std::string_view name = image;
  if (const size_t at = name.find('@'); at != std::string_view::npos) {
    if (!is_digest(name.substr(at + 1))) return wrong(image, "what follows @ is no digest");
    name = name.substr(0, at);
  }
  size_t slash = name.rfind('/');
  const size_t colon = name.find(':', slash == std::string_view::npos ? 0 : slash);
  if (colon != std::string_view::npos) {
    if (!is_tag(name.substr(colon + 1))) return wrong(image, "what follows the colon is no tag");
    name = name.substr(0, colon);
  }
  if (name.size() > kMaxName) return wrong(image, "it is longer than 255 characters");
  slash = name.find('/');
  if (slash != std::string_view::npos && looks_like_host(name.substr(0, slash))) {
    if (!is_host(name.substr(0, slash))) return wrong(image, "its registry is no host name");
    name.remove_prefix(slash + 1);
  }
  if (std::ranges::any_of(name, is_upper)) return wrong(image, "it must be in lower case");
  while (true) {
    slash = name.find('/');
    if (!is_path_component(name.substr(0, slash))) {
      return wrong(image, "its parts are letters and digits with single . _ or - between");
    }
    if (slash == std::string_view::npos) return std::nullopt;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace spillway::model
