#include "vk-provider/net/tls_stream.hpp"

#include <cerrno>
#include <csignal>

#include <signal.h>

#include <openssl/err.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

namespace spillway::net {
namespace asio = boost::asio;

namespace {

/// OpenSSL writes to a socket whose peer has gone as to a file: that must be an error, not the end of the process.
void ignore_broken_pipes() {
  static const bool once = [] {
    struct sigaction now{};
    const bool has_handler = ::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler != SIG_DFL;
    return has_handler || std::signal(SIGPIPE, SIG_IGN) != SIG_ERR;
  }();
  static_cast<void>(once);
}

}  // namespace

TlsStream::TlsStream(Socket& socket, TlsContext& context) : socket_(socket), ssl_(SSL_new(context.native_handle())) {
  ignore_broken_pipes();
  boost::system::error_code ignored;
  socket_.native_non_blocking(true, ignored);
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A record in one call of the kernel, not in one for its head and one for its body.
  SSL_set_read_ahead(ssl_.get(), 1);
  SSL_set_fd(ssl_.get(), socket_.native_handle());
}

TlsStream::Attempt TlsStream::judge(int result, size_t n) {
  Attempt out;
  out.n = n;
  if (result > 0) return out;
  const int why = SSL_get_error(ssl_.get(), result);
  const int system = errno;
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
    out.wait_for = why;
    return out;
  }
  const unsigned long queued = ERR_get_error();
  if (why == SSL_ERROR_ZERO_RETURN) {
    out.ec = asio::error::eof;
  } else if (why == SSL_ERROR_SYSCALL && queued == 0 && system != 0) {
    out.ec = boost::system::error_code(system, boost::system::system_category());
  } else if (queued == 0 || ERR_GET_REASON(queued) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    out.ec = asio::ssl::error::stream_truncated;
  } else {
    out.ec = boost::system::error_code(static_cast<int>(queued), asio::error::get_ssl_category());
  }
  return out;
}

TlsStream::Attempt TlsStream::handshake() {
  ERR_clear_error();
  return judge(SSL_do_handshake(ssl_.get()), 0);
}

TlsStream::Attempt TlsStream::read(asio::mutable_buffer room) {
  if (room.size() == 0) return {};
  ERR_clear_error();
  errno = 0;
  size_t n = 0;
  return judge(SSL_read_ex(ssl_.get(), room.data(), room.size(), &n), n);
}

TlsStream::Attempt TlsStream::write(asio::const_buffer bytes) {
  if (bytes.size() == 0) return {};
  ERR_clear_error();
  errno = 0;
  size_t n = 0;
  return judge(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &n), n);
}

TlsStream::Attempt TlsStream::end_sending() {
  ERR_clear_error();
  errno = 0;
  // 0: our end was sent, the peer's has not come.
  const int sent = SSL_shutdown(ssl_.get());
  return sent == 0 ? Attempt() : judge(sent, 0);
}

}  // namespace spillway::net
