#include "vk-provider/net/http_message.hpp"

#include <algorithm>
#include <array>

namespace spillway::net {
namespace {

constexpr std::array<bool, 256> kTokenChars = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789"
                                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();

bool is_name(std::string_view name) {
  const auto is_token_char = [](char c) { return kTokenChars[static_cast<unsigned char>(c)]; };
  return !name.empty() && std::ranges::all_of(name, is_token_char);
}

/// Looks at all characters even if the first one is wrong: so many are looked at in one step, and hardly one is wrong.
template <class Predicate>
bool all_are(std::string_view text, Predicate is_right) {
  bool right = true;
  for (const char c : text) right &= is_right(static_cast<unsigned char>(c));
  return right;
}

bool is_target(std::string_view target) {
  return target.starts_with('/') && all_are(target, [](unsigned char c) { return (c > ' ') & (c < 0x7f); });
}

bool takes_body(Method method) { return method == Method::kPost || method == Method::kPut || method == Method::kPatch; }

}  // namespace

bool is_header_text(std::string_view text) {
  return all_are(text, [](unsigned char c) { return ((c >= ' ') | (c == '\t')) & (c != 0x7f); });
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

base::Result<void> write_request(const HttpRequest& request, const std::string& host, std::string& out) {
  if (!is_target(request.target)) {
    return base::fail(base::ErrorKind::kInvalid,
                      "the target of a request must begin with / and hold neither spaces nor control characters");
  }
  out.clear();
  out.reserve(512 + request.target.size() + request.body.size());
  out.append(to_string(request.method)).append(" ").append(request.target).append(" HTTP/1.1\r\n");
  append_header(out, "Host", host);
  for (const auto& [name, value] : request.headers) {
    if (!is_name(name) || !is_header_text(value)) {
      return base::fail(base::ErrorKind::kInvalid, "the header \"" + name + "\" holds characters that no header may");
    }
    append_header(out, name, value);
  }
  if (!request.bearer.empty()) {
    if (!is_header_text(request.bearer.reveal())) {
      return base::fail(base::ErrorKind::kInvalid, "the bearer token holds control characters, such as a line's end");
    }
    out.append("Authorization: Bearer ").append(request.bearer.reveal()).append("\r\n");
  }
  if (!request.body.empty()) {
    if (!is_header_text(request.content_type)) {
      return base::fail(base::ErrorKind::kInvalid, "the content type holds control characters");
    }
    if (!request.content_type.empty()) append_header(out, "Content-Type", request.content_type);
  }
  if (!request.body.empty() || takes_body(request.method)) {
    append_header(out, "Content-Length", std::to_string(request.body.size()));
  }
  out.append("\r\n").append(request.body);
  return {};
}

std::vector<Header> copy_headers(const boost::beast::http::fields& fields) {
  std::vector<Header> out;
  for (const auto& field : fields) out.emplace_back(field.name_string(), field.value());
  return out;
}

}  // namespace spillway::net
