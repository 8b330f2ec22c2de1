#include "test/support/scripted_kube_api.hpp"

#include <utility>

namespace spillway::test {

using base::ErrorKind;

class ScriptedStream final : public async::ByteStream {
 public:
  explicit ScriptedStream(std::shared_ptr<ScriptedWatch> watch) : watch_(std::move(watch)) {}
  ~ScriptedStream() override { watch_->released_ = true; }

  async::Task<std::string> read(base::Deadline deadline) override {
    for (;;) {
      if (!watch_->chunks_.empty()) {
        std::string chunk = std::move(watch_->chunks_.front());
        watch_->chunks_.pop_front();
        co_return chunk;
      }
      if (watch_->broken_) co_return base::fail(ErrorKind::kUnavailable, "connection reset");
      if (watch_->closed_) co_return std::string();
      const bool late = co_await watch_->waiter_->wait_until(deadline);
      if (late) co_return base::fail(ErrorKind::kDeadline, "nothing came in time");
    }
  }
  async::Task<void> write(std::string /*bytes*/, base::Deadline /*deadline*/) override {
    co_return base::fail(ErrorKind::kUnsupported, "a watch is only read");
  }
  async::Task<void> close_write(base::Deadline /*deadline*/) override {
    co_return base::fail(ErrorKind::kUnsupported, "a watch is only read");
  }

 private:
  std::shared_ptr<ScriptedWatch> watch_;
};

void ScriptedWatch::push(std::string bytes) {
  chunks_.push_back(std::move(bytes));
  waiter_->wake();
}

void ScriptedWatch::push_event(const std::string& type, const std::string& object) {
  push(R"({"type":")" + type + R"(","object":)" + object + "}\n");
}

void ScriptedWatch::close() {
  closed_ = true;
  waiter_->wake();
}

void ScriptedWatch::break_off() {
  broken_ = true;
  waiter_->wake();
}

void ScriptedKubeApi::answer(std::string body, int status) {
  kube::KubeResponse response;
  response.status = status;
  response.body = std::move(body);
  answers_.emplace_back(std::move(response));
}

void ScriptedKubeApi::fail(base::Error error) { answers_.emplace_back(base::fail(std::move(error))); }

void ScriptedKubeApi::stay_silent() { answers_.emplace_back(std::nullopt); }

std::shared_ptr<ScriptedWatch> ScriptedKubeApi::open_watch() {
  auto watch = std::make_shared<ScriptedWatch>(timers_);
  watches_.emplace_back(watch);
  return watch;
}

void ScriptedKubeApi::refuse_watch(base::Error error) { watches_.emplace_back(base::fail(std::move(error))); }

void ScriptedKubeApi::note(const kube::KubeRequest& request) {
  requests.push_back(request);
  times.push_back(timers_.now());
}

async::Task<kube::KubeResponse> ScriptedKubeApi::send(kube::KubeRequest request, base::Deadline deadline) {
  note(request);
  if (handler) {
    auto handled = handler(request);
    if (handled) co_return std::move(*handled);
  }
  if (answers_.empty()) co_return base::fail(ErrorKind::kUnavailable, "not in the script: " + request.target);
  auto answer = std::move(answers_.front());
  answers_.pop_front();
  if (answer) co_return std::move(*answer);
  co_await timers_.sleep_until(deadline);
  co_return base::fail(request.method == net::Method::kGet ? ErrorKind::kDeadline : ErrorKind::kUnknownOutcome,
                       "no answer");
}

async::Task<async::ByteStreamPtr> ScriptedKubeApi::watch(kube::KubeRequest request, base::Deadline /*deadline*/) {
  note(request);
  if (watches_.empty()) co_return base::fail(ErrorKind::kUnavailable, "no watch in the script");
  auto next = std::move(watches_.front());
  watches_.pop_front();
  if (!next) co_return base::fail(std::move(next.error()));
  co_return std::make_unique<ScriptedStream>(std::move(*next));
}

}  // namespace spillway::test
