// HTTP/1.1 messages: requests as bytes, and the parts of answers that client and server share. Of net/ alone.
//
// Pure, but for Beast's parser types.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/beast/http/fields.hpp>

#include "vk-provider/base/error.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

/// Puts head and body of a request into `out`, to be written in one go. kInvalid if the target or a header holds what
/// would end its line.
base::Result<void> write_request(const HttpRequest& request, const std::string& host, std::string& out);

/// Appends `Name: value` and the end of the line.
void append_header(std::string& out, std::string_view name, std::string_view value);

/// True if the text can stand in a header: no control characters but the tab.
bool is_header_text(std::string_view text);

std::vector<Header> copy_headers(const boost::beast::http::fields& fields);

}  // namespace spillway::net
