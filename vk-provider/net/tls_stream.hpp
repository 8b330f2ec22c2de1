// TLS over a connected socket, as an Asio stream: Asio's own keeps 68 KiB of buffers for each connection, and cannot
// end one half of it.
//
// OpenSSL reads and writes the socket itself, which does not block; here is waited for it. Owned by Connection; reactor
// thread only. One read and one write may be under way at the same time, each may be cancelled. Does not verify names
// (tls.hpp) and closes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <openssl/ssl.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/post.hpp>

#include "vk-provider/net/openssl_ptr.hpp"
#include "vk-provider/net/tls.hpp"

namespace spillway::net {

class TlsStream {
 public:
  using Socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, boost::asio::any_io_executor>;
  enum class Role : std::uint8_t { kClient, kServer };

  /// `socket` outlives it; it is made not to block.
  TlsStream(Socket& socket, TlsContext& context);

  SSL* native_handle() { return ssl_.get(); }

  template <class Token>
  auto async_handshake(Role role, Token&& token) {
    if (role == Role::kServer) {
      SSL_set_accept_state(ssl_.get());
    } else {
      SSL_set_connect_state(ssl_.get());
    }
    return repeat<void(boost::system::error_code)>([this] { return handshake(); }, token);
  }

  /// eof once the peer has ended its half; stream_truncated if it just went away.
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    const boost::asio::mutable_buffer room = first_of(buffers);
    return repeat<void(boost::system::error_code, size_t)>([this, room] { return read(room); }, token);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    const boost::asio::const_buffer bytes = first_of(buffers);
    return repeat<void(boost::system::error_code, size_t)>([this, bytes] { return write(bytes); }, token);
  }

  /// Ends our half; what the peer still sends can be read.
  template <class Token>
  auto async_end_sending(Token&& token) {
    return repeat<void(boost::system::error_code)>([this] { return end_sending(); }, token);
  }

 private:
  /// What one attempt came to: an outcome, or what the socket has to be waited for.
  struct Attempt {
    boost::system::error_code ec;
    size_t n = 0;
    int wait_for = SSL_ERROR_NONE;  // or SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE
  };
  Attempt handshake();
  Attempt read(boost::asio::mutable_buffer room);
  Attempt write(boost::asio::const_buffer bytes);
  Attempt end_sending();
  Attempt judge(int result, size_t n);

  template <class Buffers>
  static auto first_of(const Buffers& buffers) {
    auto it = boost::asio::buffer_sequence_begin(buffers);
    const auto end = boost::asio::buffer_sequence_end(buffers);
    while (it != end && it->size() == 0) ++it;
    using Buffer = std::decay_t<decltype(*it)>;
    return it == end ? Buffer() : Buffer(*it);
  }

  /// Attempts until there is an outcome. Never completes within the call that began it.
  template <class Signature, class Try, class Token>
  auto repeat(Try attempt, Token& token) {
    return boost::asio::async_compose<Token, Signature>(
        [this, attempt, outcome = Attempt(), begun = false](auto& self, boost::system::error_code waited = {}) mutable {
          const bool first = !std::exchange(begun, true);
          if (waited) {
            outcome.ec = waited;
          } else if (first || outcome.wait_for != SSL_ERROR_NONE) {
            outcome = attempt();
            if (outcome.wait_for != SSL_ERROR_NONE) {
              const auto what = outcome.wait_for == SSL_ERROR_WANT_READ ? Socket::wait_read : Socket::wait_write;
              return socket_.async_wait(what, std::move(self));
            }
            if (first) return boost::asio::post(socket_.get_executor(), std::move(self));
          }
          if constexpr (std::is_same_v<Signature, void(boost::system::error_code)>) {
            self.complete(outcome.ec);
          } else {
            self.complete(outcome.ec, outcome.n);
          }
        },
        token, socket_);
  }

  Socket& socket_;
  std::unique_ptr<SSL, OpensslDeleter<SSL_free>> ssl_;
};

}  // namespace spillway::net
