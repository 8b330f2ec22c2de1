#include "vk-provider/daemon/cli_status.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "providers/fake/fake_provider.hpp"
#include "test/support/virtual_time.hpp"
#include "test/unit/daemon/canned_api.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"
#include "vk-provider/daemon/cluster_access.hpp"

using namespace std::chrono_literals;
using nlohmann::json;
namespace base = spillway::base;
namespace daemon_ns = spillway::daemon;
namespace fake = spillway::providers::fake;
using base::ErrorKind;
using daemon_ns::Output;
using daemon_ns::StatusReport;
using daemon_ns::Table;
using spillway::test::CannedApi;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kUid = "11111111-1111-4111-8111-111111111111";
constexpr const char* kLeasePath = "/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases/spillway-burst";

json condition(const char* type, const char* status, const char* reason) {
  return {{"type", type}, {"status", status}, {"reason", reason}, {"message", ""}};
}

json pod(const std::string& name, const char* phase) {
  return {{"metadata", {{"name", name}, {"namespace", "team"}, {"uid", kUid}}},
          {"spec", {{"nodeName", "gpu"}, {"containers", {{{"name", "main"}, {"image", "app"}}}}}},
          {"status", {{"phase", phase}}}};
}

struct Fixture {
  Fixture() {
    provider = fake::make_provider(base::ProviderName("toy"), cloud, r.timers);
    in.api = &api;
    in.timers = &r.timers;
    in.providers = {provider.get()};
    options.installation.name = "burst";
    options.installation.cluster_id = "home";
    options.nodes = {"gpu"};
    node({condition("Ready", "True", "KubeletReady"), condition("MemoryPressure", "False", "Fine"),
          condition("KernelDeadlock", "True", "SomebodyElses"),
          condition("SpillwayProvidersReachable", "True", "ProvidersReachable")});
    lease(5s);
    pods(json::array({pod("a", "Running")}));
  }

  void node(const json& conditions, const std::string& installation = "burst") {
    api.answers["/api/v1/nodes/gpu"] = json{
        {"metadata", {{"name", "gpu"}, {"uid", "n"}, {"labels", {{"spillway.dev/installation", installation}}}}},
        {"status",
         {{"conditions", conditions}}}}.dump();
  }
  void lease(base::Duration age) {
    const auto renewed = r.timers.wall() - std::chrono::duration_cast<std::chrono::microseconds>(age);
    api.answers[kLeasePath] = json{{"metadata", {{"name", "spillway-burst"}, {"resourceVersion", "3"}}},
                                   {"spec",
                                    {{"holderIdentity", "host_1"},
                                     {"leaseDurationSeconds", 30},
                                     {"renewTime", base::to_rfc3339_micro(renewed)}}}}
                                  .dump();
  }
  void pods(const json& items) {
    api.answers["/api/v1/pods"] = json{{"metadata", json::object()}, {"items", items}}.dump();
  }
  StatusReport status() { return r.run(daemon_ns::gather_status(in, options)); }

  VirtualReactor r;
  CannedApi api;
  fake::FakeCloud cloud{fake::a_cloud(), r.timers.both()};
  std::unique_ptr<spillway::provider::Provider> provider;
  daemon_ns::Surroundings in;
  daemon_ns::StatusOptions options;
};

}  // namespace

TEST_CASE("status shows a healthy installation") {
  Fixture f;
  const auto tag = daemon_ns::make_ownership("home", "burst").make_tag(base::PodUid(kUid), 1);
  REQUIRE(f.cloud.create(fake::a_purchase(tag->str()), f.r.timers.now()).result.has_value());
  const StatusReport report = f.status();
  CHECK(report.exit_code == 0);
  CHECK(to_text(report, Output::kTable) ==
        "Daemon: host_1, renewed 5s ago\n"
        "\n"
        "NODE  READY  PODS       REMARK\n"
        "gpu   True   1 running\n"
        "\n"
        "PROVIDER  TYPE  REACHABLE  OFFERS  FROM $/H  INSTANCES  NOW $/H  REMARK\n"
        "toy       fake  yes        2 of 2  0.36      1 running  0.36\n");
  const json shown = json::parse(to_text(report, Output::kJson));
  CHECK(shown["lease"] == json({{"holder", "host_1"}, {"expired", false}, {"renewedSecondsAgo", 5}}));
  CHECK(shown["nodes"][0]["podsByStage"] == json({{"running", 1}}));
  CHECK(shown["nodes"][0]["unusualConditions"].empty());
  CHECK(shown["providers"][0]["instancesByState"] == json({{"running", 1}}));
  CHECK(shown["providers"][0]["instancesPerHour"] == "0.36");
  CHECK(shown["notRunning"].empty());
}

TEST_CASE("status names what is wrong, and why pods do not run") {
  Fixture f;
  f.node(
      {condition("Ready", "Unknown", "NodeStatusUnknown"), condition("SpillwayProvidersReachable", "False", "Outage")});
  f.lease(31s);
  json waiting = pod("b", "Pending");
  waiting["status"]["containerStatuses"] = {
      {{"name", "main"}, {"state", {{"waiting", {{"reason", "NoCapacity"}, {"message", "0 of 2 offers fit"}}}}}}};
  json leaving = pod("c", "Running");
  leaving["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z";
  f.pods({waiting, leaving, pod("d", "Succeeded"), pod("e", "Pending")});
  REQUIRE(f.cloud.add_fault(fake::a_fault(fake::Effect::kPartialList, fake::Call::kListOwned), f.r.timers.now())
              .has_value());
  const StatusReport report = f.status();
  CHECK(report.exit_code == 0);
  CHECK(report.lease.expired);
  REQUIRE(report.nodes.size() == 1);
  CHECK(report.nodes[0].ready == "Unknown");
  CHECK(report.nodes[0].unusual.size() == 2);
  CHECK(report.nodes[0].pods_by_stage == std::map<std::string, int>{{"finished", 1}, {"stopping", 1}, {"waiting", 2}});
  REQUIRE(report.waiting.size() == 3);
  CHECK(report.waiting[0].pod == "team/b");
  CHECK(report.waiting[0].stage == "waiting");
  CHECK(report.waiting[0].why == "NoCapacity: 0 of 2 offers fit");
  CHECK(report.waiting[1].stage == "stopping");
  CHECK(report.waiting[2].why == "no daemon has looked at it yet");
  CHECK_FALSE(report.providers.at(0).incomplete_why.empty());
  const std::string table = to_text(report, Output::kTable);
  CHECK(table.starts_with("Daemon: host_1, renewed 31s ago: EXPIRED, no daemon is at work\n"));
  CHECK(table.find("Ready=Unknown NodeStatusUnknown; SpillwayProvidersReachable=False Outage") != std::string::npos);
  CHECK(table.find("listing incomplete, there may be more: ") != std::string::npos);
}

TEST_CASE("status tells an absent node from one of somebody else") {
  Fixture f;
  f.node(json::array(), "theirs");
  CHECK(f.status().nodes.at(0).problem.starts_with("a Node of this name belongs to somebody else"));
  f.api.answers.erase("/api/v1/nodes/gpu");
  f.api.answers.erase(kLeasePath);
  const StatusReport report = f.status();
  CHECK(report.exit_code == 0);
  CHECK(report.nodes.at(0).problem == "not registered; is the daemon running?");
  CHECK(report.lease.problem == "no daemon of this installation has ever run here");
}

TEST_CASE("status shows the providers also when the API server is away") {
  Fixture f;
  f.api.answers.clear();
  f.api.answers["/"] = base::fail(ErrorKind::kUnavailable, "connection refused");
  const StatusReport report = f.status();
  CHECK(report.exit_code == 1);
  CHECK(report.problem == "the API server cannot be asked: connection refused");
  REQUIRE(report.providers.size() == 1);
  CHECK(report.providers[0].offers == 2);
  CHECK(json::parse(to_text(report, Output::kJson))["problem"] == report.problem);
}

TEST_CASE("status says which provider does not answer") {
  Fixture f;
  REQUIRE(f.cloud.add_fault(fake::a_fault(fake::Effect::kError), f.r.timers.now()).has_value());
  const StatusReport report = f.status();
  CHECK(report.exit_code == 0);
  CHECK_FALSE(report.providers.at(0).problem.empty());
  CHECK(to_text(report, Output::kTable).find("toy       fake  NO") != std::string::npos);
}

TEST_CASE("a table is as wide as its cells, and cells cannot move the cursor") {
  Table table({"A", "LONG", "C"});
  table.add({"wider", "x", "\x1b[2Jhi\n"});
  table.add({"\xc3\xa9", "", ""});
  CHECK(table.to_text() == "A      LONG  C\nwider  x      [2Jhi\n\xc3\xa9\n");
}

TEST_CASE("the API server is that of the flag, then of the pod, then of $KUBECONFIG") {
  std::map<std::string, std::string> environment;
  const auto lookup = [&environment](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
  const auto problem = [&](const std::string& flag) {
    const auto access = daemon_ns::find_cluster(flag, lookup);
    REQUIRE_FALSE(access.has_value());
    CHECK(access.error().kind == ErrorKind::kInvalid);
    return access.error().message;
  };
  CHECK(problem("").find("give --kubeconfig FILE") != std::string::npos);
  environment["KUBECONFIG"] = "/nonexistent/from-env";
  CHECK(problem("").find("/nonexistent/from-env") != std::string::npos);
  environment["KUBECONFIG"] = "/a:/b";
  CHECK(problem("").find("several files") != std::string::npos);
  environment["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  CHECK(problem("").find("/var/run/secrets/kubernetes.io/serviceaccount") != std::string::npos);
  CHECK(problem("/nonexistent/from-flag").find("/nonexistent/from-flag") != std::string::npos);
}
