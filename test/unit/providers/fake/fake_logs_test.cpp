// Logs, samples and what stands in their way, in process and by protocol.
#include <catch2/catch.hpp>

#include <algorithm>

#include "providers/fake/fake_provider.hpp"
#include "providers/fake/http_cloud.hpp"
#include "test/support/provider_conformance.hpp"
#include "test/support/says.hpp"
#include "test/support/virtual_time.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"
#include "test/unit/providers/fake/loopback_http.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using provider::ContainerAction;
using provider::LogOptions;
using test::VirtualReactor;

namespace {

struct Logs {
  Logs() : cloud(a_cloud(), reactor.timers.both()) {
    const bool by_http = GENERATE(false, true);
    if (by_http) {
      auto api = std::make_unique<HttpCloud>(std::make_unique<LoopbackHttp>(cloud, reactor.timers));
      provider =
          std::make_unique<FakeProvider>(base::ProviderName("toy"), nullptr, std::move(api), reactor.timers, 10s);
    } else {
      provider = make_provider(base::ProviderName("toy"), cloud, reactor.timers);
    }
  }

  model::InstanceRef buy(const std::map<std::string, std::string>& orders) {
    std::map<std::string, std::string> annotations;
    for (const auto& [key, value] : orders) annotations.emplace("fake.spillway.dev/" + key, value);
    model::Placement placement;
    placement.offer = base::OfferId("small");
    placement.tag = base::InstanceTag("spw-a-" + std::to_string(++bought));
    const auto instance =
        reactor.run(provider->create(placement, test::make_conformance_pod("app:1", std::move(annotations)), soon()));
    REQUIRE(instance);
    return instance->ref;
  }
  base::Deadline soon() const { return reactor.timers.now() + 20s; }
  static LogOptions options() {
    LogOptions out;
    out.container = "main";
    return out;
  }
  base::Result<async::ByteStreamPtr> open(const model::InstanceRef& ref, LogOptions options) {
    return reactor.run(provider->open_logs(ref, std::move(options), soon()));
  }
  std::string read(const model::InstanceRef& ref, LogOptions options = Logs::options()) {
    auto stream = open(ref, std::move(options));
    if (!stream) return "(" + stream.error().message + ")";
    std::string all;
    for (;;) {
      const auto bytes = reactor.run((*stream)->read(reactor.timers.now() + 1h));
      if (!bytes) return all + "(" + bytes.error().message + ")";
      if (bytes->empty()) return all;
      all += *bytes;
    }
  }
  static std::string line(int number, int of, int run = 1) {
    return "default/conformance main run " + std::to_string(run) + ": line " + std::to_string(number) + " of " +
           std::to_string(of) + "\n";
  }

  VirtualReactor reactor;
  FakeCloud cloud;
  std::unique_ptr<provider::Provider> provider;
  int bought = 0;
};

}  // namespace

TEST_CASE("fake logs: three lines from the pod's name, or as many as are ordered") {
  Logs f;
  CHECK(f.read(f.buy({})) == Logs::line(1, 3) + Logs::line(2, 3) + Logs::line(3, 3));
  CHECK(f.read(f.buy({{"log-lines", "1"}})) == Logs::line(1, 1));
  CHECK(f.read(f.buy({{"log-lines", "0"}})).empty());
  CHECK(f.read(f.buy({{"start-error", "no such file"}})).empty());
  const std::string many = f.read(f.buy({{"log-lines", "2500"}}));
  CHECK(std::ranges::count(many, '\n') == 2500);
  CHECK(many.ends_with(Logs::line(2500, 2500)));
}

TEST_CASE("fake logs: tail, since, limit, timestamps and one output") {
  Logs f;
  const base::WallTime begin = f.reactor.timers.wall();
  const model::InstanceRef ref = f.buy({{"log-every", "2s"}});
  f.reactor.run_for(10s);
  LogOptions wanted = Logs::options();
  wanted.tail_lines = 2;
  CHECK(f.read(ref, wanted) == Logs::line(2, 3) + Logs::line(3, 3));
  wanted.timestamps = true;
  wanted.tail_lines = 1;
  CHECK(f.read(ref, wanted) == "2026-11-29T00:00:04.000000000Z " + Logs::line(3, 3));
  wanted = Logs::options();
  wanted.since = begin + 2s;
  CHECK(f.read(ref, wanted) == Logs::line(2, 3) + Logs::line(3, 3));
  wanted = Logs::options();
  wanted.channel = provider::LogChannel::kStderr;
  CHECK(f.read(ref, wanted) == Logs::line(2, 3));
  wanted = Logs::options();
  wanted.limit_bytes = 7;
  CHECK(f.read(ref, wanted) == "default");
}

TEST_CASE("fake logs: to follow goes on until the run ends, or the instance does") {
  Logs f;
  LogOptions follow = Logs::options();
  follow.follow = true;
  const base::TimePoint begun = f.reactor.timers.now();
  CHECK(f.read(f.buy({{"log-every", "2s"}, {"log-lines", "9"}, {"run-for", "5s"}}), follow) ==
        Logs::line(1, 9) + Logs::line(2, 9) + Logs::line(3, 9));
  CHECK(f.reactor.timers.now() - begun >= 5s);
  CHECK(f.reactor.timers.now() - begun < 6s);

  const model::InstanceRef lasting = f.buy({});
  follow.tail_lines = 0;
  auto stream = f.open(lasting, follow);
  REQUIRE(stream);
  CHECK(f.reactor.run((*stream)->read(f.soon())).error().kind == ErrorKind::kDeadline);
  stream = f.open(lasting, follow);
  REQUIRE(stream);
  REQUIRE(f.reactor.run(f.provider->terminate(lasting, 0s, f.soon())));
  CHECK(f.reactor.run((*stream)->read(f.soon())) == "");
  CHECK(f.reactor.run((*stream)->write("x", f.soon())).error().kind == ErrorKind::kUnsupported);
}

TEST_CASE("fake logs: the run before, and what is not there") {
  Logs f;
  const model::InstanceRef ref = f.buy({{"log-lines", "1"}});
  LogOptions previous = Logs::options();
  previous.previous = true;
  CHECK(f.open(ref, previous).error().kind == ErrorKind::kNotFound);
  REQUIRE(f.reactor.run(f.provider->control_container(ref, "main", ContainerAction::kRestart, 0s, f.soon())));
  CHECK(f.read(ref) == Logs::line(1, 1, 2));
  CHECK(f.read(ref, previous) == Logs::line(1, 1, 1));
  REQUIRE(f.reactor.run(f.provider->control_container(ref, "main", ContainerAction::kRestart, 0s, f.soon())));
  CHECK(f.read(ref, previous) == Logs::line(1, 1, 2));

  LogOptions stranger = Logs::options();
  stranger.container = "stranger";
  CHECK(f.open(ref, stranger).error().kind == ErrorKind::kNotFound);
  const model::InstanceRef booting = f.buy({{"boot-time", "1h"}});
  CHECK(f.open(booting, Logs::options()).error().kind == ErrorKind::kConflict);
  const model::InstanceRef nobody(base::ProviderName("toy"), base::InstanceId("i-nobody"));
  CHECK(f.open(nobody, Logs::options()).error().kind == ErrorKind::kNotFound);

  FaultRule down = a_fault(Effect::kError, Call::kReadLog);
  down.times = 1;
  REQUIRE(f.cloud.add_fault(down, f.reactor.timers.now()));
  CHECK(f.open(ref, Logs::options()).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE("fake exec, attach and dial: where nothing runs there is nothing to reach") {
  Logs f;
  const model::InstanceRef ref = f.buy({});
  provider::ExecOptions command;
  command.container = "main";
  command.command = {"true"};
  provider::ExecOptions attach;
  attach.container = "main";
  CHECK(f.reactor.run(f.provider->open_exec(ref, command, f.soon())));
  CHECK(f.reactor.run(f.provider->dial(ref, 8080, f.soon())));

  // Without input an attach shows the log from now on.
  auto session = f.reactor.run(f.provider->open_exec(ref, attach, f.soon()));
  REQUIRE(session);
  CHECK((*session)->input() == nullptr);
  REQUIRE(f.reactor.run(f.provider->control_container(ref, "main", ContainerAction::kStop, 0s, f.soon())));
  CHECK(f.reactor.run((*session)->output().read(f.soon())) == "");

  for (const provider::ExecOptions& options : {command, attach}) {
    const auto stopped = f.reactor.run(f.provider->open_exec(ref, options, f.soon()));
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().kind == ErrorKind::kConflict);
    CHECK(test::says(stopped.error().message, "is not running"));
  }
  CHECK(f.reactor.run(f.provider->dial(ref, 8080, f.soon())).error().kind == ErrorKind::kConflict);
  const model::InstanceRef nobody(base::ProviderName("toy"), base::InstanceId("i-nobody"));
  CHECK(f.reactor.run(f.provider->dial(nobody, 8080, f.soon())).error().kind == ErrorKind::kNotFound);
}

TEST_CASE("fake samples: CPU and memory rise with time, and only of what runs") {
  Logs f;
  const model::InstanceRef ref = f.buy({});
  f.buy({{"run-for", "1s"}});
  f.buy({{"boot-time", "1h"}});
  f.cloud.add_foreign("somebody", f.reactor.timers.now());
  f.reactor.run_for(10s);
  auto samples = f.reactor.run(f.provider->samples(f.soon()));
  REQUIRE(samples);
  REQUIRE(samples->size() == 1);
  CHECK(samples->at(0).instance == ref);
  CHECK(samples->at(0).container == "main");
  CHECK(samples->at(0).cpu_ns == 1'001'000'000);
  CHECK(samples->at(0).working_set == 26 * 1024 * 1024);
  CHECK(samples->at(0).at == f.reactor.timers.wall());
  f.reactor.run_for(90s);
  samples = f.reactor.run(f.provider->samples(f.soon()));
  REQUIRE(samples);
  CHECK(samples->at(0).cpu_ns == 10'001'000'000);
  CHECK(samples->at(0).working_set == 64 * 1024 * 1024);
}
