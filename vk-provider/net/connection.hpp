// One connected socket: TCP, Unix or TLS over TCP, with a time limit. Shared by client and server; of net/ alone.
//
// Owned by shared_ptr: by the coroutine that talks on it, or by the pool while it is idle. Reactor thread only. It is
// an Asio stream (async_read_some, async_write_some). Does not know HTTP and does not reconnect.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/net/tls_stream.hpp"

namespace spillway::net {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Socket = TlsStream::Socket;

  Connection(const executor_type& executor, const base::Clock& clock);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  const base::Clock& clock() const { return clock_; }
  Socket& socket() { return socket_; }
  /// Puts TLS on top; the handshake is the caller's.
  TlsStream& start_tls(TlsContext& context);
  TlsStream* tls() { return tls_.get(); }

  void close();
  bool is_open() const { return socket_.is_open(); }
  /// False if the peer has closed an idle connection, or sent what nobody asked for. Looks without waiting.
  bool is_quiet();
  /// Ends our half of the stream.
  void shutdown_send();

  /// Closes the connection at the time given; what waits on it then fails. One for each direction.
  class Watchdog {
   public:
    explicit Watchdog(Connection& owner) : owner_(owner), timer_(owner.get_executor()) {}
    void arm(base::Deadline deadline);
    void disarm();
    bool expired() const { return expired_; }

   private:
    Connection& owner_;
    boost::asio::steady_timer timer_;
    std::uint64_t round_ = 0;  // an expiry that was queued before a disarm() is recognised by it
    bool expired_ = false;
  };
  Watchdog& watchdog() { return watchdog_; }
  Watchdog& write_watchdog() { return write_watchdog_; }
  bool expired() const { return watchdog_.expired() || write_watchdog_.expired(); }

  /// Bytes that were read and not yet used.
  boost::beast::flat_buffer& input() { return input_; }
  /// Room in which a message is put together; kept from one message to the next.
  std::string& output() { return output_; }

  base::TimePoint idle_since() const { return idle_since_; }
  void set_idle_since(base::TimePoint t) { idle_since_ = t; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, size_t)>(
        [this](auto handler, const Buffers& b) {
          if (tls_) {
            tls_->async_read_some(b, std::move(handler));
          } else {
            socket_.async_read_some(b, std::move(handler));
          }
        },
        token, buffers);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, size_t)>(
        [this](auto handler, const Buffers& b) {
          if (tls_) {
            tls_->async_write_some(b, std::move(handler));
          } else {
            socket_.async_write_some(b, std::move(handler));
          }
        },
        token, buffers);
  }

 private:
  const base::Clock& clock_;
  Socket socket_;
  std::unique_ptr<TlsStream> tls_;
  Watchdog watchdog_;
  Watchdog write_watchdog_;
  boost::beast::flat_buffer input_;
  std::string output_;
  base::TimePoint idle_since_{};
};

using ConnectionPtr = std::shared_ptr<Connection>;

/// Closes the connection when it dies, also by cancellation of the coroutine; unless it was released.
class ConnectionLease {
 public:
  explicit ConnectionLease(ConnectionPtr connection) : connection_(std::move(connection)) {}
  ConnectionLease(const ConnectionLease&) = delete;
  ConnectionLease& operator=(const ConnectionLease&) = delete;
  ~ConnectionLease() {
    if (connection_) connection_->close();
  }
  Connection* operator->() const { return connection_.get(); }
  Connection& operator*() const { return *connection_; }
  ConnectionPtr release() { return std::exchange(connection_, nullptr); }

 private:
  ConnectionPtr connection_;
};

/// `was_cancelled(co_await asio::this_coro::cancellation_state)`: asked after an operation was aborted, to tell the end
/// of the calling task from the end of its time.
inline bool was_cancelled(const boost::asio::cancellation_state& state) {
  return state.cancelled() != boost::asio::cancellation_type::none;
}

}  // namespace spillway::net
