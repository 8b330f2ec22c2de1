#include "vk-provider/api/stream_request.hpp"

#include <catch2/catch.hpp>

#include "test/support/says.hpp"

using namespace spillway;
using test::says;

namespace {

net::HttpServerRequest request(std::vector<net::Header> headers) {
  net::HttpServerRequest out;
  out.method = "POST";
  out.headers = std::move(headers);
  return out;
}

api::StreamProtocols protocols() {
  api::StreamProtocols out;
  out.spdy = {"v4.channel.k8s.io"};
  out.websocket = {"v5.channel.k8s.io", "v4.channel.k8s.io", ""};
  return out;
}

std::vector<net::Header> spdy(std::vector<net::Header> more) {
  std::vector<net::Header> out = {{"Connection", "Upgrade"}, {"Upgrade", "SPDY/3.1"}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

std::vector<net::Header> websocket(std::vector<net::Header> more) {
  std::vector<net::Header> out = {{"connection", "keep-alive, Upgrade"}, {"upgrade", "WebSocket"}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace

TEST_CASE("stream requests: of the client's versions of SPDY the first that is known") {
  const auto dialect = api::choose_dialect(request(spdy({{"X-Stream-Protocol-Version", "v5.channel.k8s.io"},
                                                         {"X-Stream-Protocol-Version", "v4.channel.k8s.io"},
                                                         {"X-Stream-Protocol-Version", "channel.k8s.io"}})),
                                           protocols());
  REQUIRE(dialect);
  CHECK_FALSE(dialect->websocket);
  CHECK(dialect->protocol == "v4.channel.k8s.io");
  CHECK(api::choose_dialect(request(spdy({{"x-stream-protocol-version", "v9 , v4.channel.k8s.io"}})), protocols()));
  CHECK(api::spdy_handshake("v4.channel.k8s.io") ==
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n");
}

TEST_CASE("stream requests: a client whose versions are not known is told which are") {
  const auto refused =
      api::choose_dialect(request(spdy({{"X-Stream-Protocol-Version", "v9.channel.k8s.io"}})), protocols());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().status == 403);
  CHECK(net::find_header(refused.error().headers, "X-Accepted-Stream-Protocol-Versions") == "v4.channel.k8s.io");
  CHECK(says(refused.error().body, "the client speaks v9.channel.k8s.io"));
}

TEST_CASE("stream requests: without a version, or an upgrade, the request is a bad one") {
  const auto status = [](std::vector<net::Header> headers) {
    const auto refused = api::choose_dialect(request(std::move(headers)), protocols());
    return refused ? 0 : refused.error().status;
  };
  CHECK(status({}) == 400);
  CHECK(status(spdy({})) == 400);
  CHECK(status(spdy({{"X-Stream-Protocol-Version", " , "}})) == 400);
  CHECK(status({{"X-Stream-Protocol-Version", "v4.channel.k8s.io"}}) == 400);
  CHECK(
      status({{"Connection", "Upgrade"}, {"Upgrade", "SPDY/4"}, {"X-Stream-Protocol-Version", "v4.channel.k8s.io"}}) ==
      400);
}

TEST_CASE("stream requests: a WebSocket need not name a protocol, but the one it names must be known") {
  const auto choose = [](std::vector<net::Header> more) {
    return api::choose_dialect(request(websocket(std::move(more))), protocols());
  };
  const auto picked = choose({{"Sec-WebSocket-Protocol", "v9.channel.k8s.io, v5.channel.k8s.io"}});
  REQUIRE(picked);
  CHECK(picked->websocket);
  CHECK(picked->protocol == "v5.channel.k8s.io");
  CHECK(choose({})->protocol.empty());
  CHECK(choose({{"Sec-WebSocket-Protocol", "v9.channel.k8s.io"}}).error().status == 403);
}
