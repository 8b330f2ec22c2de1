#include "vk-provider/net/http.hpp"

#include <algorithm>
#include <charconv>

namespace spillway::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view to_string(Method method) {
  switch (method) {
    case Method::kGet: return "GET";
    case Method::kHead: return "HEAD";
    case Method::kPost: return "POST";
    case Method::kPut: return "PUT";
    case Method::kPatch: return "PATCH";
    case Method::kDelete: return "DELETE";
  }
  return "GET";
}

std::optional<std::string_view> find_header(const std::vector<Header>& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_word(key, name)) return value;
  }
  return std::nullopt;
}

std::vector<std::string> list_header(const std::vector<Header>& headers, std::string_view name) {
  std::vector<std::string> out;
  for (const auto& [key, value] : headers) {
    if (!same_word(key, name)) continue;
    for (std::string_view rest = value;;) {
      const size_t comma = rest.find(',');
      const std::string_view item = trim(rest.substr(0, comma));
      if (!item.empty()) out.emplace_back(item);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return out;
}

std::optional<std::string_view> HttpResponse::header(std::string_view name) const { return find_header(headers, name); }

std::optional<std::chrono::milliseconds> HttpResponse::retry_after() const {
  const std::optional<std::string_view> text = header("Retry-After");
  if (!text) return std::nullopt;
  std::uint32_t seconds = 0;
  const char* const begin = text->data();
  const char* const end = begin + text->size();
  const auto [stop, error] = std::from_chars(begin, end, seconds);
  if (error != std::errc() || stop != end) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace spillway::net
