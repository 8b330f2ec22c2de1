#include "vk-provider/net/request_reader.hpp"

#include <stdexcept>
#include <utility>

#include <boost/beast/http/error.hpp>

#include "vk-provider/net/http_message.hpp"

namespace spillway::net {
namespace http = boost::beast::http;

RequestReader::RequestReader(std::size_t max_header, std::size_t max_body) : max_header_(max_header) {
  parser_.eager(true);
  parser_.header_limit(static_cast<std::uint32_t>(max_header));
  parser_.body_limit(max_body);
}

boost::system::error_code RequestReader::feed(boost::beast::flat_buffer& input) {
  // Beast looks at the end of a chunked body again from its beginning, and takes for granted that all of it is there.
  constexpr std::size_t kShortestEnd = 5;  // 0\r\n\r\n
  if (parser_.is_header_done() && parser_.chunked() && input.size() < kShortestEnd) return {};
  boost::system::error_code ec;
  try {
    const std::size_t used = parser_.put(input.data(), ec);
    input.consume(used);
  } catch (const std::length_error&) {
    // For a header of 64 KiB Beast has no room, whatever the limit.
    return http::error::header_limit;
  }
  if (ec != http::error::need_more) return ec;
  // The parser has no limit for what comes after the head and is no data: it would be collected without end.
  if (input.size() > max_header_) return http::error::header_limit;
  return {};
}

bool RequestReader::wants_continue() const { return parser_.get()[http::field::expect] == "100-continue"; }

HttpServerRequest RequestReader::take() {
  auto& message = parser_.get();
  HttpServerRequest request;
  request.method = message.method_string();
  request.target = message.target();
  request.headers = copy_headers(message);
  request.body = std::move(message.body());
  return request;
}

int RequestReader::refusal(const boost::system::error_code& ec) {
  if (ec == http::error::body_limit) return 413;
  if (ec == http::error::header_limit) return 431;
  const boost::system::error_category& http_errors = http::make_error_code(http::error::end_of_stream).category();
  if (ec.category() != http_errors || ec == http::error::partial_message || ec == http::error::end_of_stream) return 0;
  return 400;
}

}  // namespace spillway::net
