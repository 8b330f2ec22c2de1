#include "vk-provider/net/http_exchange.hpp"

#include <cstring>

#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>

namespace spillway::net {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using base::ErrorKind;

namespace {

// A connection that once sent something large does not keep the room for it.
constexpr size_t kKeptOutput = 64 * 1024;

}  // namespace

async::Task<void> Exchange::write(base::Deadline deadline) {
  connection_.watchdog().arm(deadline);
  // The last thing before the write, with no wait in between.
  if (connection_.clock().now() >= deadline) {
    co_return base::fail(ErrorKind::kDeadline, "the time for a request to " + peer_ + " was over before it was sent");
  }
  std::string& bytes = connection_.output();
  const auto [ec, n] =
      co_await asio::async_write(connection_, asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  // The head may hold a token.
  explicit_bzero(bytes.data(), bytes.size());
  if (bytes.capacity() > kKeptOutput) bytes = std::string();
  sent_ = n > 0;
  if (!ec) co_return base::Result<void>();
  co_return base::fail(failure(ec, was_cancelled(co_await asio::this_coro::cancellation_state)));
}

base::Error Exchange::failure(const boost::system::error_code& ec, bool cancelled) const {
  if (cancelled) return base::Error(ErrorKind::kCancelled, "the request to " + peer_ + " was cancelled");
  const bool may_have_happened = sent_ && !is_read_;
  if (connection_.expired()) {
    const char* const what = answered_ ? " was not answered completely in time" : " was not answered in time";
    return base::Error(may_have_happened ? ErrorKind::kUnknownOutcome : ErrorKind::kDeadline,
                       "a request to " + peer_ + what);
  }
  if (ec == http::error::body_limit || ec == http::error::header_limit) {
    return base::Error(may_have_happened ? ErrorKind::kUnknownOutcome : ErrorKind::kInvalid,
                       "the answer of " + peer_ + " is larger than is allowed here");
  }
  std::string message = sent_ ? "the answer of " + peer_ + (answered_ ? " broke off: " : " did not come: ")
                              : "a request could not be sent to " + peer_ + ": ";
  return base::Error(may_have_happened ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable, message + ec.message());
}

}  // namespace spillway::net
