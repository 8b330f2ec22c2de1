// A fake cloud behind a Unix socket: routes.hpp over net/http_server.
//
// Owned by the sub-command `fake-cloud` or by a test, which awaits stop() before it dies; reactor thread only.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "providers/fake/fake_cloud.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::providers::fake {

class FakeCloudServer {
 public:
  /// `timers` must be the machine's: sockets know no other time.
  FakeCloudServer(boost::asio::any_io_executor executor, async::Timers& timers, FakeCloud& cloud, std::string socket);

  /// kConflict if somebody listens there, kInvalid if the path cannot be used.
  base::Result<void> start() { return server_.start(); }
  boost::asio::awaitable<void> stop(base::Deadline deadline) { return server_.stop(deadline); }

 private:
  boost::asio::awaitable<net::HttpServerResponse> handle(net::HttpServerRequest request);

  async::Timers& timers_;
  FakeCloud& cloud_;
  net::HttpServer server_;
};

}  // namespace spillway::providers::fake
