// port-forward: takes a client's request, and carries connections between the client and ports of a pod.
//
// Free functions; reactor thread only. Whether the caller may do it, and whether there is such a pod, was asked before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vk-provider/api/stream_request.hpp"
#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::api {

/// Connects to a port of the pod; its error is told to the client. Called for each connection of the client.
using DialPort = std::function<async::Task<async::ByteStreamPtr>(int port, base::Deadline deadline)>;

/// Takes over the connection of the request, or refuses it with 400 or 403. `timers` outlives the connection, and
/// `dial` what it captures. `pod` is for messages: default/web.
net::HttpServerResponse answer_port_forward(net::HttpServerRequest request, std::string pod, DialPort dial,
                                            async::Timers& timers, StreamTimes times = {});

/// The ports of a WebSocket that names them beforehand: port=80&port=443, or port=80,443. kInvalid without one, and for
/// what is none.
base::Result<std::vector<int>> parse_forwarded_ports(const net::Query& query);

}  // namespace spillway::api
