// One request and the head of its answer on one connection: what send() and open() have in common. Of net/ alone.
//
// Owned by a coroutine of the client; reactor thread only. Knows what may have happened when it breaks off, and so
// which kind of error that is. Does not close or pool the connection.
#pragma once

#include <string>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include "vk-provider/async/task.hpp"
#include "vk-provider/net/connection.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

class Exchange {
 public:
  Exchange(Connection& connection, const std::string& peer, bool is_read)
      : connection_(connection), peer_(peer), is_read_(is_read) {}

  /// Writes connection.output(), unless the deadline has passed. The watchdog is armed with it and stays so.
  async::Task<void> write(base::Deadline deadline);

  /// Reads until the parser has the head of the final answer; interim answers (1xx, but not 101) are skipped. `slot` is
  /// an optional or a unique_ptr of a parser; `make(slot)` puts a fresh one there.
  template <class Slot, class Make>
  async::Task<void> read_head(Slot& slot, Make make);
  /// Reads until the parser is done.
  template <class Parser>
  async::Task<void> read_rest(Parser& parser);

  /// True if any byte of the answer has come.
  bool answered() const { return answered_; }

  /// What a failure at this point means. `cancelled`: the calling task was.
  base::Error failure(const boost::system::error_code& ec, bool cancelled) const;

 private:
  Connection& connection_;
  const std::string& peer_;
  bool is_read_;
  bool sent_ = false;
  bool answered_ = false;
};

/// Reads what there is into connection.input().
inline boost::asio::awaitable<boost::system::error_code> fill(Connection& connection) {
  // As much as a TLS record holds.
  constexpr size_t kChunk = 16 * 1024;
  const auto [ec, n] = co_await connection.async_read_some(connection.input().prepare(kChunk),
                                                           boost::asio::as_tuple(boost::asio::use_awaitable));
  connection.input().commit(n);
  co_return ec;
}

/// Gives the parser what is in connection.input(). An error that only says "more" is none.
template <class Parser>
boost::system::error_code parse_input(Connection& connection, Parser& parser) {
  boost::system::error_code ec;
  const size_t used = parser.put(connection.input().data(), ec);
  connection.input().consume(used);
  if (ec == boost::beast::http::error::need_more) return {};
  return ec;
}

/// What the end of the bytes means for a message that is not complete. TLS that was cut off is never an end.
template <class Parser>
boost::system::error_code parse_end(Parser& parser, const boost::system::error_code& read_error) {
  if (read_error != boost::asio::error::eof || !parser.got_some()) return read_error;
  boost::system::error_code ec;
  parser.put_eof(ec);
  return ec;
}

template <class Slot, class Make>
async::Task<void> Exchange::read_head(Slot& slot, Make make) {
  for (make(slot);;) {
    boost::system::error_code ec;
    if (connection_.input().size() > 0) ec = parse_input(connection_, *slot);
    if (!ec && slot->is_header_done()) {
      const unsigned status = slot->get().result_int();
      if (status >= 200 || status == 101) co_return base::Result<void>();
      make(slot);
      continue;
    }
    if (!ec) ec = co_await fill(connection_);
    if (connection_.input().size() > 0) answered_ = true;
    if (ec) co_return base::fail(failure(ec, was_cancelled(co_await boost::asio::this_coro::cancellation_state)));
  }
}

template <class Parser>
async::Task<void> Exchange::read_rest(Parser& parser) {
  while (!parser.is_done()) {
    boost::system::error_code ec;
    if (connection_.input().size() > 0) {
      ec = parse_input(connection_, parser);
      if (!ec && parser.is_done()) break;
    }
    if (!ec) {
      ec = co_await fill(connection_);
      if (ec) ec = parse_end(parser, ec);
    }
    if (ec) co_return base::fail(failure(ec, was_cancelled(co_await boost::asio::this_coro::cancellation_state)));
  }
  co_return base::Result<void>();
}

}  // namespace spillway::net
