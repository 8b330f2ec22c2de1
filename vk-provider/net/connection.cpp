#include "vk-provider/net/connection.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

namespace spillway::net {
namespace asio = boost::asio;

Connection::Connection(const executor_type& executor, const base::Clock& clock)
    : clock_(clock), socket_(executor), watchdog_(*this), write_watchdog_(*this) {}

TlsStream& Connection::start_tls(TlsContext& context) {
  tls_ = std::make_unique<TlsStream>(socket_, context);
  return *tls_;
}

void Connection::close() {
  watchdog_.disarm();
  write_watchdog_.disarm();
  // No close_notify: every message says by itself where it ends.
  boost::system::error_code ignored;
  socket_.close(ignored);
}

bool Connection::is_quiet() {
  char byte = 0;
  const ssize_t n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && input_.size() == 0;
}

void Connection::shutdown_send() {
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void Connection::Watchdog::arm(base::Deadline deadline) {
  expired_ = false;
  const std::uint64_t round = ++round_;
  if (deadline == base::Deadline::max()) return;
  // Far-off times are cut short of what the clock's type can hold.
  const base::Duration left = std::min<base::Duration>(deadline - owner_.clock_.now(), std::chrono::hours(24 * 365));
  timer_.expires_after(left);
  timer_.async_wait([this, round, weak = owner_.weak_from_this()](const boost::system::error_code& ec) {
    const ConnectionPtr alive = weak.lock();
    if (ec || !alive || round != round_) return;
    owner_.close();
    expired_ = true;
  });
}

void Connection::Watchdog::disarm() {
  ++round_;
  timer_.cancel();
}

}  // namespace spillway::net
