// Streams of one's own: a TCP connection as plain bytes, TLS without verification on top of any stream, and one HTTP
// exchange on one. For probes and hooks of containers, which a kubelet runs the same way.
//
// Free functions; what they return is owned by the caller. Reactor thread only. Nothing is pooled or repeated.
#pragma once

#include <cstdint>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net {

/// `timers` must be the machine's: sockets know no other time. kUnavailable or kDeadline.
async::Task<async::ByteStreamPtr> connect_tcp(boost::asio::any_io_executor executor, async::Timers& timers,
                                              std::string host, std::uint16_t port, base::Deadline deadline);

/// Shakes hands as a client that believes any certificate: a probe asks whether somebody answers, not who. Nothing
/// secret may be sent on it.
async::Task<async::ByteStreamPtr> start_unverified_tls(async::ByteStreamPtr inner, std::string server_name,
                                                       base::Deadline deadline);

/// Sends the request and reads the head of the answer; its body is left unread. `host` is for the Host header, unless
/// the request has one. kInvalid if the request cannot be written or the answer is no HTTP.
async::Task<HttpResponse> exchange_head(async::ByteStream& stream, HttpRequest request, std::string host,
                                        base::Deadline deadline);

}  // namespace spillway::net
