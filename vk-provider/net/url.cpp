#include "vk-provider/net/url.hpp"

#include <charconv>

namespace spillway::net {
namespace {

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

/// Empty if it is no number in 1..65535.
std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, port);
  if (error != std::errc() || stop != end || port == 0) return std::nullopt;
  return port;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Takes `host`, `host:port`, `[v6]` or `[v6]:port` apart. Says what is wrong, or nothing.
std::string read_authority(std::string_view authority, Endpoint& endpoint) {
  std::string_view port;
  bool has_port = false;
  if (take_prefix(authority, "[")) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return "the bracket of the IPv6 address is not closed";
    endpoint.host = authority.substr(0, close);
    if (endpoint.host.find(':') == std::string::npos) return "brackets are for IPv6 addresses only";
    port = authority.substr(close + 1);
    has_port = take_prefix(port, ":");
    if (!has_port && !port.empty()) return "there is text between the address and the path";
  } else {
    const size_t colon = authority.find(':');
    endpoint.host = authority.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
    if (port.find(':') != std::string_view::npos) return "an IPv6 address stands in brackets: https://[::1]:6443";
  }
  if (endpoint.host.empty()) return "the host is missing";
  if (has_port) {
    const std::optional<std::uint16_t> number = parse_port(port);
    if (!number) return "the port must be a number from 1 to 65535";
    endpoint.port = *number;
  }
  return {};
}

}  // namespace

std::string encode_path_segment(std::string_view text) { return percent_encode(text); }
std::string encode_query_value(std::string_view text) { return percent_encode(text); }

std::string decode_path_segment(std::string_view text) { return percent_decode(text, false); }

Query::Query(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    const size_t mark = pair.find('=');
    const std::string_view value = mark == std::string_view::npos ? std::string_view() : pair.substr(mark + 1);
    if (!pair.empty()) {
      parameters_.emplace_back(percent_decode(pair.substr(0, mark), true), percent_decode(value, true));
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::string_view> Query::find(std::string_view name) const {
  for (const auto& [key, value] : parameters_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : parameters_) {
    if (key == name) out.push_back(value);
  }
  return out;
}

base::Result<Url> parse_url(std::string_view text) {
  const auto invalid = [text](std::string_view why) {
    // A URL with user information is not repeated: it may hold a password.
    const bool quotable = text.find('@') == std::string_view::npos;
    const std::string shown = quotable ? "\"" + std::string(text) + "\"" : "the URL";
    return base::fail(base::ErrorKind::kInvalid, shown + " is not usable: " + std::string(why));
  };

  Url url;
  std::string_view rest = text;
  if (take_prefix(rest, "https://")) {
    url.endpoint.scheme = Endpoint::Scheme::kHttps;
    url.endpoint.port = 443;
  } else if (take_prefix(rest, "http://")) {
    url.endpoint.scheme = Endpoint::Scheme::kHttp;
    url.endpoint.port = 80;
  } else {
    return invalid("it must begin with https:// or http://");
  }
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return invalid("it holds a space or control character");
  }
  if (rest.find('#') != std::string_view::npos) return invalid("a fragment (#) has no meaning here");

  const size_t path_at = rest.find_first_of("/?");
  const std::string_view authority = rest.substr(0, path_at);
  if (authority.find('@') != std::string_view::npos) return invalid("user information in the URL is not supported");
  const std::string problem = read_authority(authority, url.endpoint);
  if (!problem.empty()) return invalid(problem);

  if (path_at != std::string_view::npos) url.path = rest.substr(path_at);
  while (url.path.ends_with('/')) url.path.pop_back();
  return url;
}

std::string host_header(const Endpoint& endpoint) {
  if (endpoint.scheme == Endpoint::Scheme::kUnix) return "localhost";
  const bool is_v6 = endpoint.host.find(':') != std::string::npos;
  std::string out = is_v6 ? "[" + endpoint.host + "]" : endpoint.host;
  const std::uint16_t usual = endpoint.scheme == Endpoint::Scheme::kHttps ? 443 : 80;
  if (endpoint.port != usual) out += ":" + std::to_string(endpoint.port);
  return out;
}

}  // namespace spillway::net
