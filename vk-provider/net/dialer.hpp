// Makes connections to one endpoint: resolves, connects, shakes hands. Of net/ alone.
//
// Owned by a client, which outlives every call; reactor thread only. An answer of the resolver is kept for 60 s, and
// longer while the resolver fails. Does not pool and does not repeat.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/connection.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

class Dialer {
 public:
  /// `tls` is set for kHttps alone.
  Dialer(boost::asio::any_io_executor executor, async::Timers& timers, Endpoint endpoint,
         std::unique_ptr<TlsContext> tls);
  ~Dialer();

  /// A new connection, ready for requests. kUnavailable or kDeadline; nothing of a request was sent in either case.
  async::Task<ConnectionPtr> connect(base::Deadline deadline);

  /// For messages: `https://host:6443`, `unix:/run/docker.sock`.
  const std::string& name() const { return name_; }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  using Address = boost::asio::generic::stream_protocol::endpoint;
  struct Resolution;

  async::Task<std::vector<Address>> addresses(base::Deadline deadline);
  async::Task<ConnectionPtr> connect_to(Address address, base::Deadline limit);
  async::Task<void> shake_hands(ConnectionPtr connection, base::Deadline limit);

  boost::asio::any_io_executor executor_;
  async::Timers& timers_;
  Endpoint endpoint_;
  std::unique_ptr<TlsContext> tls_;
  std::string name_;
  std::shared_ptr<Resolution> resolution_;
};

}  // namespace spillway::net
