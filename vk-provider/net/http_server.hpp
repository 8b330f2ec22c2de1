// A small HTTP/1.1 server: admin port, fake cloud, kubelet API.
//
// Owned by a component, which awaits stop() before it dies; reactor thread only. One handler answers all requests, each
// in the coroutine of its connection. Everything that a peer may hold on to is limited: connections, header, body,
// time. Does not route, authenticate, compress or log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

struct HttpServerRequest {
  HttpServerRequest() = default;
  std::string method;  // as sent: GET
  std::string target;  // path and query, still encoded
  std::vector<Header> headers;
  std::string body;
  bool from_loopback = false;  // a loopback address or a Unix socket

  /// Case-insensitive; the first of that name.
  std::optional<std::string_view> header(std::string_view name) const { return find_header(headers, name); }
  /// The target up to `?`.
  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  /// What follows `?`; empty without one.
  std::string_view query() const {
    const size_t mark = target.find('?');
    return mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
  }
};

struct HttpServerResponse {
  HttpServerResponse() = default;
  HttpServerResponse(int code, std::string type, std::string text)
      : status(code), content_type(std::move(type)), body(std::move(text)) {}
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<Header> headers;  // more than Content-Type, Content-Length and Connection
  std::string body;
  bool hang_up = false;  // closes the connection without an answer: for servers that imitate a broken network
};

struct HttpServerConfig {
  HttpServerConfig() = default;
  std::string host = "127.0.0.1";  // an address, not a name
  std::uint16_t port = 0;          // 0: a free one, see port()
  std::string unix_path;           // set: listens there instead; the directory guards it and is the caller's
  std::string cert_pem;            // set: TLS (TCP only)
  base::Secret key_pem;

  std::size_t max_header = 16 * 1024;
  std::size_t max_body = 8 * 1024 * 1024;
  std::size_t max_connections = 256;  // more wait in the kernel's queue
  base::Duration idle_time{std::chrono::seconds(60)};
  base::Duration header_time{std::chrono::seconds(10)};    // from the first byte to the end of the headers
  base::Duration transfer_time{std::chrono::seconds(30)};  // for a body to come, or an answer to be taken
};

class HttpServer {
 public:
  /// Its errors are answers, too: it does not throw, but for cancellation.
  using Handler = std::function<boost::asio::awaitable<HttpServerResponse>(HttpServerRequest)>;

  HttpServer(boost::asio::any_io_executor executor, async::Timers& timers, HttpServerConfig config, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Begins to listen. kInvalid for an address, path or certificate that cannot be used; kConflict if somebody else
  /// listens there.
  base::Result<void> start();
  /// After start(), for TCP.
  std::uint16_t port() const;
  std::size_t connections() const;

  /// Accepts no more, ends idle connections at once and the others after their answer, or at the deadline.
  boost::asio::awaitable<void> stop(base::Deadline deadline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::net
