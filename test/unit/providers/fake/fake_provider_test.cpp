#include "providers/fake/fake_provider.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "providers/fake/http_cloud.hpp"
#include "test/support/provider_conformance.hpp"
#include "test/support/virtual_time.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"
#include "test/unit/providers/fake/loopback_http.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using test::VirtualReactor;

namespace {

/// In virtual time, in process or through the protocol.
class FakeHarness final : public test::ProviderHarness {
 public:
  explicit FakeHarness(bool by_http) : cloud_(a_cloud(), reactor_.timers.both()) {
    if (by_http) {
      auto api = std::make_unique<HttpCloud>(std::make_unique<LoopbackHttp>(cloud_, reactor_.timers));
      provider_ =
          std::make_unique<FakeProvider>(base::ProviderName("toy"), nullptr, std::move(api), reactor_.timers, 10s);
    } else {
      provider_ = make_provider(base::ProviderName("toy"), cloud_, reactor_.timers);
    }
  }

  provider::Provider& provider() override { return *provider_; }
  async::Timers& timers() override { return reactor_.timers; }
  void run(boost::asio::awaitable<void> task) override { reactor_.run(std::move(task)); }
  model::ResolvedPod lasting_pod() override { return test::make_conformance_pod("app:1"); }
  model::ResolvedPod ending_pod(int exit_code) override {
    return test::make_conformance_pod(
        "app:1", {{"fake.spillway.dev/run-for", "1s"}, {"fake.spillway.dev/exit-code", std::to_string(exit_code)}});
  }
  std::optional<test::TalkingPod> talking_pod() override {
    test::TalkingPod out;
    out.pod =
        test::make_conformance_pod("app:1", {{"fake.spillway.dev/run-for", "0"}, {"fake.spillway.dev/log-lines", "2"}});
    out.log =
        "default/conformance main run 1: line 1 of 2\n"
        "default/conformance main run 1: line 2 of 2\n";
    return out;
  }
  std::optional<test::EchoingPod> echoing_pod() override {
    test::EchoingPod out;
    out.pod = lasting_pod();
    out.port = 7;
    return out;
  }
  bool stall() override {
    FaultRule slow = a_fault(Effect::kDelay);
    slow.duration = 1h;
    return cloud_.add_fault(slow, reactor_.timers.now()).has_value();
  }
  std::optional<std::string> add_foreign(const std::string& tag) override {
    return cloud_.add_foreign(tag, reactor_.timers.now());
  }

  FakeCloud& cloud() { return cloud_; }
  VirtualReactor& reactor() { return reactor_; }

  model::Placement placement(const std::string& tag) {
    model::Placement p;
    p.offer = base::OfferId("small");
    p.tag = base::InstanceTag(tag);
    return p;
  }

 private:
  VirtualReactor reactor_;
  FakeCloud cloud_;
  std::unique_ptr<provider::Provider> provider_;
};

}  // namespace

TEST_CASE("fake provider in process: conformance") {
  for (const auto& c : test::conformance_cases()) {
    DYNAMIC_SECTION(c.name) {
      FakeHarness harness(false);
      c.run(harness);
    }
  }
}

TEST_CASE("fake provider by protocol: conformance") {
  for (const auto& c : test::conformance_cases()) {
    DYNAMIC_SECTION(c.name) {
      FakeHarness harness(true);
      c.run(harness);
    }
  }
}

TEST_CASE("fake provider: both ways tell the same of lost calls, errors and delays") {
  const bool by_http = GENERATE(false, true);
  FakeHarness h(by_http);
  provider::Provider& p = h.provider();
  const base::Deadline deadline = h.timers().now() + 10s;

  FaultRule lost = a_fault(Effect::kLoseAnswer);
  lost.times = 2;
  REQUIRE(h.cloud().add_fault(lost, h.timers().now()).has_value());
  const auto create = h.reactor().run(p.create(h.placement("spw-a-1"), h.lasting_pod(), deadline));
  CHECK(create.error().kind == ErrorKind::kUnknownOutcome);
  const auto list = h.reactor().run(p.list_owned("spw-", deadline));
  CHECK(list.error().kind == ErrorKind::kUnavailable);
  const auto owned = h.reactor().run(p.list_owned("spw-", deadline)).value();
  REQUIRE(owned.instances.size() == 1);
  const model::InstanceRef ref = owned.instances[0].ref;

  FaultRule limit = a_fault(Effect::kError, Call::kTerminate);
  limit.kind = ErrorKind::kRateLimited;
  limit.retry_after = 2500ms;
  limit.times = 1;
  REQUIRE(h.cloud().add_fault(limit, h.timers().now()).has_value());
  const auto limited = h.reactor().run(p.terminate(ref, 0s, deadline));
  CHECK(limited.error().kind == ErrorKind::kRateLimited);
  CHECK(limited.error().retry_after == 2500ms);

  FaultRule slow = a_fault(Effect::kDelay, Call::kTerminate);
  slow.duration = 3s;
  slow.times = 1;
  REQUIRE(h.cloud().add_fault(slow, h.timers().now()).has_value());
  const auto before = h.timers().now();
  CHECK(h.reactor().run(p.terminate(ref, 0s, deadline)).has_value());
  CHECK(h.timers().now() - before == 3s);
  CHECK(h.reactor().run(p.get(ref, deadline)).error().kind == ErrorKind::kNotFound);
  CHECK(h.cloud().audit(h.timers().now()).instances[0].terminate_calls == 2);
}

TEST_CASE("fake provider: both ways show the same instance") {
  FakeHarness direct(false);
  FakeHarness http(true);
  for (FakeHarness* h : {&direct, &http}) {
    model::ResolvedPod pod = h->ending_pod(3);
    pod.public_ports = {8080, 9090};
    CHECK(h->reactor().run(h->provider().create(h->placement("spw-a-1"), pod, h->timers().now() + 10s)).has_value());
    h->reactor().run_for(5s);
  }
  const auto a = direct.reactor().run(direct.provider().list_owned("spw-", direct.timers().now() + 1s)).value();
  const auto b = http.reactor().run(http.provider().list_owned("spw-", http.timers().now() + 1s)).value();
  REQUIRE(a.instances.size() == 1);
  REQUIRE(b.instances.size() == 1);
  const model::Instance& x = a.instances[0];
  const model::Instance& y = b.instances[0];
  CHECK(x.ref == y.ref);
  CHECK(x.tag == y.tag);
  CHECK(x.state == y.state);
  CHECK(x.price_per_hour == y.price_per_hour);
  CHECK(x.billing.from == y.billing.from);
  CHECK(x.created_at == y.created_at);
  REQUIRE(x.ports.size() == 2);
  REQUIRE(y.ports.size() == 2);
  CHECK(x.ports[1].container_port == y.ports[1].container_port);
  CHECK(x.ports[1].public_port == y.ports[1].public_port);
  CHECK(x.containers[0].exit_code == y.containers[0].exit_code);
  CHECK(x.containers[0].started_at == y.containers[0].started_at);
  CHECK(x.containers[0].finished_at == y.containers[0].finished_at);
  CHECK(x.containers[0].image_id == y.containers[0].image_id);
  CHECK(x.containers[0].container_id == y.containers[0].container_id);
}

TEST_CASE("fake provider: the cloud outlives a provider over it") {
  VirtualReactor reactor;
  FakeCloud cloud(a_cloud(), reactor.timers.both());
  model::Placement placement;
  placement.offer = base::OfferId("small");
  placement.tag = base::InstanceTag("spw-a-1");
  auto first = make_provider(base::ProviderName("toy"), cloud, reactor.timers);
  CHECK(reactor.run(first->create(placement, test::make_conformance_pod("app:1"), reactor.timers.now() + 1s))
            .has_value());
  first.reset();
  auto second = make_provider(base::ProviderName("toy"), cloud, reactor.timers);
  CHECK(reactor.run(second->list_owned("spw-a-", reactor.timers.now() + 1s)).value().instances.size() == 1);
}

TEST_CASE("fake provider: answers of somebody else at the socket") {
  VirtualReactor reactor;
  struct Case {
    int status;
    std::string body;
    ErrorKind read;
    ErrorKind write;
  };
  const std::vector<Case> cases = {
      {404, "<html>", ErrorKind::kInternal, ErrorKind::kInternal},
      {404, R"({"error":{"kind":"no_such_word"}})", ErrorKind::kInternal, ErrorKind::kInternal},
      {500, "", ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {429, "", ErrorKind::kRateLimited, ErrorKind::kRateLimited},
      {200, "{", ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {200, "[]", ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {200, "{}", ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {200, R"({"instances":null})", ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {200, R"({"instances":[{"tag":"x"}]})", ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
  };
  for (const Case& c : cases) {
    INFO(c.status << " " << c.body);
    HttpCloud cloud(std::make_unique<CannedHttp>(c.status, c.body));
    const auto deadline = reactor.timers.now() + 1s;
    CHECK(reactor.run(cloud.list_owned("spw-", deadline)).error().kind == c.read);
    CHECK(reactor.run(cloud.create(a_purchase("spw-a-1"), deadline)).error().kind == c.write);
  }
}

TEST_CASE("fake provider: type from the registry") {
  VirtualReactor reactor;
  provider::ProviderDeps deps;
  deps.executor = reactor.ctx.get_executor();
  deps.timers = &reactor.timers;
  const provider::ProviderType type = provider_type();
  const auto config = nlohmann::json::parse(R"({"bootTime": "3s", "settleTime": "4s"})");
  CHECK(type.validate(config).empty());
  auto made = type.make(base::ProviderName("trial"), config, deps);
  REQUIRE(made.has_value());
  CHECK((*made)->info().name.str() == "trial");
  CHECK((*made)->info().type == "fake");
  CHECK((*made)->info().settle_time == 4s);
  const auto offers = reactor.run((*made)->list_offers(reactor.timers.now() + 1s)).value();
  CHECK(offers.size() >= 12);
  CHECK(type.make(base::ProviderName("trial"), nlohmann::json::parse(R"({"mode": 1})"), deps).error().kind ==
        ErrorKind::kInvalid);
}
