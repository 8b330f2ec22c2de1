// A server for one request on a connection in memory: what net::HttpServer does on sockets, in virtual time.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/net/http_server.hpp"
#include "vk-provider/net/request_reader.hpp"

namespace spillway::test {

using OneRequestHandler = std::function<net::HttpServerResponse(net::HttpServerRequest)>;

/// Reads the head of a request, and hands the connection over if the handler takes it. Otherwise status, headers and
/// body of the answer are written, and the connection closes.
inline async::Loop serve_one_request(async::ByteStreamPtr connection, OneRequestHandler handler) {
  boost::beast::flat_buffer input;
  net::RequestReader reader(16 * 1024, 16 * 1024);
  while (!reader.done()) {
    const auto bytes = co_await connection->read(base::Deadline::max());
    if (!bytes || bytes->empty()) co_return;
    boost::asio::buffer_copy(input.prepare(bytes->size()), boost::asio::buffer(*bytes));
    input.commit(bytes->size());
    if (reader.feed(input)) co_return;
  }
  net::HttpServerResponse response = handler(reader.take());
  if (response.take_over) {
    co_await response.take_over(std::move(connection));
    co_return;
  }
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " -\r\n";
  for (const auto& [name, value] : response.headers) out += name + ": " + value + "\r\n";
  out += "Content-Length: " + std::to_string(response.body.size()) + "\r\n\r\n" + response.body;
  static_cast<void>(co_await connection->write(std::move(out), base::Deadline::max()));
}

}  // namespace spillway::test
