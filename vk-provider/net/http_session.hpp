// One connection of the server: reads requests, calls the handler, writes answers. Of net/ alone.
//
// Owned by the coroutine of its connection; reactor thread only. Closes the connection when it ends.
#pragma once

#include <string>

#include "vk-provider/net/connection.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::net {

class HttpSession {
 public:
  HttpSession(ConnectionPtr connection, const HttpServerConfig& config, const HttpServer::Handler& handler,
              bool from_loopback)
      : lease_(std::move(connection)), config_(config), handler_(handler), from_loopback_(from_loopback) {}

  /// Until the peer or finish() ends it.
  boost::asio::awaitable<void> run(TlsContext* tls);
  /// The request that is being served is the last one; without one, the end comes at once.
  void finish();

 private:
  /// False if the connection is to be closed: then an answer may have been sent that says why.
  boost::asio::awaitable<bool> read_request(HttpServerRequest& request, bool& keep_alive);
  boost::asio::awaitable<bool> write_response(const HttpServerResponse& response, bool keep_alive, bool without_body);
  boost::asio::awaitable<bool> write_output();
  /// Takes what the peer still sends, for a second: a close with unread bytes would destroy the answer on its way.
  boost::asio::awaitable<void> linger();

  void limit(base::Duration time) { lease_->watchdog().arm(lease_->clock().now() + time); }

  ConnectionLease lease_;
  const HttpServerConfig& config_;
  const HttpServer::Handler& handler_;
  bool from_loopback_;
  bool between_requests_ = true;
  bool last_ = false;
};

}  // namespace spillway::net
