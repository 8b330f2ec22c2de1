// The calls about what containers write and use; the rest of client.hpp is in client.cpp.
#include "providers/docker/client.hpp"

namespace spillway::providers::docker {

using base::ErrorKind;

async::Task<async::ByteStreamPtr> EngineClient::open_log(std::string container, LogQuery query,
                                                         base::Deadline deadline) {
  net::HttpRequest request;
  request.target = path_of(container, "/logs" + encode_log_query(query));
  auto stream = co_await http_->open(std::move(request), deadline);
  if (!stream) co_return base::fail(named(std::move(stream.error())));
  if (stream->head.status == 200 && stream->body) co_return std::move(stream->body);
  base::Error error = refusal(stream->head, "log of container " + container);
  // Engines have several codes for it. It is no outage: its containers write their logs to somewhere else.
  if (is_unreadable_log(error.message)) error.kind = ErrorKind::kUnsupported;
  co_return base::fail(std::move(error));
}

async::Task<std::string> EngineClient::read_log(std::string container, LogQuery query, base::Deadline deadline) {
  std::string target = path_of(container, "/logs" + encode_log_query(query));
  co_return co_await read_bytes(std::move(target), "log of container " + container, deadline);
}

async::Task<ContainerStats> EngineClient::stats(std::string container, base::Deadline deadline) {
  std::string target = path_of(container, "/stats?stream=false&one-shot=true");
  const auto body = co_await read_bytes(std::move(target), "use of container " + container, deadline);
  if (!body) co_return base::fail(body.error());
  auto stats = decode_stats(*body);
  if (!stats) co_return base::fail(named(std::move(stats.error())));
  co_return *stats;
}

}  // namespace spillway::providers::docker
