#include "providers/docker/image_reference.hpp"

#include <algorithm>

namespace spillway::providers::docker {
namespace {

constexpr size_t kLongestRepository = 255;
constexpr size_t kLongestTag = 128;
constexpr size_t kShortestDigest = 32;

bool is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

/// Lower-case runs with one of `.`, `_`, `__` or dashes between them.
bool is_path_component(std::string_view text) {
  size_t i = 0;
  const auto run = [&] {
    const size_t begin = i;
    while (i < text.size() && is_lower(text[i])) ++i;
    return i > begin;
  };
  if (!run()) return false;
  while (i < text.size()) {
    if (text[i] == '-') {
      while (i < text.size() && text[i] == '-') ++i;
    } else if (text.substr(i).starts_with("__")) {
      i += 2;
    } else if (text[i] == '.' || text[i] == '_') {
      ++i;
    } else {
      return false;
    }
    if (!run()) return false;
  }
  return true;
}

/// The first component is a registry if it could not be a path: it has a dot, a port, capitals, or is localhost.
bool looks_like_registry(std::string_view text) {
  return text == "localhost" || text.find_first_of(".:") != std::string_view::npos ||
         std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_registry(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos || close < 2) return false;
    const std::string_view address = text.substr(1, close - 1);
    if (!std::all_of(address.begin(), address.end(), [](char c) { return is_hex(c) || c == ':'; })) return false;
    text = text.substr(close + 1);
    if (text.empty()) return true;
    return text.size() > 1 && text[0] == ':' &&
           std::all_of(text.begin() + 1, text.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || !std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    text = text.substr(0, colon);
  }
  while (true) {
    const size_t dot = text.find('.');
    const std::string_view label = text.substr(0, dot);
    if (label.empty() || !is_alnum(label.front()) || !is_alnum(label.back()) ||
        !std::all_of(label.begin(), label.end(), [](char c) { return is_alnum(c) || c == '-'; })) {
      return false;
    }
    if (dot == std::string_view::npos) return true;
    text = text.substr(dot + 1);
  }
}

bool is_tag(std::string_view text) {
  if (text.empty() || text.size() > kLongestTag || text.front() == '.' || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view algorithm = text.substr(0, colon);
  const std::string_view hex = text.substr(colon + 1);
  return std::all_of(algorithm.begin(), algorithm.end(),
                     [](char c) { return is_alnum(c) || c == '+' || c == '.' || c == '_' || c == '-'; }) &&
         hex.size() >= kShortestDigest && std::all_of(hex.begin(), hex.end(), is_hex);
}

bool is_repository(std::string_view text) {
  if (text.empty() || text.size() > kLongestRepository) return false;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos && looks_like_registry(text.substr(0, slash))) {
    if (!is_registry(text.substr(0, slash))) return false;
    text = text.substr(slash + 1);
  }
  while (true) {
    const size_t end = text.find('/');
    if (!is_path_component(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text = text.substr(end + 1);
  }
}

std::unexpected<base::Error> malformed(std::string_view name, std::string_view why) {
  return base::fail(base::ErrorKind::kImage, "couldn't parse image name \"" + std::string(name) +
                                                 "\": invalid reference format" + std::string(why));
}

}  // namespace

base::Result<ImageReference> parse_image(std::string_view name) {
  ImageReference reference;
  std::string_view rest = name;
  const size_t at = rest.find('@');
  if (at != std::string_view::npos) {
    reference.digest = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!is_digest(reference.digest)) return malformed(name, ": the digest is not algorithm:hexadecimal digits");
  }
  const size_t colon = rest.rfind(':');
  const size_t slash = rest.rfind('/');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    reference.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!is_tag(reference.tag)) return malformed(name, ": the tag has characters that are not allowed");
  }
  if (!is_repository(rest)) {
    const bool capitals = std::any_of(rest.begin(), rest.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    return malformed(name, capitals ? ": repository name must be lowercase" : "");
  }
  reference.repository = rest;
  if (reference.tag.empty() && reference.digest.empty()) reference.tag = "latest";
  return reference;
}

}  // namespace spillway::providers::docker
