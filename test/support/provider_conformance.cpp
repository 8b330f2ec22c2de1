#include "test/support/provider_conformance.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>

#include <boost/asio/this_coro.hpp>

#include "test/support/provider_access_cases.hpp"
#include "test/support/provider_probe.hpp"
#include "vk-provider/async/task_group.hpp"

namespace spillway::test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using base::ErrorKind;
using model::Capability;
using model::ContainerState;
using model::Instance;
using model::InstanceState;

constexpr std::string_view kPrefix = Probe::kPrefix;

asio::awaitable<void> offers_case(ProviderHarness& harness) {
  Probe probe(harness);
  const auto first = co_await probe.provider().list_offers(probe.soon());
  const auto again = co_await probe.provider().list_offers(probe.soon());
  CHECK(first.has_value());
  CHECK(again.has_value());
  if (!first || !again) co_return;
  CHECK_FALSE(first->empty());
  CHECK(first->size() == again->size());
  for (const model::Offer& o : *first) {
    CHECK(o.provider == probe.provider().info().name);
    CHECK_FALSE(o.id.empty());
    CHECK(o.seen_at <= harness.timers().now());
    CHECK(o.gpu_model.empty() == (o.gpu_count == 0));
    CHECK(std::ranges::count(*first, o.id, &model::Offer::id) == 1);
    CHECK((o.capacity_type != model::CapacityType::kSpot || probe.can(Capability::kSpot)));
  }
}

asio::awaitable<void> life_case(ProviderHarness& harness) {
  Probe probe(harness);
  const auto placement = co_await probe.place(1);
  CHECK(placement.has_value());
  if (!placement) co_return;
  const auto bought = co_await probe.provider().create(*placement, harness.lasting_pod(), probe.soon());
  CHECK(bought.has_value());
  if (!bought) co_return;
  CHECK(bought->tag == placement->tag);
  CHECK(bought->ref.provider == probe.provider().info().name);
  CHECK_FALSE(bought->ref.id.empty());
  CHECK(bought->price_per_hour == placement->price_per_hour);

  const auto running = co_await probe.get_running(bought->ref);
  CHECK(running.has_value());
  if (running) {
    CHECK(Probe::is_running(*running));
    CHECK(running->tag == placement->tag);
    CHECK(running->containers[0].name == "main");
    CHECK(running->containers[0].started_at.has_value());
    CHECK_FALSE(running->containers[0].finished_at.has_value());
    CHECK_FALSE(running->containers[0].exit_code.has_value());
    CHECK_FALSE(running->containers[0].container_id.empty());
  }
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
}

asio::awaitable<void> idempotent_case(ProviderHarness& harness) {
  Probe probe(harness);
  const auto first = co_await probe.buy(1, harness.lasting_pod());
  const auto second = co_await probe.buy(1, harness.lasting_pod());
  CHECK(first.has_value());
  CHECK(second.has_value());
  if (!first || !second) co_return;
  CHECK(first->ref == second->ref);
  const auto owned = co_await probe.owned(std::string(kPrefix));
  CHECK(owned.has_value());
  if (owned) CHECK(owned->size() == 1);
  const bool gone = co_await probe.end(first->ref);
  CHECK(gone);
}

asio::awaitable<void> buy_into(Probe& probe, model::ResolvedPod pod, std::vector<Instance>& out, int& left,
                               async::Waiter& all_done) {
  auto bought = co_await probe.buy(1, std::move(pod));
  CHECK(bought.has_value());
  if (bought) out.push_back(std::move(*bought));
  if (--left == 0) all_done.wake();
}

asio::awaitable<void> concurrent_case(ProviderHarness& harness) {
  constexpr int kBuyers = 3;
  Probe probe(harness);
  const auto executor = co_await asio::this_coro::executor;
  async::TaskGroup group(executor);
  const std::unique_ptr<async::Waiter> all_done = harness.timers().make_waiter();
  std::vector<Instance> bought;
  int left = kBuyers;
  for (int i = 0; i < kBuyers; ++i) {
    group.spawn(buy_into(probe, harness.lasting_pod(), bought, left, *all_done));
  }
  co_await all_done->wait();
  co_await group.join();
  CHECK(bought.size() == kBuyers);
  for (const Instance& i : bought) CHECK(i.ref == bought.front().ref);
  const auto owned = co_await probe.owned(std::string(kPrefix));
  CHECK(owned.has_value());
  if (owned) CHECK(owned->size() == 1);
  if (bought.empty()) co_return;
  const bool gone = co_await probe.end(bought.front().ref);
  CHECK(gone);
}

asio::awaitable<void> terminate_case(ProviderHarness& harness) {
  Probe probe(harness);
  const auto bought = co_await probe.buy(1, harness.lasting_pod());
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto first = co_await probe.provider().terminate(bought->ref, 0s, probe.soon());
  CHECK(first.has_value());
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
  const auto again = co_await probe.provider().terminate(bought->ref, 0s, probe.soon());
  CHECK((again.has_value() || again.error().kind == ErrorKind::kNotFound));
  const auto left = co_await probe.provider().get(bought->ref, probe.soon());
  CHECK_FALSE(left.has_value());
  if (!left) CHECK(left.error().kind == ErrorKind::kNotFound);
  const auto owned = co_await probe.owned(std::string(kPrefix));
  CHECK(owned.has_value());
  if (owned) CHECK(owned->empty());
}

asio::awaitable<void> unknown_case(ProviderHarness& harness) {
  Probe probe(harness);
  const model::InstanceRef nobody(probe.provider().info().name, base::InstanceId("no-such-instance"));
  const auto instance = co_await probe.provider().get(nobody, probe.soon());
  CHECK_FALSE(instance.has_value());
  if (!instance) CHECK(instance.error().kind == ErrorKind::kNotFound);
}

asio::awaitable<void> list_case(ProviderHarness& harness) {
  Probe probe(harness);
  const auto one = co_await probe.buy(1, harness.lasting_pod());
  const auto two = co_await probe.buy(2, harness.lasting_pod());
  CHECK(one.has_value());
  CHECK(two.has_value());
  if (!one || !two) co_return;
  harness.add_foreign("somebody-else");
  harness.add_foreign("spw-other-1");

  const auto all = co_await probe.owned(std::string(kPrefix));
  CHECK(all.has_value());
  if (all) {
    CHECK(all->size() == 2);
    for (const Instance& i : *all) {
      CHECK(i.tag.str().starts_with(kPrefix));
      CHECK(i.ref.provider == probe.provider().info().name);
      CHECK(i.price_per_hour.has_value());
    }
  }
  const auto none = co_await probe.owned("spw-nobody-");
  CHECK(none.has_value());
  if (none) CHECK(none->empty());

  const bool first_gone = co_await probe.end(one->ref);
  CHECK(first_gone);
  const auto rest = co_await probe.owned(std::string(kPrefix));
  CHECK(rest.has_value());
  if (rest) {
    CHECK(rest->size() == 1);
    for (const Instance& i : *rest) CHECK(i.ref == two->ref);
  }
  const bool second_gone = co_await probe.end(two->ref);
  CHECK(second_gone);
}

asio::awaitable<void> exit_code_case(ProviderHarness& harness) {
  Probe probe(harness);
  if (!probe.can(Capability::kExitCode)) co_return;
  int attempt = 0;
  for (const int code : {0, 3}) {
    const auto bought = co_await probe.buy(++attempt, harness.ending_pod(code));
    CHECK(bought.has_value());
    if (!bought) co_return;
    const auto ended = co_await probe.get_exited(bought->ref);
    CHECK(ended.has_value());
    if (!ended) co_return;
    CHECK(ended->state == InstanceState::kExited);
    REQUIRE(ended->containers.size() == 1);
    const model::InstanceContainer& c = ended->containers[0];
    CHECK(c.exit_code == code);
    CHECK_FALSE(c.oom_killed);
    CHECK(c.started_at.has_value());
    CHECK(c.finished_at.has_value());
    CHECK(c.started_at <= c.finished_at);
    const bool gone = co_await probe.end(bought->ref);
    CHECK(gone);
  }
}

asio::awaitable<void> stopped_is_listed_case(ProviderHarness& harness) {
  Probe probe(harness);
  if (!probe.can(Capability::kKeepStopped) || !probe.can(Capability::kExitCode)) co_return;
  const auto bought = co_await probe.buy(1, harness.ending_pod(0));
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto ended = co_await probe.get_exited(bought->ref);
  CHECK(ended.has_value());
  const auto owned = co_await probe.owned(std::string(kPrefix));
  CHECK(owned.has_value());
  if (owned) {
    CHECK(owned->size() == 1);
    for (const Instance& i : *owned) CHECK(i.state == InstanceState::kExited);
  }
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
}

asio::awaitable<void> restart_case(ProviderHarness& harness) {
  Probe probe(harness);
  const auto bought = co_await probe.buy(1, harness.lasting_pod());
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto before = co_await probe.get_running(bought->ref);
  const auto stopped = co_await probe.provider().control_container(
      bought->ref, "main", provider::ContainerAction::kStop, std::chrono::seconds(10), probe.soon());
  if (!probe.can(Capability::kRestartContainer)) {
    CHECK_FALSE(stopped.has_value());
    if (!stopped) CHECK(stopped.error().kind == ErrorKind::kUnsupported);
  } else {
    CHECK(stopped.has_value());
    const auto ended = co_await probe.get_exited(bought->ref);
    CHECK(ended.has_value());
    if (ended) CHECK(Probe::is_exited(*ended));
    const auto started = co_await probe.provider().control_container(
        bought->ref, "main", provider::ContainerAction::kStart, std::chrono::seconds(10), probe.soon());
    CHECK(started.has_value());
    const auto after = co_await probe.get_running(bought->ref);
    CHECK(after.has_value());
    if (before && after && Probe::is_running(*before) && Probe::is_running(*after)) {
      CHECK(after->containers[0].started_at >= before->containers[0].started_at);
      CHECK(after->containers[0].restarts == 0);  // ours are counted in core
    }
  }
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
}

asio::awaitable<void> optional_case(ProviderHarness& harness) {
  Probe probe(harness);
  const auto bought = co_await probe.buy(1, harness.lasting_pod());
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto running = co_await probe.get_running(bought->ref);
  CHECK(running.has_value());
  provider::LogOptions logs;
  logs.container = "main";
  const auto log = co_await probe.provider().open_logs(bought->ref, logs, probe.soon());
  CHECK((!log && log.error().kind == ErrorKind::kUnsupported) == !probe.can(Capability::kLogs));
  provider::ExecOptions exec;
  exec.container = "main";
  exec.command = {"/bin/true"};
  const auto session = co_await probe.provider().open_exec(bought->ref, exec, probe.soon());
  CHECK((!session && session.error().kind == ErrorKind::kUnsupported) == !probe.can(Capability::kExec));
  const auto stream = co_await probe.provider().dial(bought->ref, 1, probe.soon());
  CHECK((!stream && stream.error().kind == ErrorKind::kUnsupported) == !probe.can(Capability::kDial));
  const auto samples = co_await probe.provider().samples(probe.soon());
  CHECK((!samples && samples.error().kind == ErrorKind::kUnsupported) == !probe.can(Capability::kSamples));
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
}

asio::awaitable<void> passed_deadline_case(ProviderHarness& harness) {
  Probe probe(harness);
  auto placement = co_await probe.place(1);
  CHECK(placement.has_value());
  if (!placement) co_return;
  const base::Deadline past = harness.timers().now() - 1s;
  const auto bought = co_await probe.provider().create(*placement, harness.lasting_pod(), past);
  CHECK_FALSE(bought.has_value());
  if (!bought) CHECK((bought.error().kind == ErrorKind::kDeadline || bought.error().kind == ErrorKind::kUnavailable));
  const auto offers = co_await probe.provider().list_offers(past);
  CHECK_FALSE(offers.has_value());
  const auto owned = co_await probe.owned(std::string(kPrefix));
  CHECK(owned.has_value());
  if (owned) CHECK(owned->empty());
}

asio::awaitable<void> stalled_case(ProviderHarness& harness) {
  Probe probe(harness);
  auto placement = co_await probe.place(1);
  CHECK(placement.has_value());
  if (!placement || !harness.stall()) co_return;
  const base::Duration time = 200ms;
  const auto bought =
      co_await probe.provider().create(std::move(*placement), harness.lasting_pod(), harness.timers().now() + time);
  CHECK_FALSE(bought.has_value());
  if (!bought) CHECK(bought.error().kind == ErrorKind::kUnknownOutcome);
  const auto owned = co_await probe.provider().list_owned(std::string(kPrefix), harness.timers().now() + time);
  CHECK_FALSE(owned.has_value());
  if (!owned) CHECK(owned.error().kind == ErrorKind::kDeadline);
}

template <auto Case>
void run_case(ProviderHarness& harness) {
  harness.run(Case(harness));
}

constexpr std::array kCases = {
    ConformanceCase{"offers are listed without side effects", run_case<offers_case>},
    ConformanceCase{"an instance is bought, runs as tagged and priced, and ends", run_case<life_case>},
    ConformanceCase{"two creates with one tag are one instance", run_case<idempotent_case>},
    ConformanceCase{"so are creates at the same time", run_case<concurrent_case>},
    ConformanceCase{"terminate may be repeated; then it is not found, and not listed", run_case<terminate_case>},
    ConformanceCase{"an unknown instance is not found", run_case<unknown_case>},
    ConformanceCase{"a listing shows the prefix, and nothing of others", run_case<list_case>},
    ConformanceCase{"exit codes and times are read back", run_case<exit_code_case>},
    ConformanceCase{"a stopped instance is still listed", run_case<stopped_is_listed_case>},
    ConformanceCase{"a container is stopped and started by order, or that is unsupported", run_case<restart_case>},
    ConformanceCase{"optional calls and capabilities agree", run_case<optional_case>},
    ConformanceCase{"a log is read as it was written, whole and in part", run_case<logs_case>},
    ConformanceCase{"a command reads, writes and ends with its code", run_case<exec_case>},
    ConformanceCase{"a port is connected to, both ways", run_case<dial_case>},
    ConformanceCase{"what runs is measured, and what has gone is not", run_case<samples_case>},
    ConformanceCase{"nothing is done after the deadline", run_case<passed_deadline_case>},
    ConformanceCase{"a silent cloud: a write has an unknown outcome, a read is late", run_case<stalled_case>},
};

}  // namespace

std::span<const ConformanceCase> conformance_cases() { return kCases; }

model::ResolvedPod make_conformance_pod(std::string image, std::map<std::string, std::string> annotations) {
  auto spec = std::make_shared<model::PodSpec>();
  spec->key.ns = "default";
  spec->key.name = "conformance";
  spec->key.uid = base::PodUid("6f1c9d1e-0b5a-4c47-9a57-2f1f6f6e0a01");
  spec->restart_policy = model::RestartPolicy::kNever;
  spec->annotations = std::move(annotations);
  model::ContainerSpec container_spec;
  container_spec.name = "main";
  container_spec.image = image;
  spec->containers.edit().push_back(std::move(container_spec));
  model::ResolvedPod pod;
  pod.spec = std::move(spec);
  model::ResolvedContainer container;
  container.name = "main";
  container.image = std::move(image);
  pod.containers.push_back(std::move(container));
  return pod;
}

}  // namespace spillway::test
