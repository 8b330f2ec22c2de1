#include "vk-provider/daemon/cli_sweep.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "providers/fake/fake_provider.hpp"
#include "test/support/virtual_time.hpp"
#include "test/unit/daemon/canned_api.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace daemon_ns = spillway::daemon;
namespace fake = spillway::providers::fake;
using daemon_ns::Output;
using daemon_ns::SweepReport;
using fake::Effect;
using spillway::test::CannedApi;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kLiving = "11111111-1111-4111-8111-111111111111";
constexpr const char* kDead = "22222222-2222-4222-8222-222222222222";

/// A cloud with an instance of a living pod, one of a dead pod, one of another installation and one of a stranger.
struct Fixture {
  Fixture() {
    provider = fake::make_provider(base::ProviderName("toy"), cloud, r.timers);
    in.api = &api;
    in.timers = &r.timers;
    in.providers = {provider.get()};
    options.installation = "burst";
    options.cluster_id = "home";
    pods({kLiving});
    buy("burst", kLiving);
    dead_tag = buy("burst", kDead);
    buy("other", kDead);
    cloud.add_foreign("web-server", r.timers.now());
  }

  std::string buy(const std::string& installation, const char* uid) {
    const std::string tag = daemon_ns::make_ownership("home", installation).make_tag(base::PodUid(uid), 1)->str();
    REQUIRE(cloud.create(fake::a_purchase(tag), r.timers.now()).result.has_value());
    return tag;
  }
  void pods(const std::vector<std::string>& uids) {
    nlohmann::json list = {{"metadata", {{"resourceVersion", "7"}}}, {"items", nlohmann::json::array()}};
    for (const std::string& uid : uids) list["items"].push_back({{"metadata", {{"uid", uid}}}});
    api.answers["/api/v1/pods"] = list.dump();
  }
  void fault(Effect effect, fake::Call call) {
    REQUIRE(cloud.add_fault(fake::a_fault(effect, call), r.timers.now()).has_value());
  }
  SweepReport sweep() { return r.run(daemon_ns::sweep(in, options)); }
  std::size_t size() { return cloud.size(r.timers.now()); }

  VirtualReactor r;
  CannedApi api;
  fake::FakeCloud cloud{fake::a_cloud(), r.timers.both()};
  std::unique_ptr<spillway::provider::Provider> provider;
  daemon_ns::Surroundings in;
  daemon_ns::SweepOptions options;
  std::string dead_tag;
};

}  // namespace

TEST_CASE("sweep --dry-run reports the orphan, ends nothing, and does not wait") {
  Fixture f;
  f.options.dry_run = true;
  const auto begin = f.r.timers.now();
  const SweepReport report = f.sweep();
  CHECK(report.exit_code == 0);
  CHECK(report.instances == 2);
  REQUIRE(report.found.size() == 1);
  CHECK(report.found[0].instance.tag.str() == f.dead_tag);
  CHECK(report.found[0].owner.uid.str() == kDead);
  CHECK(report.found[0].outcome == "orphan");
  CHECK(f.size() == 4);
  CHECK(f.r.timers.now() - begin < 10s);
}

TEST_CASE("sweep ends the orphan alone, after two looks, and waits until it is not found") {
  Fixture f;
  const auto begin = f.r.timers.now();
  const SweepReport report = f.sweep();
  CHECK(report.exit_code == 0);
  REQUIRE(report.found.size() == 1);
  CHECK(report.found[0].outcome == "gone");
  CHECK(f.size() == 3);
  CHECK(f.r.timers.now() - begin >= 10s);
}

TEST_CASE("sweep spares an instance whose pod turns up at the second look") {
  Fixture f;
  int lists = 0;
  f.api.on_request = [&](const std::string& target) {
    if (target.starts_with("/api/v1/pods") && ++lists == 2) f.pods({kLiving, kDead});
  };
  const SweepReport report = f.sweep();
  CHECK(report.exit_code == 0);
  CHECK(report.found.at(0).outcome == "spared");
  CHECK(f.size() == 4);
}

TEST_CASE("sweep refuses when it cannot see everything") {
  Fixture f;
  SECTION("an incomplete listing") { f.fault(Effect::kPartialList, fake::Call::kListOwned); }
  SECTION("a provider that does not answer") { f.fault(Effect::kError, fake::Call::kListOwned); }
  SECTION("pods that cannot be listed") {
    f.api.answers["/api/v1/pods"] = base::fail(base::ErrorKind::kPermission, "pods is forbidden");
  }
  SECTION("an incomplete listing at the second look") {
    fake::FaultRule rule = fake::a_fault(Effect::kPartialList, fake::Call::kListOwned);
    rule.skip = 1;
    REQUIRE(f.cloud.add_fault(rule, f.r.timers.now()).has_value());
  }
  const SweepReport report = f.sweep();
  CHECK(report.exit_code == 3);
  CHECK_FALSE(report.problem.empty());
  CHECK(f.size() == 4);
}

TEST_CASE("sweep fails when the orphan does not go, or the cluster cannot be named") {
  Fixture f;
  SECTION("terminate is accepted, and nothing happens") {
    f.fault(Effect::kStuckTermination, fake::Call::kTerminate);
    const SweepReport report = f.sweep();
    CHECK(report.exit_code == 1);
    CHECK(report.found.at(0).outcome == "ending");
  }
  SECTION("terminate is refused") {
    f.fault(Effect::kError, fake::Call::kTerminate);
    const SweepReport report = f.sweep();
    CHECK(report.exit_code == 1);
    CHECK(report.found.at(0).outcome == "failed");
  }
  SECTION("no cluster id") {
    f.options.cluster_id.clear();
    CHECK(f.sweep().exit_code == 1);
  }
  CHECK(f.size() == 4);
}

TEST_CASE("sweep asks for the cluster's id unless it is configured") {
  Fixture f;
  f.options.cluster_id.clear();
  f.options.dry_run = true;
  f.api.answers["/api/v1/namespaces/kube-system"] = R"({"metadata":{"name":"kube-system","uid":"home"}})";
  CHECK(f.sweep().found.size() == 1);
}

TEST_CASE("sweep shows a table and JSON") {
  Fixture f;
  f.options.dry_run = true;
  const SweepReport report = f.sweep();
  const std::string table = to_text(report, Output::kTable);
  CHECK(table.starts_with("2 instances of this installation, 1 without a living pod\nPROVIDER"));
  CHECK(table.find(kDead) != std::string::npos);
  const auto json = nlohmann::json::parse(to_text(report, Output::kJson));
  CHECK(json["instances"] == 2);
  CHECK(json["orphans"].size() == 1);
  CHECK(json["orphans"][0]["podUID"] == kDead);
  CHECK(json["orphans"][0]["attempt"] == 1);
  CHECK(json["orphans"][0]["provider"] == "toy");
  CHECK(json["orphans"][0]["pricePerHour"] == "0.36");
}
