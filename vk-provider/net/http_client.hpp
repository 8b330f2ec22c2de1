// The HTTP/1.1 client over TCP, TLS and Unix sockets.
//
// The factory is owned by main, outlives nothing but its own calls; each client is owned by whoever asked for it and
// outlives its users. Reactor thread only. Connections are kept alive and pooled for send(); open() takes a connection
// of its own. A request goes out in one write, after a last look at the deadline: a process that was stopped past it
// sends nothing when it goes on. Does not follow redirects, decompress, log or measure.
#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

class BeastHttpClientFactory final : public HttpClientFactory {
 public:
  /// `timers` must be the machine's: sockets know no other time.
  BeastHttpClientFactory(boost::asio::any_io_executor executor, async::Timers& timers)
      : executor_(std::move(executor)), timers_(timers) {}

  base::Result<std::unique_ptr<HttpClient>> make(Endpoint endpoint) override;

 private:
  boost::asio::any_io_executor executor_;
  async::Timers& timers_;
};

}  // namespace spillway::net
