#include <catch2/catch.hpp>

#include <deque>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/provider/metered_provider.hpp"
#include "vk-provider/provider/throttled_provider.hpp"

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace async = spillway::async;
namespace model = spillway::model;
using base::ErrorKind;
using spillway::provider::MeteredProvider;
using spillway::provider::OwnedList;
using spillway::provider::Provider;
using spillway::provider::ProviderInfo;
using spillway::provider::ThrottleConfig;
using spillway::provider::ThrottledProvider;
using spillway::test::VirtualReactor;

namespace {

/// Answers every call after `takes`, with the next planned error or with success.
class PlannedProvider final : public Provider {
 public:
  explicit PlannedProvider(async::Timers& timers) : timers_(timers) { info_.name = base::ProviderName("cloud"); }

  const ProviderInfo& info() const override { return info_; }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override {
    co_return co_await answer<std::vector<model::Offer>>(deadline);
  }
  async::Task<model::Instance> create(model::Placement, model::ResolvedPod, base::Deadline deadline) override {
    co_return co_await answer<model::Instance>(deadline);
  }
  async::Task<model::Instance> get(model::InstanceRef, base::Deadline deadline) override {
    co_return co_await answer<model::Instance>(deadline);
  }
  async::Task<OwnedList> list_owned(std::string, base::Deadline deadline) override {
    co_return co_await answer<OwnedList>(deadline);
  }
  async::Task<void> terminate(model::InstanceRef, std::chrono::seconds, base::Deadline deadline) override {
    co_return co_await answer<void>(deadline);
  }

  async::Task<async::ByteStreamPtr> open_logs(model::InstanceRef ref, spillway::provider::LogOptions options,
                                              base::Deadline deadline) override {
    if (!streams) co_return co_await Provider::open_logs(std::move(ref), std::move(options), deadline);
    co_return co_await answer<async::ByteStreamPtr>(deadline);
  }
  async::Task<spillway::provider::ExecSessionPtr> open_exec(model::InstanceRef, spillway::provider::ExecOptions,
                                                            base::Deadline deadline) override {
    co_return co_await answer<spillway::provider::ExecSessionPtr>(deadline);
  }
  async::Task<async::ByteStreamPtr> dial(model::InstanceRef, int, base::Deadline deadline) override {
    co_return co_await answer<async::ByteStreamPtr>(deadline);
  }
  async::Task<std::vector<spillway::provider::Sample>> samples(base::Deadline deadline) override {
    co_return co_await answer<std::vector<spillway::provider::Sample>>(deadline);
  }

  bool streams = false;
  base::Duration takes{};
  std::deque<base::Error> errors;
  std::vector<base::TimePoint> called_at;
  std::vector<base::Deadline> deadlines;

 private:
  template <class T>
  async::Task<T> answer(base::Deadline deadline) {
    called_at.push_back(timers_.now());
    deadlines.push_back(deadline);
    if (takes > 0s) co_await timers_.sleep_for(takes);
    if (!errors.empty()) {
      base::Error error = errors.front();
      errors.pop_front();
      co_return base::fail(std::move(error));
    }
    if constexpr (std::is_void_v<T>) {
      co_return base::Result<void>();
    } else {
      co_return T();
    }
  }

  async::Timers& timers_;
  ProviderInfo info_;
};

struct Fixture {
  explicit Fixture(ThrottleConfig config = ThrottleConfig()) {
    auto planned = std::make_unique<PlannedProvider>(r.timers);
    cloud = planned.get();
    auto metered = std::make_unique<MeteredProvider>(std::move(planned), r.timers, metrics);
    provider = std::make_unique<ThrottledProvider>(std::move(metered), config, r.timers, metrics);
  }

  base::Deadline in(base::Duration d) const { return r.timers.now() + d; }
  bool shows(const std::string& line) const { return metrics.to_text().find(line) != std::string::npos; }
  void fail_next(int times, ErrorKind kind) {
    for (int i = 0; i < times; ++i) cloud->errors.emplace_back(kind, "down");
  }
  base::Result<OwnedList> list() { return r.run(provider->list_owned("spw-", in(1min))); }
  base::Result<std::vector<model::Offer>> offers(base::Duration within = 1min) {
    return r.run(provider->list_offers(in(within)));
  }

  VirtualReactor r;
  base::Metrics metrics;
  PlannedProvider* cloud = nullptr;
  std::unique_ptr<ThrottledProvider> provider;
};

async::Loop call_and_count(Provider& provider, base::Deadline deadline, int& done, int& refused) {
  const auto answer = co_await provider.list_offers(deadline);
  ++(answer ? done : refused);
}

async::Loop list_once(Provider& provider, base::Deadline deadline) { co_await provider.list_owned("spw-", deadline); }

}  // namespace

TEST_CASE("each call is measured by method and outcome") {
  Fixture f;
  f.cloud->takes = 2s;
  CHECK(f.offers());
  f.fail_next(1, ErrorKind::kNoCapacity);
  CHECK_FALSE(f.r.run(f.provider->create(model::Placement(), model::ResolvedPod(), f.in(1min))));
  const std::string name = "spillway_provider_call_seconds_sum";
  CHECK(f.shows(name + R"({method="list_offers",outcome="ok",provider="cloud"} 2)"));
  CHECK(f.shows(name + R"({method="create",outcome="no_capacity",provider="cloud"} 2)"));
}

TEST_CASE("no call may take longer than its method allows, however patient the caller is") {
  Fixture f;
  const base::TimePoint now = f.r.timers.now();
  f.r.run(f.provider->create(model::Placement(), model::ResolvedPod(), now + 1h));
  f.r.run(f.provider->get(model::InstanceRef(), now + 1h));
  f.r.run(f.provider->list_owned("spw-", now + 1h));
  f.r.run(f.provider->terminate(model::InstanceRef(), 30s, now + 1h));
  f.r.run(f.provider->get(model::InstanceRef(), now + 3s));
  CHECK(f.cloud->deadlines == std::vector<base::Deadline>{now + 20s, now + 10s, now + 30s, now + 30s, now + 3s});
}

TEST_CASE("logs, processes, ports and samples are measured and bounded like every call") {
  Fixture f;
  f.cloud->streams = true;
  const base::TimePoint now = f.r.timers.now();
  CHECK(f.r.run(f.provider->open_logs(model::InstanceRef(), spillway::provider::LogOptions(), now + 1h)));
  CHECK(f.r.run(f.provider->open_exec(model::InstanceRef(), spillway::provider::ExecOptions(), now + 1h)));
  CHECK(f.r.run(f.provider->dial(model::InstanceRef(), 80, now + 1h)));
  CHECK(f.r.run(f.provider->samples(now + 1h)));
  CHECK(f.cloud->deadlines == std::vector<base::Deadline>{now + 15s, now + 15s, now + 15s, now + 10s});
  f.fail_next(4, ErrorKind::kConflict);
  CHECK_FALSE(f.r.run(f.provider->open_logs(model::InstanceRef(), spillway::provider::LogOptions(), now + 1h)));
  CHECK_FALSE(f.r.run(f.provider->open_exec(model::InstanceRef(), spillway::provider::ExecOptions(), now + 1h)));
  CHECK_FALSE(f.r.run(f.provider->dial(model::InstanceRef(), 80, now + 1h)));
  CHECK_FALSE(f.r.run(f.provider->samples(now + 1h)));
  for (const char* const method : {"open_logs", "open_exec", "dial", "samples"}) {
    for (const char* const outcome : {"ok", "conflict"}) {
      CHECK(f.shows("spillway_provider_call_seconds_count{method=\"" + std::string(method) + "\",outcome=\"" + outcome +
                    "\",provider=\"cloud\"} 1"));
    }
  }
  CHECK(f.provider->reachable());
}

TEST_CASE("an outage that logs or samples meet opens the breaker; what a process or a port meets does not") {
  Fixture f;
  f.cloud->streams = true;
  f.fail_next(6, ErrorKind::kUnavailable);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(f.r.run(f.provider->open_exec(model::InstanceRef(), spillway::provider::ExecOptions(), f.in(1s))));
    CHECK_FALSE(f.r.run(f.provider->dial(model::InstanceRef(), 80, f.in(1s))));
  }
  CHECK(f.provider->reachable());
  f.fail_next(5, ErrorKind::kUnavailable);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(f.r.run(f.provider->samples(f.in(1s))));
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(f.r.run(f.provider->open_logs(model::InstanceRef(), spillway::provider::LogOptions(), f.in(1s))));
  }
  CHECK_FALSE(f.provider->reachable());
}

TEST_CASE("what a provider does not do stays unsupported behind the decorators, and harms nothing") {
  Fixture f;
  for (int i = 0; i < 10; ++i) {
    const auto logs = f.r.run(f.provider->open_logs(model::InstanceRef(), spillway::provider::LogOptions(), f.in(1s)));
    REQUIRE_FALSE(logs);
    CHECK(logs.error().kind == ErrorKind::kUnsupported);
  }
  CHECK(f.provider->reachable());
}

TEST_CASE("calls beyond the rate wait for their turn") {
  ThrottleConfig config;
  config.calls_per_second = 2;
  config.burst = 3;
  Fixture f(config);
  const base::TimePoint begun = f.r.timers.now();
  async::TaskGroup group(f.r.ctx.get_executor());
  int done = 0;
  int refused = 0;
  for (int i = 0; i < 6; ++i) group.spawn(call_and_count(*f.provider, begun + 1min, done, refused));
  f.r.run(group.join());
  CHECK(done == 6);
  CHECK(f.cloud->called_at ==
        std::vector<base::TimePoint>{begun, begun, begun, begun + 500ms, begun + 1s, begun + 1500ms});
}

TEST_CASE("a call whose turn comes after its deadline is refused at once, and takes no turn away") {
  ThrottleConfig config;
  config.calls_per_second = 1;
  config.burst = 1;
  Fixture f(config);
  const base::TimePoint begun = f.r.timers.now();
  async::TaskGroup group(f.r.ctx.get_executor());
  int done = 0;
  int refused = 0;
  for (int i = 0; i < 50; ++i) group.spawn(call_and_count(*f.provider, begun + 2s, done, refused));
  f.r.run(group.join());
  CHECK(done == 3);
  CHECK(refused == 47);
  CHECK(f.r.timers.now() == begun + 2s);
  // The refused ones left no debt.
  CHECK(f.offers(1s));
  const auto late = f.offers(100ms);
  REQUIRE_FALSE(late);
  CHECK(late.error().kind == ErrorKind::kRateLimited);
  CHECK(late.error().retry_after == 1s);
}

TEST_CASE("a broken provider is left alone, and the refusal says why and for how long") {
  Fixture f;
  f.fail_next(5, ErrorKind::kUnavailable);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(f.offers());
  CHECK_FALSE(f.provider->reachable());
  CHECK(f.provider->why() == "down");
  CHECK(f.shows(R"(spillway_provider_reachable{provider="cloud"} 0)"));

  const auto refused = f.offers();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kUnavailable);
  CHECK(refused.error().message == "provider cloud is left alone until it recovers: down");
  CHECK(refused.error().retry_after == 5s);
  CHECK(f.cloud->called_at.size() == 5);

  f.r.run_for(5s);
  CHECK(f.offers());
  CHECK(f.provider->reachable());
  CHECK(f.shows(R"(spillway_provider_reachable{provider="cloud"} 1)"));
}

TEST_CASE("a listing still probes a broken provider, and its success opens the way for all") {
  Fixture f;
  f.fail_next(5, ErrorKind::kDeadline);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(f.list());
  CHECK_FALSE(f.provider->reachable());
  CHECK_FALSE(f.offers());
  CHECK(f.list());
  CHECK(f.provider->reachable());
  CHECK(f.offers());
}

TEST_CASE("a rate limit of the provider holds all calls back until it is over") {
  Fixture f;
  base::Error limit(ErrorKind::kRateLimited, "429");
  limit.retry_after = 20s;
  f.cloud->errors.push_back(limit);
  CHECK_FALSE(f.offers());
  const base::TimePoint limited_at = f.r.timers.now();

  const auto impatient = f.offers(10s);
  REQUIRE_FALSE(impatient);
  CHECK(impatient.error().kind == ErrorKind::kRateLimited);
  CHECK(impatient.error().retry_after == 20s);
  CHECK(f.list());
  CHECK(f.r.timers.now() == limited_at + 20s);
  // The wait is not taken from the time that the call itself may take.
  CHECK(f.cloud->deadlines.back() == limited_at + 50s);
}

TEST_CASE("a probe that is cancelled does not close the door for ever") {
  Fixture f;
  f.fail_next(5, ErrorKind::kUnavailable);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(f.list());
  f.cloud->takes = 1h;
  async::TaskGroup group(f.r.ctx.get_executor());
  group.spawn(list_once(*f.provider, f.in(2h)));
  f.r.settle();
  CHECK_FALSE(f.list());  // one probe at a time
  f.r.run(group.stop());
  f.cloud->takes = 0s;
  CHECK(f.list());
}
