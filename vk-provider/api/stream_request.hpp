// How the client of an exec, attach or port-forward wants to speak: SPDY/3.1 or WebSocket, and which sub-protocol.
//
// Pure. Decides, or says what is to be answered instead.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::api {

/// Of one kind of request; in no order, for a client's first choice counts.
struct StreamProtocols {
  StreamProtocols() = default;
  std::vector<std::string> spdy;
  std::vector<std::string> websocket;  // with "" the client need not name one
};

struct StreamDialect {
  StreamDialect() = default;
  bool websocket = false;  // else SPDY/3.1
  std::string protocol;
};

/// No stream, and why, as metav1.Status. A kubelet says it in plain text; but clients take a text with ": " in it,
/// which is YAML, for a Status without a message, and show nothing.
net::HttpServerResponse refuse_stream(int status, const std::string& message);

/// The answer is 400 if the client asks for no upgrade that is known here, 403 if it knows none of the protocols.
std::expected<StreamDialect, net::HttpServerResponse> choose_dialect(const net::HttpServerRequest& request,
                                                                     const StreamProtocols& protocols);

/// The 101 after which SPDY begins.
std::string spdy_handshake(std::string_view protocol);

/// How long what is waited for. The defaults are a kubelet's.
struct StreamTimes {
  StreamTimes() = default;
  base::Duration creation{std::chrono::seconds(30)};  // for the client to open its streams
  base::Duration opening{std::chrono::seconds(30)};   // for the provider to begin
  base::Duration idle{std::chrono::hours(4)};
  /// For the client to take the last of it and to leave. Closing before it does would destroy what is on its way.
  base::Duration farewell{std::chrono::minutes(15)};
};

}  // namespace spillway::api
