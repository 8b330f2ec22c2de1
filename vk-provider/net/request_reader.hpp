// Bytes of a connection -> one HTTP request, within limits. Of net/ alone.
//
// A value, used for one request. Pure: what it is fed comes from anybody.
#pragma once

#include <cstddef>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "vk-provider/net/http_server.hpp"

namespace spillway::net {

class RequestReader {
 public:
  /// Bytes. `max_header` also bounds what a body in chunks has beside its data: extensions and trailers.
  RequestReader(std::size_t max_header, std::size_t max_body);

  /// Takes what it can from the input. An error is final.
  boost::system::error_code feed(boost::beast::flat_buffer& input);
  bool head_done() const { return parser_.is_header_done(); }
  bool done() const { return parser_.is_done(); }
  /// After the head: the client waits for a word before it sends the body.
  bool wants_continue() const;

  /// After done(): the request, without what the connection knows of its peer.
  HttpServerRequest take();
  /// After done(). False: the answer is the last one on the connection.
  bool keep_alive() const { return parser_.get().keep_alive(); }
  /// After done(). HTTP/1.0 knows no chunks.
  bool knows_chunks() const { return parser_.get().version() >= 11; }

  /// What to answer to a request that cannot be read; 0: nothing, the peer is gone or was too slow.
  static int refusal(const boost::system::error_code& ec);

 private:
  std::size_t max_header_;
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
};

}  // namespace spillway::net
