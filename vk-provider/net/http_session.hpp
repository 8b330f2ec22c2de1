// One connection of the server: reads requests, calls the handler, writes answers. Of net/ alone.
//
// Owned by the coroutine of its connection; reactor thread only. Closes the connection when it ends.
#pragma once

#include <memory>
#include <string>

#include "vk-provider/async/task.hpp"
#include "vk-provider/net/client_verifier.hpp"
#include "vk-provider/net/connection.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::net {

/// What all sessions of a server share. Owned by the server, outlives them.
struct HttpSessions {
  HttpServerConfig config;
  HttpServer::Handler handler;
  std::unique_ptr<TlsContext> tls;           // null: plain
  std::unique_ptr<ClientVerifier> verifier;  // null: clients are not asked who they are
  std::size_t streams = 0;
};

class HttpSession {
 public:
  HttpSession(ConnectionPtr connection, HttpSessions& shared, bool from_loopback)
      : lease_(std::move(connection)), shared_(shared), config_(shared.config), from_loopback_(from_loopback) {}

  /// Until the peer or finish() ends it.
  boost::asio::awaitable<void> run();
  /// The request that is being served is the last one; without one, the end comes at once.
  void finish();

 private:
  /// What of a request matters to its answer.
  struct Exchanged {
    bool keep_alive = true;
    bool head = false;   // HEAD: no body
    bool chunks = true;  // HTTP/1.1
  };

  /// False if the connection is to be closed: then an answer may have been sent that says why.
  boost::asio::awaitable<bool> read_request(HttpServerRequest& request, Exchanged& exchanged);
  /// True if the connection may carry another request.
  boost::asio::awaitable<bool> answer(HttpServerResponse response, Exchanged exchanged);
  boost::asio::awaitable<bool> write_response(const HttpServerResponse& response, Exchanged exchanged);
  boost::asio::awaitable<bool> write_stream(HttpServerResponse response, Exchanged exchanged);
  async::Task<void> pump(async::ByteStream& body, bool chunks);
  async::Task<void> wait_for_end_of_peer();
  boost::asio::awaitable<bool> write_output();
  /// Takes what the peer still sends, for a second: a close with unread bytes would destroy the answer on its way.
  boost::asio::awaitable<void> linger();

  void limit(base::Duration time) { lease_->watchdog().arm(lease_->clock().now() + time); }

  ConnectionLease lease_;
  HttpSessions& shared_;
  const HttpServerConfig& config_;
  bool from_loopback_;
  bool between_requests_ = true;
  bool last_ = false;
};

}  // namespace spillway::net
