// exec and attach: takes a client's request, and carries bytes between the client and a process.
//
// Free functions; reactor thread only. Whether the caller may do it, and whether there is such a container, was asked
// before. What the client types and the process says stays between them: it is in no log and no error.
#pragma once

#include <functional>

#include "vk-provider/api/remote_peer.hpp"
#include "vk-provider/net/url.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::api {

/// From input, output, error and tty, each `1`. kInvalid if none of the first three is asked for.
base::Result<RemoteStreams> parse_remote_streams(const net::Query& query);

/// Begins the process, or attaches to it; its error is told to the client. Called once the client is there.
using OpenSession = std::move_only_function<async::Task<provider::ExecSessionPtr>(base::Deadline deadline)>;

/// Takes over the connection of the request, or refuses it with 400 or 403. `timers` outlives the connection. A client
/// that leaves before the process has ended leaves it alone: its session dies, and with it its standard input.
net::HttpServerResponse answer_remote_command(net::HttpServerRequest request, RemoteStreams wanted, OpenSession open,
                                              async::Timers& timers, StreamTimes times = {});

/// The same with a client that is there, until it has left.
async::Loop serve_remote_command(RemotePeerPtr peer, OpenSession open, async::Timers& timers, StreamTimes times);

}  // namespace spillway::api
