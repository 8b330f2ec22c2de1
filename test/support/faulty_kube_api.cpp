#include "test/support/faulty_kube_api.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "vk-provider/kube/http_kube_api.hpp"

namespace spillway::test {
namespace {

using base::ErrorKind;
using nlohmann::json;

bool is_read(net::Method method) { return method == net::Method::kGet || method == net::Method::kHead; }

/// As net::HttpClient tells of a request that was sent and not answered.
base::Error unanswered(net::Method method, bool by_deadline) {
  const char* text = by_deadline ? "no answer within the deadline" : "the connection broke before the answer";
  if (!is_read(method)) return {ErrorKind::kUnknownOutcome, text};
  return {by_deadline ? ErrorKind::kDeadline : ErrorKind::kUnavailable, text};
}

base::Error refused(net::Method method, const RequestFault::Refusal& refusal) {
  net::HttpResponse response;
  response.status = refusal.code;
  json status{{"kind", "Status"},    {"apiVersion", "v1"},         {"metadata", json::object()},
              {"status", "Failure"}, {"message", refusal.message}, {"reason", refusal.reason},
              {"code", refusal.code}};
  if (refusal.retry_after) {
    status["details"] = {{"retryAfterSeconds", refusal.retry_after->count()}};
    response.headers.emplace_back("Retry-After", std::to_string(refusal.retry_after->count()));
  }
  response.body = status.dump();
  return kube::error_of(method, response);
}

class FaultyStream final : public async::ByteStream {
 public:
  FaultyStream(async::ByteStreamPtr inner, kube::KubeRequest opened, ApiFaults& faults, async::Timers& timers)
      : inner_(std::move(inner)), opened_(std::move(opened)), faults_(faults), timers_(timers) {}

  async::Task<std::string> read(base::Deadline deadline) override {
    if (state_ == State::kBroken) co_return base::fail(ErrorKind::kUnavailable, "connection reset");
    if (state_ == State::kClosed) co_return std::string();
    if (state_ == State::kSilent) co_return co_await silence(deadline);
    auto bytes = co_await inner_->read(deadline);
    if (!bytes || bytes->empty()) co_return std::move(bytes);
    const WatchFault fault = faults_.on_watch_bytes(opened_, *bytes);
    const base::TimePoint due = timers_.now() + fault.lag;
    if (fault.lag > base::Duration::zero()) co_await timers_.sleep_until(std::min(due, deadline));
    if (due > deadline) co_return base::fail(ErrorKind::kDeadline, "nothing came in time");
    switch (fault.kind) {
      case WatchFault::Kind::kNone: co_return std::move(bytes);
      case WatchFault::Kind::kClose: state_ = State::kClosed; co_return std::string();
      case WatchFault::Kind::kSilence: state_ = State::kSilent; co_return co_await silence(deadline);
      case WatchFault::Kind::kBreak:
        state_ = State::kBroken;
        if (fault.keep == 0) co_return base::fail(ErrorKind::kUnavailable, "connection reset");
        co_return bytes->substr(0, fault.keep);
      case WatchFault::Kind::kExpired: break;
    }
    state_ = State::kClosed;
    co_return std::string(R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},)"
                          R"("status":"Failure","message":"too old resource version","reason":"Expired","code":410}})"
                          "\n");
  }
  async::Task<void> write(std::string bytes, base::Deadline deadline) override {
    co_return co_await inner_->write(std::move(bytes), deadline);
  }
  async::Task<void> close_write(base::Deadline deadline) override { co_return co_await inner_->close_write(deadline); }

 private:
  enum class State : std::uint8_t { kOpen, kClosed, kBroken, kSilent };

  async::Task<std::string> silence(base::Deadline deadline) {
    co_await timers_.sleep_until(deadline);
    co_return base::fail(ErrorKind::kDeadline, "nothing came in time");
  }

  async::ByteStreamPtr inner_;
  kube::KubeRequest opened_;
  ApiFaults& faults_;
  async::Timers& timers_;
  State state_ = State::kOpen;
};

}  // namespace

async::Task<bool> FaultyKubeApi::wait(base::Duration how_long, base::Deadline deadline) {
  if (how_long <= base::Duration::zero()) co_return true;
  const base::TimePoint due = timers_.now() + how_long;
  co_await timers_.sleep_until(std::min(due, deadline));
  co_return due <= deadline;
}

/// Always an error: what the client sees of a request that was lost on one of its ways.
async::Task<void> FaultyKubeApi::lose(RequestFault fault, net::Method method, base::Deadline deadline) {
  if (fault.silent) co_await timers_.sleep_until(deadline);
  if (fault.loss == RequestFault::Loss::kConnect) {
    co_return base::fail(ErrorKind::kUnavailable, "cannot connect to the API server");
  }
  co_return base::fail(unanswered(method, fault.silent));
}

async::Task<kube::KubeResponse> FaultyKubeApi::send(kube::KubeRequest request, base::Deadline deadline) {
  using Loss = RequestFault::Loss;
  const RequestFault fault = faults_.on_request(request);
  const net::Method method = request.method;
  if (fault.loss == Loss::kLate) {
    late_.push_back({timers_.now() + fault.before, std::move(request)});
    carrier_->wake();
  }
  if (fault.loss != Loss::kNone && fault.loss != Loss::kAnswer) {
    auto lost = co_await lose(fault, method, deadline);
    co_return base::fail(std::move(lost.error()));
  }
  if (!*co_await wait(fault.before, deadline)) {
    // It is on its way, and may yet arrive or not: here it does not.
    co_return base::fail(unanswered(method, true));
  }
  base::Result<kube::KubeResponse> answer;
  if (!fault.refusal || fault.refused_too_late) answer = co_await inner_.send(std::move(request), deadline);
  if (fault.loss == Loss::kAnswer) {
    auto lost = co_await lose(fault, method, deadline);
    co_return base::fail(std::move(lost.error()));
  }
  if (!*co_await wait(fault.after, deadline)) co_return base::fail(unanswered(method, true));
  if (fault.refusal) co_return base::fail(refused(method, *fault.refusal));
  co_return answer;
}

async::Loop FaultyKubeApi::carry() {
  for (;;) {
    const auto next = std::ranges::min_element(late_, {}, &Late::due);
    if (next == late_.end() || next->due > timers_.now()) {
      co_await carrier_->wait_until(next == late_.end() ? base::TimePoint::max() : next->due);
      continue;
    }
    Late late = std::move(*next);
    late_.erase(next);
    (void)co_await inner_.send(std::move(late.request), base::TimePoint::max());
  }
}

async::Task<async::ByteStreamPtr> FaultyKubeApi::watch(kube::KubeRequest request, base::Deadline deadline) {
  const RequestFault fault = faults_.on_request(request);
  if (fault.loss != RequestFault::Loss::kNone) {
    auto lost = co_await lose(fault, request.method, deadline);
    co_return base::fail(std::move(lost.error()));
  }
  if (!*co_await wait(fault.before + fault.after, deadline)) co_return base::fail(unanswered(request.method, true));
  if (fault.refusal) co_return base::fail(refused(request.method, *fault.refusal));
  auto stream = co_await inner_.watch(request, deadline);
  if (!stream) co_return std::move(stream);
  co_return std::make_unique<FaultyStream>(std::move(*stream), std::move(request), faults_, timers_);
}

}  // namespace spillway::test
