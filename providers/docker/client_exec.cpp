// The calls about execs and attaches; the rest of client.hpp is in client.cpp.
#include "providers/docker/client.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::providers::docker {

using base::ErrorKind;

async::Task<std::string> EngineClient::create_exec(std::string container, std::string body, base::Deadline deadline) {
  auto response = co_await send(net::Method::kPost, path_of(container, "/exec"), std::move(body), deadline);
  if (!response) {
    // What may have been made runs nothing.
    if (response.error().kind == ErrorKind::kUnknownOutcome) response.error().kind = ErrorKind::kUnavailable;
    co_return base::fail(std::move(response.error()));
  }
  if (response->status >= 400) co_return base::fail(refusal(*response, "exec in container " + container));
  auto id = decode_created(response->body);
  if (!id) co_return base::fail(named(std::move(id.error())));
  co_return std::move(*id);
}

async::Task<async::ByteStreamPtr> EngineClient::upgrade(std::string target, std::string body, bool writes,
                                                        base::Deadline deadline) {
  net::HttpRequest request;
  request.method = net::Method::kPost;
  request.target = std::move(target);
  request.headers = {{"Connection", "Upgrade"}, {"Upgrade", "tcp"}};
  if (!body.empty()) {
    request.body = std::move(body);
    request.content_type = "application/json";
  }
  auto stream = co_await http_->open(std::move(request), deadline);
  if (!stream) co_return base::fail(named(std::move(stream.error())));
  const int status = stream->head.status;
  if (status >= 400) co_return base::fail(refusal(stream->head, "connection to a process"));
  // Without the upgrade the answer is a body like any other: it can be read, and nothing can be said to it.
  if (status != 101 && (writes || !stream->body)) {
    co_return base::fail(named(base::Error(ErrorKind::kUnsupported,
                                           "the engine, or a proxy before it, does not hand over the connection: it "
                                           "answered " +
                                               std::to_string(status))));
  }
  co_return std::move(stream->body);
}

async::Task<async::ByteStreamPtr> EngineClient::start_exec(std::string id, bool tty, bool writes,
                                                           base::Deadline deadline) {
  co_return co_await upgrade("/exec/" + net::encode_path_segment(id) + "/start", encode_exec_start(tty), writes,
                             deadline);
}

async::Task<async::ByteStreamPtr> EngineClient::attach(std::string container, bool writes, base::Deadline deadline) {
  const std::string query = std::string("?stream=1&stdout=1&stderr=1&stdin=") + (writes ? "1" : "0");
  co_return co_await upgrade(path_of(container, "/attach" + query), "", writes, deadline);
}

async::Task<ExecState> EngineClient::inspect_exec(std::string id, base::Deadline deadline) {
  const auto response =
      co_await send(net::Method::kGet, "/exec/" + net::encode_path_segment(id) + "/json", "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) co_return base::fail(refusal(*response, "exec " + id));
  auto state = decode_exec(response->body);
  if (!state) co_return base::fail(named(std::move(state.error())));
  co_return *state;
}

async::Task<Answer> EngineClient::resize(std::string path, provider::TerminalSize size, base::Deadline deadline) {
  co_return co_await write(net::Method::kPost,
                           path + "/resize?h=" + std::to_string(size.rows) + "&w=" + std::to_string(size.columns), "",
                           deadline);
}

}  // namespace spillway::providers::docker
