// grpc.health.v1.Health/Check on a stream: the one call that a gRPC probe makes.
//
// A whole gRPC client is not needed for it: one HTTP/2 stream, plain text, header fields without compression; of the
// answer only its first message counts. RFC 9113, and the gRPC protocol over it.
#pragma once

#include <string>

#include "vk-provider/async/byte_stream.hpp"

namespace spillway::net {

/// Succeeds if the service (empty: the server) is SERVING. kInvalid if it is not, or if there is no such service;
/// otherwise why it could not be asked.
async::Task<void> check_grpc_health(async::ByteStream& stream, std::string service, base::Deadline deadline);

}  // namespace spillway::net
