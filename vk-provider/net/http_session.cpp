#include "vk-provider/net/http_session.hpp"

#include <array>
#include <charconv>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>

#include "vk-provider/async/side_by_side.hpp"
#include "vk-provider/net/http_exchange.hpp"
#include "vk-provider/net/http_message.hpp"
#include "vk-provider/net/raw_stream.hpp"
#include "vk-provider/net/request_reader.hpp"

namespace spillway::net {
namespace asio = boost::asio;

namespace {

constexpr base::Duration kLinger = std::chrono::seconds(1);
constexpr const char* kPeer = "the client";

/// Status line and headers but for those that say how long the body is. No empty line.
std::string begin_head(const HttpServerResponse& response, bool has_body) {
  namespace http = boost::beast::http;
  std::string out;
  const std::string_view reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(reason).append("\r\n");
  if (has_body) append_header(out, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) {
    // A value that would end its line came from outside: better no header than a forged one.
    if (is_header_text(value)) append_header(out, name, value);
  }
  return out;
}

std::string chunk_of(std::string_view piece) {
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), piece.size(), 16).ptr;
  std::string out;
  out.reserve(piece.size() + size.size() + 4);
  out.append(size.data(), end).append("\r\n").append(piece).append("\r\n");
  return out;
}

/// Counts a stream for as long as it lives.
class StreamCount {
 public:
  explicit StreamCount(std::size_t& count) : count_(count) { ++count_; }
  StreamCount(const StreamCount&) = delete;
  StreamCount& operator=(const StreamCount&) = delete;
  ~StreamCount() { --count_; }

 private:
  std::size_t& count_;
};

}  // namespace

asio::awaitable<void> HttpSession::run() {
  if (shared_.tls != nullptr) {
    limit(config_.header_time);
    const auto [ec] = co_await lease_->start_tls(*shared_.tls)
                          .async_handshake(TlsStream::Role::kServer, asio::as_tuple(asio::use_awaitable));
    if (ec) co_return;
  }
  while (!last_) {
    HttpServerRequest request;
    Exchanged exchanged;
    if (!co_await read_request(request, exchanged)) co_return;
    lease_->watchdog().disarm();
    HttpServerResponse response = co_await shared_.handler(std::move(request));
    if (!co_await answer(std::move(response), exchanged)) co_return;
  }
}

void HttpSession::finish() {
  last_ = true;
  if (between_requests_) lease_->close();
}

asio::awaitable<bool> HttpSession::answer(HttpServerResponse response, Exchanged exchanged) {
  if (response.hang_up) co_return false;
  exchanged.keep_alive = exchanged.keep_alive && !last_;
  const bool streams = response.take_over || response.stream;
  if (streams && shared_.streams >= config_.max_streams) {
    HttpServerResponse refused;
    refused.status = 503;
    refused.body = "there are as many streams as there may be: " + std::to_string(config_.max_streams) + "\n";
    co_return co_await write_response(refused, exchanged);
  }
  if (!streams) co_return co_await write_response(response, exchanged);
  const StreamCount count(shared_.streams);
  if (!response.take_over) co_return co_await write_stream(std::move(response), exchanged);
  TakeOver take_over = std::move(response.take_over);
  auto stream = std::make_unique<RawStream>(lease_.release(), kPeer);
  co_await take_over(std::move(stream));
  co_return false;
}

asio::awaitable<bool> HttpSession::read_request(HttpServerRequest& request, Exchanged& exchanged) {
  Connection& connection = *lease_;
  RequestReader reader(config_.max_header, config_.max_body);
  between_requests_ = connection.input().size() == 0;
  limit(between_requests_ ? config_.idle_time : config_.header_time);
  bool in_body = false;
  while (!reader.done()) {
    boost::system::error_code ec;
    if (connection.input().size() > 0) {
      ec = reader.feed(connection.input());
      if (!ec && reader.done()) break;
    }
    if (!ec && reader.head_done() && !in_body) {
      in_body = true;
      limit(config_.transfer_time);
      if (reader.wants_continue()) {
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
    HttpServerResponse response;
    response.status = RequestReader::refusal(ec);
    if (response.status != 0) {
      response.body = "the request cannot be served: " + ec.message() + "\n";
      exchanged.keep_alive = false;
      co_await write_response(response, exchanged);
      co_await linger();
    }
    co_return false;
  }
  between_requests_ = false;
  request = reader.take();
  request.from_loopback = from_loopback_;
  if (shared_.verifier && connection.tls() != nullptr) {
    request.peer_certificate = shared_.verifier->look_at(connection.tls()->native_handle());
  }
  exchanged.keep_alive = reader.keep_alive();
  exchanged.chunks = reader.knows_chunks();
  exchanged.head = request.method == "HEAD";
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

asio::awaitable<bool> HttpSession::write_response(const HttpServerResponse& response, Exchanged exchanged) {
  std::string& out = lease_->output();
  // RFC 9110: these have no body, whatever the handler put there.
  const bool bodiless = response.status == 204 || response.status == 304;
  out = begin_head(response, !response.body.empty() && !bodiless);
  if (!bodiless) append_header(out, "Content-Length", std::to_string(response.body.size()));
  if (!exchanged.keep_alive) append_header(out, "Connection", "close");
  out += "\r\n";
  if (!exchanged.head && !bodiless) out += response.body;
  co_return co_await write_output() && exchanged.keep_alive;
}

asio::awaitable<bool> HttpSession::write_stream(HttpServerResponse response, Exchanged exchanged) {
  std::string& out = lease_->output();
  const bool keep_alive = exchanged.keep_alive && exchanged.chunks;
  out = begin_head(response, true);
  if (exchanged.chunks) append_header(out, "Transfer-Encoding", "chunked");
  if (!keep_alive) append_header(out, "Connection", "close");
  out += "\r\n";
  const bool head_written = co_await write_output();
  lease_->watchdog().disarm();
  if (!head_written || exchanged.head) co_return head_written&& keep_alive;
  const auto sent =
      co_await async::first_of(async::together(pump(*response.stream, exchanged.chunks), wait_for_end_of_peer()));
  co_return sent&& keep_alive;
}

/// Succeeds when the body has gone out to its end.
async::Task<void> HttpSession::pump(async::ByteStream& body, bool chunks) {
  for (;;) {
    base::Result<std::string> piece = co_await body.read(base::Deadline::max());
    if (!piece) co_return base::fail(std::move(piece.error()));
    const bool last = piece->empty();
    if (last && !chunks) co_return base::Result<void>();
    const std::string bytes = last ? "0\r\n\r\n" : chunks ? chunk_of(*piece) : *std::move(piece);
    lease_->write_watchdog().arm(lease_->clock().now() + config_.stall_time);
    const auto [ec, n] = co_await asio::async_write(*lease_, asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
    lease_->write_watchdog().disarm();
    if (ec) co_return base::fail(stream_failure(kPeer, ec, false, false));
    if (last) co_return base::Result<void>();
  }
}

/// Nothing is expected of the client while it is answered: what it says is kept for the next request, but not much.
async::Task<void> HttpSession::wait_for_end_of_peer() {
  while (lease_->input().size() < config_.max_header) {
    const boost::system::error_code ec = co_await fill(*lease_);
    if (ec) co_return base::fail(stream_failure(kPeer, ec, false, false));
  }
  co_return base::fail(base::ErrorKind::kInvalid, "the client talks while it is answered");
}

asio::awaitable<bool> HttpSession::write_output() {
  limit(config_.transfer_time);
  const auto [ec, n] =
      co_await asio::async_write(*lease_, asio::buffer(lease_->output()), asio::as_tuple(asio::use_awaitable));
  co_return !ec;
}

}  // namespace spillway::net
