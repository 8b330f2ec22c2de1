// /containerLogs: what of a log is asked for. Pure; the stream itself is the provider's.
#pragma once

#include "vk-provider/api/container_access.hpp"
#include "vk-provider/net/url.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::api {

/// The kubelet's parameters: follow, previous, timestamps, sinceSeconds, sinceTime, tailLines (or tail, of which `all`
/// is none), limitBytes, stream. 400: a value that cannot be read; 422: one that makes no sense.
Answer<provider::LogOptions> parse_log_query(const net::Query& query, const std::string& container, base::WallTime now);

}  // namespace spillway::api
