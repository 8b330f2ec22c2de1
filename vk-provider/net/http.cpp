#include "vk-provider/net/http.hpp"

#include <algorithm>
#include <charconv>

namespace spillway::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

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
    if (same_name(key, name)) return value;
  }
  return std::nullopt;
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
