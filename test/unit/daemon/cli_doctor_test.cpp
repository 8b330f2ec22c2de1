#include "vk-provider/daemon/cli_doctor.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include <yaml-cpp/yaml.h>

#include "providers/builtin.hpp"
#include "providers/fake/fake_provider.hpp"
#include "test/support/virtual_time.hpp"
#include "test/unit/daemon/canned_api.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"
#include "vk-provider/kube/rights_client.hpp"

using namespace std::chrono_literals;
using nlohmann::json;
namespace base = spillway::base;
namespace core = spillway::core;
namespace daemon_ns = spillway::daemon;
namespace fake = spillway::providers::fake;
namespace net = spillway::net;
using core::DoctorCheck;
using core::DoctorReport;
using daemon_ns::DoctorOutcome;
using daemon_ns::Output;
using spillway::test::CannedApi;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/";
constexpr const char* kConfig = R"(
apiVersion: spillway.dev/v1
nodes: [{name: burst}]
providers: [{name: toy, type: fake}]
)";

/// The API server as HTTP, which has a clock of its own.
class Server final : public net::HttpClient {
 public:
  spillway::async::Task<net::HttpResponse> send(net::HttpRequest /*request*/, base::Deadline /*deadline*/) override {
    net::HttpResponse answer;
    answer.status = 401;
    answer.headers.emplace_back("date", date);
    co_return answer;
  }
  spillway::async::Task<net::HttpStream> open(net::HttpRequest /*request*/, base::Deadline /*deadline*/) override {
    co_return base::fail(base::ErrorKind::kUnsupported, "no streams here");
  }
  std::string date = "Sun, 29 Nov 2026 00:00:00 GMT";  // when virtual time begins
};

daemon_ns::Config a_config(const std::string& more = {}) {
  static const auto registry = spillway::providers::builtin_providers();
  daemon_ns::ConfigSources sources;
  sources.providers = &registry;
  sources.environment = [](const std::string&) { return std::optional<std::string>(); };
  auto config = daemon_ns::parse_config(kConfig + more, "test.yaml", sources);
  if (!config) FAIL(config.error().front().to_string());
  return *config;
}

/// A cluster that holds nothing but the daemon's leases, and allows everything.
struct Fixture {
  Fixture() {
    provider = fake::make_provider(base::ProviderName("toy"), cloud, r.timers);
    in.api = &api;
    in.server = &server;
    in.timers = &r.timers;
    in.providers = {provider.get()};
    for (const char* list :
         {"/api/v1/nodes", "/api/v1/pods", "/apis/policy/v1/poddisruptionbudgets", "/apis/apps/v1/daemonsets",
          "/api/v1/resourcequotas", "/api/v1/configmaps", "/api/v1/events"}) {
      put(list, json::array());
    }
    api.answers["/version"] = std::string(R"({"gitVersion":"v1.36.3"})");
    api.answers["/apis/authorization.k8s.io/v1/subjectaccessreviews"] = std::string(R"({"status":{"allowed":true}})");
    api.answers["/apis/authentication.k8s.io/v1/selfsubjectreviews"] =
        std::string(R"({"status":{"userInfo":{"username":"admin"}}})");
    lease("spillway-system/leases/spillway-spillway");
    lease("kube-node-lease/leases/burst");
  }

  void put(const std::string& list, const json& items, const std::string& next = {}) {
    api.answers[list] = json{{"metadata", {{"resourceVersion", "7"}, {"continue", next}}}, {"items", items}}.dump();
  }
  void lease(const std::string& path, base::Duration age = 5s) {
    // By the server's clock, which is taken to be in the middle of the second that it names.
    const auto renewed = r.timers.wall() + 500ms - std::chrono::duration_cast<std::chrono::microseconds>(age);
    api.answers[kLeases + path] = json{{"metadata", {{"name", "lease"}, {"resourceVersion", "3"}}},
                                       {"spec",
                                        {{"holderIdentity", "host_1"},
                                         {"leaseDurationSeconds", 40},
                                         {"renewTime", base::to_rfc3339_micro(renewed)}}}}
                                      .dump();
  }
  DoctorOutcome doctor(const std::string& more = {}) {
    return r.run(daemon_ns::run_doctor(in, daemon_ns::doctor_options(a_config(more), {}, "training")));
  }

  VirtualReactor r;
  CannedApi api;
  Server server;
  fake::FakeCloud cloud{fake::a_cloud(), r.timers.both()};
  std::unique_ptr<spillway::provider::Provider> provider;
  daemon_ns::Surroundings in;
};

const DoctorReport& report_of(const DoctorOutcome& outcome, DoctorCheck check) {
  const auto found = std::ranges::find(outcome.reports, check, &DoctorReport::check);
  REQUIRE(found != outcome.reports.end());
  return *found;
}

/// The rights that files of config/deploy give.
std::set<core::Right> rights_in(const std::string& file) {
  std::set<core::Right> out;
  for (const YAML::Node& object : YAML::LoadAllFromFile(std::string(SPILLWAY_SOURCE_DIR) + "/config/deploy/" + file)) {
    const auto kind = object["kind"].as<std::string>();
    if (kind != "Role" && kind != "ClusterRole") continue;
    for (const auto& rule : object["rules"]) {
      core::Right right;
      right.ns = object["metadata"]["namespace"].as<std::string>("");
      const auto names = rule["resourceNames"].as<std::vector<std::string>>(std::vector<std::string>{""});
      for (const auto& group : rule["apiGroups"].as<std::vector<std::string>>()) {
        for (const auto& resource : rule["resources"].as<std::vector<std::string>>()) {
          for (const auto& verb : rule["verbs"].as<std::vector<std::string>>()) {
            for (const std::string& name : names) {
              right.group = group;
              right.resource = resource;
              right.verb = verb;
              right.name = name;
              out.insert(right);
            }
          }
        }
      }
    }
  }
  return out;
}

std::set<core::Right> as_set(std::vector<core::Right> rights) { return {rights.begin(), rights.end()}; }

}  // namespace

TEST_CASE("the doctor asks for exactly the rights that config/deploy gives") {
  CHECK(as_set(core::daemon_rights("spillway", "spillway-system")) == rights_in("rbac.yaml"));
  CHECK(as_set(core::gate_rights("spillway", "spillway-system")) == rights_in("gate/rbac.yaml"));
  CHECK(as_set(core::surge_rights()) == rights_in("surge/rbac.yaml"));
  CHECK(as_set(core::endpoint_rights()) == rights_in("endpoints/rbac.yaml"));
}

TEST_CASE("the document has a row for each check, in their order") {
  std::ifstream in(std::string(SPILLWAY_SOURCE_DIR) + "/vk-provider/docs/doctor.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::size_t at = 0;
  for (const DoctorReport& report : core::examine(core::DoctorFacts())) {
    const std::string row = "\n| `" + std::string(to_string(report.check)) + "` | ";
    INFO(row);
    at = text.find(row, at);
    REQUIRE(at != std::string::npos);
  }
}

TEST_CASE("the doctor of a healthy cluster") {
  Fixture f;
  const DoctorOutcome outcome = f.doctor();
  for (const DoctorReport& report : outcome.reports) {
    INFO(to_string(report.check) << " " << report.note);
    CHECK(report.findings.empty());
    CHECK(report.state != DoctorReport::State::kNotRun);
  }
  CHECK(outcome.exit_code == 0);
  CHECK(report_of(outcome, DoctorCheck::kLeases).note == "the daemon: host_1, 5 s ago; node burst: host_1, 5 s ago");
  CHECK(report_of(outcome, DoctorCheck::kRights).note ==
        std::to_string(core::daemon_rights("a", "b").size()) + " rights asked for");
  const std::string table = to_text(outcome, Output::kTable);
  CHECK(table.starts_with("CHECK "));
  CHECK(table.find("\nproviders             ok       toy: 2 offers\n") != std::string::npos);
  const json shown = json::parse(to_text(outcome, Output::kJson));
  CHECK(shown["worst"] == "ok");
  CHECK(shown["checks"].size() == outcome.reports.size());
  CHECK(shown["checks"][0]["check"] == "rights");
}

TEST_CASE("the doctor shows what, why and how to mend it, the worst first") {
  Fixture f;
  f.lease("spillway-system/leases/spillway-spillway", 41s);
  const json zone = {{"metadata", {{"name", "a\x1b[2J"}, {"labels", {{"topology.kubernetes.io/zone", "x"}}}}}};
  f.put("/api/v1/nodes", {zone, {{"metadata", {{"name", "b"}}}}});
  const DoctorOutcome outcome = f.doctor();
  CHECK(outcome.exit_code == 3);
  const std::string table = to_text(outcome, Output::kTable);
  CHECK(
      table.starts_with("ERROR    leases: Lease spillway-system/spillway-spillway: the daemon is not at work: host_1 "
                        "renewed it 41 s ago, for 40 s\n         why: no daemon is at work"));
  CHECK(table.find("\nWARNING  zone-labels: nodes: some have a zone label (a [2J) and some have none (b)\n") !=
        std::string::npos);
  CHECK(table.find("\n         fix: set topology.kubernetes.io/zone on all nodes or on none\n") != std::string::npos);
  const json shown = json::parse(to_text(outcome, Output::kJson));
  CHECK(shown["worst"] == "error");
  const auto leases = std::ranges::find_if(shown["checks"], [](const json& c) { return c["check"] == "leases"; });
  REQUIRE(leases != shown["checks"].end());
  CHECK((*leases)["result"] == "error");
  CHECK((*leases)["findings"][0]["severity"] == "error");
  CHECK_FALSE((*leases)["findings"][0]["fix"].get<std::string>().empty());
}

TEST_CASE("the doctor warns with exit code 1") {
  Fixture f;
  f.server.date = "Sat, 28 Nov 2026 23:59:55 GMT";
  const DoctorOutcome outcome = f.doctor();
  CHECK(outcome.exit_code == 1);
  CHECK(report_of(outcome, DoctorCheck::kClock).findings.at(0).object == "the clock of this machine");
  // Ages are told by the server's clock.
  CHECK(report_of(outcome, DoctorCheck::kLeases).findings.empty());
}

TEST_CASE("the doctor says which list it may not read, and does not call that well") {
  Fixture f;
  f.api.answers["/api/v1/resourcequotas"] = base::fail(base::ErrorKind::kPermission, "resourcequotas is forbidden");
  f.api.answers["/api/v1/configmaps"] = std::string(R"({"metadata":{"resourceVersion":"7"},"items":[{"a":)");
  f.api.answers["/apis/authorization.k8s.io/v1/subjectaccessreviews"] =
      base::fail(base::ErrorKind::kPermission, "subjectaccessreviews is forbidden");
  f.server.date = "soon";
  const DoctorOutcome outcome = f.doctor();
  CHECK(outcome.exit_code == 1);
  for (const DoctorCheck check :
       {DoctorCheck::kQuota, DoctorCheck::kPolicyFights, DoctorCheck::kRights, DoctorCheck::kClock}) {
    CHECK(report_of(outcome, check).state == DoctorReport::State::kNotRun);
  }
  const std::string table = to_text(outcome, Output::kTable);
  CHECK(table.find("WARNING  resource-quota: not checked: resourcequotas is forbidden\n") != std::string::npos);
  CHECK(table.find("\nresource-quota        not checked") != std::string::npos);
}

TEST_CASE("the doctor without an API server looks at the providers alone") {
  Fixture f;
  f.api.answers.clear();
  f.api.answers["/"] = base::fail(base::ErrorKind::kUnavailable, "connection refused");
  REQUIRE(f.cloud.add_fault(fake::a_fault(fake::Effect::kError), f.r.timers.now()).has_value());
  const DoctorOutcome outcome = f.doctor();
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.problem == "the API server cannot be asked: connection refused");
  REQUIRE(outcome.reports.size() == 1);
  CHECK(outcome.reports[0].check == DoctorCheck::kProviders);
  CHECK(outcome.reports[0].findings.size() == 1);
  CHECK(json::parse(to_text(outcome, Output::kJson))["problem"] == outcome.problem);
}

TEST_CASE("the doctor reads lists page by page") {
  Fixture f;
  const auto node = [](const char* name, const json& labels) {
    return json{{"metadata", {{"name", name}, {"labels", labels}}}};
  };
  f.put("/api/v1/nodes", json::array({node("a", {{"topology.kubernetes.io/zone", "x"}})}), "more");
  f.put("/api/v1/nodes?limit=500&continue=more", json::array({node("b", json::object())}));
  CHECK(report_of(f.doctor(), DoctorCheck::kZoneLabels).findings.size() == 1);
}

TEST_CASE("the doctor asks for what a gate, a certificate and Kueue need") {
  Fixture f;
  f.lease("spillway-system/leases/spillway-gate-spillway");
  f.put("/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {{{"metadata", {{"name", "spillway-spillway-1"}}}}, {{"metadata", {{"name", "csr-of-others"}}}}});
  f.api.answers["/apis/kueue.x-k8s.io"] = std::string(R"({"preferredVersion":{"version":"v1beta2"}})");
  f.put("/apis/kueue.x-k8s.io/v1beta2/resourceflavors",
        {{{"metadata", {{"name", "f"}}}, {"spec", {{"nodeLabels", {{"type", "virtual-kubelet"}}}}}}});
  f.api.answers["/apis/scheduling.k8s.io/v1/priorityclasses/training"] = std::string(R"({"value":10000})");
  int asked = 0;
  f.api.on_request = [&asked](const std::string& target) {
    if (target.ends_with("subjectaccessreviews")) ++asked;
  };
  const DoctorOutcome outcome = f.doctor(R"(
gate:
  enabled: true
  inDaemon: false
  prometheus: {url: "http://127.0.0.1:9"}
  gates: [{name: gpu, nodes: [burst]}]
kubeletApi: {enabled: true, certificate: {source: csr}}
)");
  CHECK(outcome.exit_code == 3);
  CHECK(report_of(outcome, DoctorCheck::kLeases).note.find("the gate: host_1") != std::string::npos);
  CHECK(report_of(outcome, DoctorCheck::kCertificates).findings.at(0).object ==
        "CertificateSigningRequest spillway-spillway-1");
  CHECK(report_of(outcome, DoctorCheck::kKueueFlavors).findings.at(0).object == "ResourceFlavor f");
  CHECK(report_of(outcome, DoctorCheck::kStateMetrics).findings.size() == 1);
  CHECK(report_of(outcome, DoctorCheck::kTraining).state == DoctorReport::State::kRan);
  CHECK(static_cast<std::size_t>(asked) == core::daemon_rights("a", "b").size() + core::gate_rights("a", "b").size());
}

TEST_CASE("the doctor takes a ServiceAccount or a user, and refuses what is neither") {
  const auto config = a_config();
  const auto known_as = [&config](const std::string& text) {
    return daemon_ns::doctor_options(config, daemon_ns::parse_account(text).value(), "training").known.account;
  };
  CHECK(known_as("ops/vk") == "system:serviceaccount:ops:vk");
  CHECK(known_as("system:node:burst") == "system:node:burst");
  for (const char* wrong : {"vk", "/vk", "ops/", "Ops/vk", "a/b/c"}) {
    INFO(wrong);
    CHECK_FALSE(daemon_ns::parse_account(wrong).has_value());
  }
  const auto known = daemon_ns::doctor_options(config, {}, "training").known;
  CHECK(known.account == "system:serviceaccount:spillway-system:spillway");
  REQUIRE(known.own_nodes.size() == 1);
  CHECK(known.own_nodes[0].labels.at("type") == "virtual-kubelet");
  CHECK_FALSE(known.gated);
}

TEST_CASE("an access review names the account with its groups, and what it would do") {
  spillway::kube::ResourceRight right;
  right.group = "coordination.k8s.io";
  right.resource = "leases";
  right.verb = "update";
  right.ns = "ops";
  right.name = "one";
  const json review = json::parse(encode_access_review(spillway::kube::service_account("ops", "vk"), right));
  CHECK(review["kind"] == "SubjectAccessReview");
  CHECK(review["spec"]["user"] == "system:serviceaccount:ops:vk");
  CHECK(review["spec"]["groups"] ==
        json({"system:serviceaccounts", "system:serviceaccounts:ops", "system:authenticated"}));
  CHECK(review["spec"]["resourceAttributes"] == json({{"group", "coordination.k8s.io"},
                                                      {"resource", "leases"},
                                                      {"verb", "update"},
                                                      {"namespace", "ops"},
                                                      {"name", "one"}}));
}
