#include "test/support/api_script/servers.hpp"

#include <chrono>
#include <utility>

namespace spillway::test::api_script {
namespace {

constexpr base::Duration kDeadline = std::chrono::seconds(30);
constexpr base::Duration kForgetPause = std::chrono::milliseconds(500);

Answer to_answer(net::HttpResponse response) {
  Answer answer;
  answer.code = response.status;
  answer.body = std::move(response.body);
  return answer;
}

}  // namespace

async::Task<Answer> ModelServer::exchange(kube::KubeRequest request) { co_return model_.exchange(request); }

async::Task<std::expected<async::ByteStreamPtr, Answer>> ModelServer::open(kube::KubeRequest request) {
  co_return model_.open_watch(request);
}

async::Task<void> ModelServer::forget() {
  model_.compact();
  co_return base::Result<void>();
}

net::HttpRequest RealServer::to_http(const kube::KubeRequest& request) const {
  net::HttpRequest out;
  out.method = request.method;
  out.target = access_.path_prefix + request.target;
  out.headers.emplace_back("Accept", request.accept);
  out.headers.emplace_back("User-Agent", "spillway/script");
  out.body = request.body;
  out.content_type = request.content_type;
  out.bearer = access_.token;
  return out;
}

async::Task<Answer> RealServer::exchange(kube::KubeRequest request) {
  auto response = co_await client_.send(to_http(request), timers_.now() + kDeadline);
  if (!response) co_return base::fail(std::move(response.error()));
  co_return to_answer(std::move(*response));
}

async::Task<std::expected<async::ByteStreamPtr, Answer>> RealServer::open(kube::KubeRequest request) {
  auto stream = co_await client_.open(to_http(request), timers_.now() + kDeadline);
  if (!stream) co_return base::fail(std::move(stream.error()));
  using Opened = std::expected<async::ByteStreamPtr, Answer>;
  if (stream->head.status >= 300) co_return Opened(std::unexpect, to_answer(std::move(stream->head)));
  co_return Opened(std::move(stream->body));
}

async::Task<void> RealServer::forget() {
  co_await timers_.sleep_for(kForgetPause);
  co_return base::Result<void>();
}

}  // namespace spillway::test::api_script
