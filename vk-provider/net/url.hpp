// URLs: encoding of what goes into a request target, and reading of `http(s)://host:port/path`.
//
// Pure. Does not resolve names and does not know relative references.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

/// Encodes everything but RFC 3986's unreserved characters, so that the text is one segment of a path: `/` -> `%2F`.
std::string encode_path_segment(std::string_view text);
/// The same for a name or value of a query; a space becomes `%20`.
std::string encode_query_value(std::string_view text);

/// Undoes %41; what is no such code stays as it is.
std::string decode_path_segment(std::string_view text);

/// The parameters of a query, decoded: `command=ls&command=-l&tty`.
class Query {
 public:
  explicit Query(std::string_view text);

  /// The first of that name; empty if there is none.
  std::optional<std::string_view> find(std::string_view name) const;
  /// All of that name, in their order.
  std::vector<std::string> all(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

struct Url {
  Url() = default;
  Endpoint endpoint;
  std::string path;  // without a trailing slash; empty for the root. What follows `?` is kept here, too.
};

/// Reads `https://10.0.0.1:6443/prefix`, `http://[::1]:80`. kInvalid with the reason for other schemes, for user
/// information (it would end up in logs), fragments and ports out of range.
base::Result<Url> parse_url(std::string_view text);

/// What stands in the Host header: brackets around IPv6, the port unless it is the scheme's default.
std::string host_header(const Endpoint& endpoint);

}  // namespace spillway::net
