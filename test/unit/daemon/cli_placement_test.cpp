// What explain, offers and why show of a market and of a pod.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "test/support/virtual_time.hpp"
#include "test/unit/core/market.hpp"
#include "test/unit/daemon/canned_api.hpp"
#include "vk-provider/daemon/cli_explain.hpp"
#include "vk-provider/daemon/cli_offers.hpp"
#include "vk-provider/daemon/cli_why.hpp"

using namespace spillway;
using namespace spillway::daemon;
using core::test_market::an_offer;
using nlohmann::json;

namespace {

model::Offer an_l4(const std::string& id, std::int64_t micros) {
  model::Offer out = an_offer("toy", id, micros);
  out.gpu_model = "L4";
  out.gpu_memory = std::int64_t{24} << 30U;
  out.region = "eu";
  return out;
}

void fill(Market& market) {
  market.now = {core::test_market::kStart, *base::from_rfc3339("2026-11-29T07:00:00Z")};
  model::Offer spot = an_l4("l4-spot", 400'000);
  spot.capacity_type = model::CapacityType::kSpot;
  model::Offer gone = an_l4("l4-gone", 300'000);
  gone.available = false;
  model::Offer cpu = an_offer("toy", "cpu", 100'000);
  cpu.gpu_model = "";
  cpu.gpu_count = 0;
  cpu.gpu_memory = 0;
  cpu.cpu_milli = 7500;
  cpu.memory = std::int64_t{16} << 30U;
  cpu.region = "us";
  model::Offer free = an_l4("free", 0);
  market.book.update(base::ProviderName("toy"),
                     {an_l4("l4", 700'000), spot, gone, cpu, an_offer("toy", "h100", 2'490'000), free},
                     market.now.steady);
}

std::vector<std::string> ids(const OffersReport& report) {
  std::vector<std::string> out;
  for (const model::Offer& o : report.offers) out.push_back(o.id.str());
  return out;
}

constexpr const char* kJob = R"(kind: Job
metadata: {name: train}
spec:
  template:
    metadata:
      annotations: {spillway.dev/gpu-model: H100, spillway.dev/max-price: "2.00"}
    spec:
      containers:
      - name: main
        image: app:1
        resources: {limits: {nvidia.com/gpu: 1}}
)";
constexpr const char* kPod = R"(kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: app:1
    resources: {limits: {nvidia.com/gpu: 1}}
)";

ExplainBasis basis() {
  ExplainBasis out;
  out.providers.emplace_back().name = "toy";
  out.providers.back().capabilities = {model::Capability::kExitCode, model::Capability::kRestartContainer};
  out.nodes.emplace_back().name = "burst";
  return out;
}

}  // namespace

TEST_CASE("offers: the cheapest first, by model, region and capacity type, without those that cannot be") {
  Market market;
  fill(market);
  OffersFilter filter;
  CHECK(ids(report_offers(market, filter)) == std::vector<std::string>{"cpu", "l4-gone", "l4-spot", "l4", "h100"});
  CHECK(report_offers(market, filter).flawed == 1);
  filter.gpu = "nvidia l4";
  CHECK(ids(report_offers(market, filter)) == std::vector<std::string>{"l4-gone", "l4-spot", "l4"});
  filter.spot = true;
  CHECK(ids(report_offers(market, filter)) == std::vector<std::string>{"l4-spot"});
  filter = {};
  filter.region = "us";
  CHECK(to_text(report_offers(market, filter), Output::kTable) ==
        "PROVIDER  OFFER  GPUS  GPU MEMORY  CPU  MEMORY  REGION  TYPE       TRUST       $/H   NOW\n"
        "toy       cpu    -     -           7.5  16Gi    us      on-demand  datacenter  0.10  yes\n"
        "\n"
        "1 more cannot be what they say, and are left out\n");
  const json report = json::parse(to_text(report_offers(market, filter), Output::kJson));
  CHECK(report["offers"][0] == json{{"provider", "toy"},
                                    {"offer", "cpu"},
                                    {"region", "us"},
                                    {"gpus", 0},
                                    {"cpuMilli", 7500},
                                    {"memoryBytes", std::int64_t{16} << 30U},
                                    {"capacityType", "on-demand"},
                                    {"trust", "datacenter"},
                                    {"pricePerHourMicros", 100'000},
                                    {"available", true}});
  market.unlisted.push_back({"other", "it is down"});
  CHECK(report_offers(market, filter).exit_code == kExitFailed);
}

TEST_CASE("explain: with a market, what would be bought, what stands next and what would change it") {
  Market market;
  fill(market);
  ExplainReport report = explain({{"m.yaml", kPod}}, basis());
  dry_run(report, basis(), market);
  CHECK(report.exit_code == kExitDone);
  CHECK(to_text(report, Output::kTable) ==
        "m.yaml:1: Pod web: runs\n"
        "  asks for 1 nvidia.com/gpu\n"
        "  provider toy: can\n"
        "  on node burst: 2 of 5 offers fit: 1 too few GPUs, 1 sold out, 1 of another capacity type\n"
        "  buys now: offer l4 of provider toy at $0.70/h: expected cost $1.49, chance 70 %, starts in 2m16s\n"
        "    next, lost by price: offer h100 of provider toy at $2.49/h: expected cost $5.15, chance 70 %, starts in "
        "2m16s\n"
        "    would change it: offer l4-gone of provider toy at $0.30/h is sold out\n"
        "\n"
        "1 of 1 can run\n");
}

TEST_CASE("explain: a pod that no offer fits is refused, if everybody was asked") {
  Market market;
  fill(market);
  ExplainReport report = explain({{"m.yaml", kJob}}, basis());
  dry_run(report, basis(), market);
  CHECK(report.exit_code == kExitRefused);
  const std::string text = to_text(report, Output::kTable);
  CHECK_THAT(text, Catch::Contains("  buys nothing now\n"));
  CHECK_THAT(text, Catch::Contains("    would change it: max-price 2.00 -> 2.49 admits offer h100 of provider toy at "
                                   "$2.49/h\n"));
  const json placement = json::parse(to_text(report, Output::kJson))["pods"][0]["placement"];
  CHECK(placement["decision"] == "none");
  CHECK(placement["fit"] == 0);
  CHECK(placement["offers"] == 5);
  CHECK(placement["rejected"]["pod_price"] == 1);
  CHECK(placement["changes"][0]["filter"] == "gpu_model");
  CHECK(placement["changes"][1]["filter"] == "pod_price");

  market.unlisted.push_back({"other", "it is down"});
  report = explain({{"m.yaml", kJob}}, basis());
  dry_run(report, basis(), market);
  CHECK(report.exit_code == kExitDone);
  CHECK_THAT(to_text(report, Output::kTable),
             Catch::Contains("provider other did not say what it sells: it is down\n"));
}

namespace {

/// A daemon's admin port that has one answer.
struct CannedAdmin final : net::HttpClientFactory {
  struct Client final : net::HttpClient {
    explicit Client(const CannedAdmin& a) : admin(a) {}
    async::Task<net::HttpResponse> send(net::HttpRequest request, base::Deadline) override {
      if (!admin.answer) co_return base::fail(admin.answer.error());
      net::HttpResponse out;
      out.status = request.target == "/debug/placement/u-1" ? 200 : 404;
      out.body = *admin.answer;
      co_return out;
    }
    async::Task<net::HttpStream> open(net::HttpRequest, base::Deadline) override {
      co_return base::fail(base::ErrorKind::kUnsupported, "no streams");
    }
    const CannedAdmin& admin;
  };
  base::Result<std::unique_ptr<net::HttpClient>> make(net::Endpoint) override {
    return std::make_unique<Client>(*this);
  }
  base::Result<std::string> answer = base::fail(base::ErrorKind::kUnavailable, "connection refused");
};

struct Asked {
  Asked() {
    in.api = &api;
    in.http = &admin;
    in.timers = &r.timers;
    options.ns = "team-a";
    options.pod = "web";
    api.answers["/api/v1/namespaces/team-a/events"] = json{
        {"items",
         {{{"reason", "Placed"}, {"message", "offer l4 ..."}, {"lastTimestamp", "2026-11-29T07:00:01Z"}, {"count", 1}},
          {{"reason", "Scheduled"},
           {"message", "assigned"},
           {"eventTime", "2026-11-29T07:00:00Z"}}}}}.dump();
  }
  void pod(const json& annotations, const json& status) {
    api.answers["/api/v1/namespaces/team-a/pods/web"] = json{
        {"metadata", {{"name", "web"}, {"namespace", "team-a"}, {"uid", "u-1"}, {"annotations", annotations}}},
        {"spec", {{"nodeName", "burst"}, {"containers", {{{"name", "main"}, {"image", "app"}}}}}},
        {"status", status}}.dump();
  }
  WhyReport why() { return r.run(find_why(in, options)); }

  test::VirtualReactor r;
  test::CannedApi api;
  CannedAdmin admin;
  Surroundings in;
  WhyOptions options;
};

}  // namespace

TEST_CASE("why: of a pod that runs, what was bought and why, also without a daemon") {
  Asked asked;
  asked.pod({{"state.spillway.dev/why", "offer l4 of provider toy at $0.70/h: ..."},
             {"state.spillway.dev/placement",
              R"({"v":1,"uid":"u-1","provider":"toy","offer":"l4","gpus":1,"capacityType":"on-demand",)"
              R"("pricePerHourMicros":700000,"tag":"spw-a-b-1","attempt":1,"instance":"i-1"})"}},
            {{"phase", "Running"}});
  const WhyReport report = asked.why();
  CHECK(report.exit_code == kExitDone);
  CHECK(to_text(report, Output::kTable) ==
        "Pod team-a/web on node burst: running\n"
        "  chosen: offer l4 of provider toy at $0.70/h, attempt 1, instance i-1\n"
        "  why: offer l4 of provider toy at $0.70/h: ...\n"
        "  the daemon was not asked: connection refused\n"
        "\n"
        "LAST SEEN             TIMES  EVENT      MESSAGE\n"
        "2026-11-29T07:00:00Z  1      Scheduled  assigned\n"
        "2026-11-29T07:00:01Z  1      Placed     offer l4 ...\n");
  const json shown = json::parse(to_text(report, Output::kJson));
  CHECK(shown["placement"]["offer"] == "l4");
  CHECK(shown["daemon"].is_null());
}

TEST_CASE("why: of a pod that waits, for what, what would change it, and what stands next now") {
  Asked asked;
  asked.pod(
      json::object(),
      {{"phase", "Pending"},
       {"containerStatuses",
        {{{"name", "main"}, {"state", {{"waiting", {{"reason", "NoCapacity"}, {"message", "0 of 2 offers fit"}}}}}}}}});
  asked.admin.answer = json{{"stage", "waiting"},
                            {"now",
                             {{"next",
                               {{{"provider", "toy"},
                                 {"offer", "l4"},
                                 {"pricePerHourMicros", 700'000},
                                 {"indexMicros", 1'490'000},
                                 {"lostBy", "wait"},
                                 {"closed", {{"why", "cooling"}, {"until", "2026-11-29T07:12:00Z"}}}}}},
                              {"changes", {{{"text", "max-price 2.00 -> 2.49 admits offer h100"}}}}}}}
                           .dump();
  const WhyReport report = asked.why();
  CHECK(to_text(report, Output::kTable) ==
        "Pod team-a/web on node burst: waiting\n"
        "  waits for: NoCapacity: 0 of 2 offers fit\n"
        "  would change it: max-price 2.00 -> 2.49 admits offer h100\n"
        "\n"
        "NEXT  PROVIDER  $/H   EXPECTED COST  LOST BY  REMARK\n"
        "l4    toy       0.70  $1.49          wait     cooling until 2026-11-29T07:12:00Z\n"
        "\n"
        "LAST SEEN             TIMES  EVENT      MESSAGE\n"
        "2026-11-29T07:00:00Z  1      Scheduled  assigned\n"
        "2026-11-29T07:00:01Z  1      Placed     offer l4 ...\n");
  CHECK(json::parse(to_text(report, Output::kJson))["daemon"]["stage"] == "waiting");
}

TEST_CASE("why: a pod that cannot be read is a failure") {
  Asked asked;
  const WhyReport report = asked.why();
  CHECK(report.exit_code == kExitFailed);
  CHECK(report.problem.starts_with("the pod team-a/web cannot be read: "));
}
