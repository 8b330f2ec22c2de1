#include "providers/fake/fake_cloud_server.hpp"

#include "providers/fake/routes.hpp"

namespace spillway::providers::fake {
namespace {

net::HttpServerConfig server_config(std::string socket) {
  net::HttpServerConfig config;
  config.unix_path = std::move(socket);
  return config;
}

}  // namespace

FakeCloudServer::FakeCloudServer(boost::asio::any_io_executor executor, async::Timers& timers, FakeCloud& cloud,
                                 std::string socket)
    : timers_(timers),
      cloud_(cloud),
      server_(std::move(executor), timers, server_config(std::move(socket)),
              [this](net::HttpServerRequest request) { return handle(std::move(request)); }) {}

boost::asio::awaitable<net::HttpServerResponse> FakeCloudServer::handle(net::HttpServerRequest request) {
  WireReply reply = route(cloud_, request.method, request.target, request.body, timers_.now());
  if (reply.delay > base::Duration{0}) co_await timers_.sleep_for(reply.delay);
  net::HttpServerResponse response;
  response.status = reply.status;
  response.content_type = "application/json";
  response.body = std::move(reply.body);
  response.hang_up = reply.lost;
  if (reply.retry_after) {
    // The header counts whole seconds; the body has the exact time.
    response.headers.emplace_back("Retry-After", std::to_string((reply.retry_after->count() + 999) / 1000));
  }
  co_return response;
}

}  // namespace spillway::providers::fake
