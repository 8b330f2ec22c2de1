#include "vk-provider/net/http_session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include "vk-provider/net/http_exchange.hpp"
#include "vk-provider/net/http_message.hpp"

namespace spillway::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

constexpr base::Duration kLinger = std::chrono::seconds(1);

using RequestParser = http::request_parser<http::string_body>;

/// What to say to a request that cannot be read; 0: nothing, the peer is gone or was too slow.
int refusal(const boost::system::error_code& ec) {
  if (ec == http::error::body_limit) return 413;
  if (ec == http::error::header_limit) return 431;
  const boost::system::error_category& http_errors = http::make_error_code(http::error::end_of_stream).category();
  if (ec.category() != http_errors || ec == http::error::partial_message || ec == http::error::end_of_stream) return 0;
  return 400;
}

}  // namespace

asio::awaitable<void> HttpSession::run(TlsContext* tls) {
  if (tls != nullptr) {
    limit(config_.header_time);
    const auto [ec] = co_await lease_->start_tls(*tls).async_handshake(asio::ssl::stream_base::server,
                                                                       asio::as_tuple(asio::use_awaitable));
    if (ec) co_return;
  }
  while (!last_) {
    HttpServerRequest request;
    bool keep_alive = true;
    if (!co_await read_request(request, keep_alive)) co_return;
    lease_->watchdog().disarm();
    const bool head = request.method == "HEAD";
    const HttpServerResponse response = co_await handler_(std::move(request));
    if (response.hang_up) co_return;
    keep_alive = keep_alive && !last_;
    if (!co_await write_response(response, keep_alive, head) || !keep_alive) co_return;
  }
}

void HttpSession::finish() {
  last_ = true;
  if (between_requests_) lease_->close();
}

asio::awaitable<bool> HttpSession::read_request(HttpServerRequest& request, bool& keep_alive) {
  Connection& connection = *lease_;
  RequestParser parser;
  parser.eager(true);
  parser.header_limit(static_cast<std::uint32_t>(config_.max_header));
  parser.body_limit(config_.max_body);

  between_requests_ = connection.input().size() == 0;
  limit(between_requests_ ? config_.idle_time : config_.header_time);
  bool in_body = false;
  while (!parser.is_done()) {
    boost::system::error_code ec;
    if (connection.input().size() > 0) {
      ec = parse_input(connection, parser);
      if (!ec && parser.is_done()) break;
    }
    if (!ec && parser.is_header_done() && !in_body) {
      in_body = true;
      limit(config_.transfer_time);
      if (parser.get()[http::field::expect] == "100-continue") {
        connection.output() = "HTTP/1.1 100 Continue\r\n\r\n";
        if (!co_await write_output()) co_return false;
      }
    }
    if (!ec) {
      ec = co_await fill(connection);
      if (!ec && between_requests_) {
        between_requests_ = false;
        limit(config_.header_time);
      }
    }
    if (!ec) continue;
    const int status = refusal(ec);
    if (status != 0) {
      HttpServerResponse response;
      response.status = status;
      response.body = "the request cannot be served: " + ec.message() + "\n";
      if (co_await write_response(response, false, false)) co_await linger();
    }
    co_return false;
  }
  between_requests_ = false;

  auto& message = parser.get();
  request.method = message.method_string();
  request.target = message.target();
  request.headers = copy_headers(message);
  request.body = std::move(message.body());
  request.from_loopback = from_loopback_;
  keep_alive = message.keep_alive();
  co_return true;
}

asio::awaitable<void> HttpSession::linger() {
  lease_->shutdown_send();
  limit(kLinger);
  boost::system::error_code ec;
  while (!ec) {
    lease_->input().consume(lease_->input().size());
    ec = co_await fill(*lease_);
  }
}

asio::awaitable<bool> HttpSession::write_response(const HttpServerResponse& response, bool keep_alive,
                                                  bool without_body) {
  std::string& out = lease_->output();
  // RFC 9110: these have no body, whatever the handler put there.
  const bool bodiless = response.status == 204 || response.status == 304;
  out.clear();
  const std::string_view reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(reason).append("\r\n");
  if (!response.body.empty() && !bodiless) append_header(out, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) {
    // A value that would end its line came from outside: better no header than a forged one.
    if (is_header_text(value)) append_header(out, name, value);
  }
  if (!bodiless) {
    append_header(out, "Content-Length", std::to_string(response.body.size()));
  }
  if (!keep_alive) append_header(out, "Connection", "close");
  out += "\r\n";
  if (!without_body && !bodiless) out += response.body;
  co_return co_await write_output();
}

asio::awaitable<bool> HttpSession::write_output() {
  limit(config_.transfer_time);
  const auto [ec, n] =
      co_await asio::async_write(*lease_, asio::buffer(lease_->output()), asio::as_tuple(asio::use_awaitable));
  co_return !ec;
}

}  // namespace spillway::net
