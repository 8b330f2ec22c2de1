#include "vk-provider/control/sample_controller.hpp"

#include <catch2/catch.hpp>

#include "test/support/answering_provider.hpp"
#include "test/support/pod_builder.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::control;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// One pod that runs, at a provider that measures as it is told.
class Meter {
 public:
  explicit Meter(bool can_measure = true) {
    auto inner = std::make_unique<test::AnsweringProvider>();
    provider = inner.get();
    if (can_measure) provider->can(model::Capability::kSamples);
    provider->measure = [this] { return answer(); };
    providers.add(std::make_unique<provider::ThrottledProvider>(std::move(inner), provider::ThrottleConfig(),
                                                                reactor.timers, metrics));
    PodEntry entry;
    entry.record.spec = test::share(test::a_pod());
    entry.record.stage = model::Running{test::an_instance(model::InstanceState::kRunning)};
    entry.record.containers.emplace_back().claim = test::an_instance(model::InstanceState::kRunning).containers[0];
    pods.insert(base::PodUid(test::kUid), std::move(entry));
    controller = std::make_unique<SampleController>(providers, pods, reactor.timers);
    for (async::Loop& loop : controller->loops()) group.spawn(std::move(loop));
  }
  ~Meter() { reactor.run(group.stop()); }

  void refresh(base::Duration patience = 3s) { reactor.run(controller->refresh(reactor.timers.now() + patience)); }
  const core::ContainerUsage* main() const {
    const core::PodUsage* const pod = controller->usage().find(base::PodUid(test::kUid));
    return pod == nullptr ? nullptr : pod->find("main");
  }
  provider::Sample sample(const std::string& instance = "i-1", const std::string& container = "main") const {
    provider::Sample out;
    out.instance = model::InstanceRef(base::ProviderName("cloud"), base::InstanceId(instance));
    out.container = container;
    out.cpu_ns = cpu_ns;
    out.working_set = 1000;
    out.at = reactor.timers.wall();
    return out;
  }

  test::VirtualReactor reactor;
  base::Metrics metrics;
  test::AnsweringProvider* provider = nullptr;
  ProviderSet providers;
  PodStore pods;
  std::uint64_t cpu_ns = 5 * kSecond;
  bool away = false;
  std::unique_ptr<SampleController> controller;
  async::TaskGroup group{reactor.ctx.get_executor()};

 private:
  base::Result<std::vector<provider::Sample>> answer() const {
    if (away) return base::fail(base::ErrorKind::kUnavailable, "the engine is away");
    return std::vector{sample(), sample("i-1", "unknown"), sample("i-2")};
  }
};

}  // namespace

TEST_CASE("nobody is asked what containers use until somebody wants to know") {
  Meter meter;
  meter.reactor.run_for(1h);
  CHECK(meter.provider->rounds == 0);
  CHECK(meter.main() == nullptr);
}

TEST_CASE("the first question waits for a round, the next ones find what is there") {
  Meter meter;
  meter.refresh();
  REQUIRE(meter.main() != nullptr);
  CHECK(meter.main()->last.cpu_ns == 5 * kSecond);
  CHECK(meter.main()->last.run == 0);
  CHECK(meter.provider->rounds == 1);
  meter.refresh();
  CHECK(meter.provider->rounds == 1);
  CHECK(meter.controller->usage().find(base::PodUid(test::kUid))->containers.size() == 1);
}

TEST_CASE("a round each ten seconds, until five minutes after the last question") {
  Meter meter;
  meter.refresh();
  meter.reactor.run_for(1s);
  meter.cpu_ns = 10 * kSecond;
  meter.reactor.run_for(9s);
  CHECK(meter.provider->rounds == 2);
  CHECK(meter.main()->nano_cores == kSecond / 2);
  meter.reactor.run_for(1h);
  CHECK(meter.provider->rounds == 30);
  meter.refresh();
  CHECK(meter.provider->rounds == 31);
}

TEST_CASE("a provider that is away keeps nobody waiting, and what was measured stays") {
  Meter meter;
  meter.refresh();
  CHECK_FALSE(meter.controller->failing());
  meter.away = true;
  meter.reactor.run_for(30s);
  CHECK(meter.controller->failing());
  CHECK(meter.main() != nullptr);
  const base::TimePoint before = meter.reactor.timers.now();
  meter.refresh();
  CHECK(meter.reactor.timers.now() == before);
  meter.away = false;
  meter.reactor.run_for(5min);
  CHECK_FALSE(meter.controller->failing());
}

TEST_CASE("a sample that is older than the run of its container is of a former one, and left out") {
  Meter meter;
  meter.pods.find(base::PodUid(test::kUid))->record.containers[0].claim.started_at = meter.reactor.timers.wall() + 1s;
  meter.refresh();
  CHECK(meter.main() == nullptr);
  meter.reactor.run_for(11s);
  CHECK(meter.main() != nullptr);
}

TEST_CASE("a pod that is gone is forgotten") {
  Meter meter;
  meter.refresh();
  meter.pods.erase(base::PodUid(test::kUid));
  meter.reactor.run_for(11s);
  CHECK(meter.main() == nullptr);
}

TEST_CASE("a provider that cannot measure is not asked, and not waited for") {
  Meter meter(false);
  const base::TimePoint before = meter.reactor.timers.now();
  meter.refresh();
  CHECK(meter.reactor.timers.now() == before);
  CHECK(meter.provider->rounds == 0);
  CHECK_FALSE(meter.controller->failing());
}
