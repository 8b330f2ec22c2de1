#include "test/simulation/api_link.hpp"

#include <algorithm>

#include "test/simulation/exchange.hpp"
#include "test/simulation/machine.hpp"
#include "test/simulation/world.hpp"

namespace spillway::simulation {
namespace {

using base::ErrorKind;

base::Error lost(const kube::KubeRequest& request) {
  const bool read = request.method == net::Method::kGet;
  return base::Error(read ? ErrorKind::kUnavailable : ErrorKind::kUnknownOutcome, "the connection broke");
}

base::Error too_late(const kube::KubeRequest& request) {
  const bool read = request.method == net::Method::kGet;
  return base::Error(read ? ErrorKind::kDeadline : ErrorKind::kUnknownOutcome, "no answer in time");
}

/// A watch as it comes over a line that may be slow, fall silent or be cut.
class SimulatedWatch final : public async::ByteStream {
 public:
  SimulatedWatch(async::ByteStreamPtr inner, ApiSite& site, async::Timers& timers, Coverage& coverage)
      : inner_(std::move(inner)), site_(site), timers_(timers), coverage_(coverage), cuts_(site.cuts()) {}

  async::Task<std::string> read(base::Deadline deadline) override {
    for (;;) {
      if (cuts_ != site_.cuts()) {
        coverage_.reach(Counter::kWatchCut);
        co_return base::fail(ErrorKind::kUnavailable, "the watch was cut");
      }
      const base::TimePoint now = timers_.now();
      if (now >= deadline) co_return base::fail(ErrorKind::kDeadline, "silent");
      if (site_.silent_until() > now) {
        coverage_.reach(Counter::kWatchSilent);
        co_await timers_.sleep_until(std::min(deadline, site_.silent_until()));
        continue;
      }
      // A cut is noticed within this time.
      auto bytes = co_await inner_->read(std::min(deadline, now + std::chrono::seconds(1)));
      if (bytes && bytes->starts_with(R"({"type":"ERROR")")) coverage_.reach(Counter::kWatchTooOld);
      if (bytes || bytes.error().kind != ErrorKind::kDeadline) co_return bytes;
    }
  }
  async::Task<void> write(std::string, base::Deadline) override {
    co_return base::fail(ErrorKind::kUnsupported, "a watch");
  }
  async::Task<void> close_write(base::Deadline) override { co_return base::fail(ErrorKind::kUnsupported, "a watch"); }

 private:
  async::ByteStreamPtr inner_;
  ApiSite& site_;
  async::Timers& timers_;
  Coverage& coverage_;
  std::uint64_t cuts_;
};

}  // namespace

async::Task<kube::KubeResponse> ApiLink::send(kube::KubeRequest request, base::Deadline deadline) {
  const auto exchange = std::make_shared<Exchange<kube::KubeResponse>>(machine_.host());
  if (!machine_.dead()) world_.deliver(machine_, request, exchange);
  co_await exchange->waiter->wait_until(deadline);
  if (!exchange->answer) co_return base::fail(too_late(request));
  co_return std::move(*exchange->answer);
}

async::Task<async::ByteStreamPtr> ApiLink::watch(kube::KubeRequest request, base::Deadline deadline) {
  ApiSite& site = world_.api();
  const ApiFate fate = site.judge(request, true);
  const base::TimePoint answered = machine_.host().now() + fate.there + fate.back;
  co_await machine_.host().sleep_until(std::min(answered, deadline));
  if (answered > deadline || machine_.dead()) co_return base::fail(too_late(request));
  if (fate.lose_request || fate.lose_answer) co_return base::fail(lost(request));
  if (fate.refuse) co_return base::fail(*fate.refuse);
  if (fate.lie) co_return base::fail(*fate.lie);
  const bool initial = request.target.find("sendInitialEvents") != std::string::npos;
  if (initial && request.target.starts_with("/api/v1/pods") && lists_++ > 0) {
    world_.coverage().reach(Counter::kRelisted);
  }
  auto inner = co_await site.model().watch(std::move(request), deadline);
  if (!inner) co_return base::fail(std::move(inner.error()));
  co_return std::make_unique<SimulatedWatch>(std::move(*inner), site, machine_.host(), world_.coverage());
}

}  // namespace spillway::simulation
