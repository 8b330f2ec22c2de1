// Where a daemon buys, and what it never spends: caps, wishes, offers that are mistakes, and what failures teach.
#include <algorithm>
#include <chrono>

#include <catch2/catch.hpp>

#include "test/unit/daemon/daemon_world.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using test::World;
namespace fake = providers::fake;
using nlohmann::json;

namespace {

base::Money dollars(const char* text) { return *base::Money::from_dollars(text); }

/// The one kind of machine that costs so much.
fake::CloudOffer a_gpu(const char* id, const char* price) {
  fake::CloudOffer sold = fake::default_catalogue().at(2);  // one T4, on demand
  sold.offer.id = base::OfferId(id);
  sold.offer.price_per_hour = dollars(price);
  return sold;
}

fake::CloudSettings selling(std::vector<fake::CloudOffer> offers) {
  fake::CloudSettings settings = test::at_once();
  settings.offers = std::move(offers);
  return settings;
}

struct Market : World {
  explicit Market(std::vector<fake::CloudOffer> offers) : World(selling(std::move(offers))) {}

  void create(const std::string& name, const std::map<std::string, std::string>& annotations = {}) {
    create_pod([&](json& pod) {
      pod["metadata"]["name"] = name;
      for (const auto& [key, value] : annotations) pod["metadata"]["annotations"][key] = value;
    });
  }
  json named(const std::string& name) const { return api.get(std::string(test::kPods) + "/" + name); }
  std::string phase_of(const std::string& name) const {
    const json object = named(name);
    return object.is_null() ? "gone" : object.value("status", json::object()).value("phase", "");
  }
  json waiting(const std::string& name) const {
    const json object = named(name);
    return object["status"]["containerStatuses"][0]["state"].value("waiting", json::object());
  }
  int running_pods(const std::string& prefix, int count) const {
    int out = 0;
    for (int i = 0; i < count; ++i) out += phase_of(prefix + std::to_string(i)) == "Running" ? 1 : 0;
    return out;
  }
  bool has_metric(const std::string& line) const { return metrics.to_text().find(line) != std::string::npos; }
};

TEST_CASE("of many pods at one moment only so many are bought for as a cap allows") {
  Market market({a_gpu("t4", "0.50")});
  market.spend.installation.per_hour = dollars("2.000001");
  market.start();
  market.reactor.run_for(5s);
  for (int i = 0; i < 20; ++i) market.create("p" + std::to_string(i));
  market.reactor.run_for(2min);
  CHECK(market.running_pods("p", 20) == 4);
  CHECK(market.bought() == 4);
  CHECK(market.has_metric("spillway_burn_dollars_per_hour{provider=\"cloud\"} 2\n"));
  int held = 0;
  for (int i = 0; i < 20; ++i) {
    if (market.waiting("p" + std::to_string(i)).value("reason", "") == "BudgetExceeded") ++held;
  }
  CHECK(held == 16);

  // What ends makes room for one, once it is gone and not before.
  for (int i = 0; i < 20; ++i) {
    if (market.phase_of("p" + std::to_string(i)) != "Running") continue;
    market.api.delete_pod("team-a", "p" + std::to_string(i), 1);
    break;
  }
  market.reactor.run_for(2min);
  CHECK(market.running_pods("p", 20) == 4);
  CHECK(market.bought() == 5);
  CHECK(market.alive() == 4);
}

TEST_CASE("each scope has its cap, and what fits nowhere is told with the cap that stands in the way") {
  Market market({a_gpu("t4", "0.50")});
  SECTION("a namespace") { market.spend.namespaces["team-a"].per_hour = dollars("0.99"); }
  SECTION("all that are not named") { market.spend.each_namespace.per_hour = dollars("0.99"); }
  SECTION("a provider") { market.spend.providers[base::ProviderName("cloud")].per_hour = dollars("0.99"); }
  SECTION("a node") { market.spend.nodes["burst"].per_hour = dollars("0.99"); }
  SECTION("a month, with what one that goes on would cost in the next one") {
    market.spend.installation.per_month = dollars("400");  // 31 days of one are $372
  }
  market.start();
  market.reactor.run_for(5s);
  for (int i = 0; i < 3; ++i) market.create("p" + std::to_string(i));
  market.reactor.run_for(1min);
  CHECK(market.running_pods("p", 3) == 1);
  CHECK(market.bought() == 1);
}

TEST_CASE("what an earlier daemon bought counts") {
  Market market({a_gpu("t4", "0.50")});
  market.spend.installation.per_hour = dollars("1");
  market.start();
  market.reactor.run_for(5s);
  for (int i = 0; i < 2; ++i) market.create("p" + std::to_string(i));
  market.reactor.run_for(30s);
  REQUIRE(market.running_pods("p", 2) == 2);
  market.crash();
  market.create("p2");
  market.start();
  market.reactor.run_for(3min);
  CHECK(market.running_pods("p", 3) == 2);
  CHECK(market.bought() == 2);
  CHECK(market.waiting("p2")["reason"] == "BudgetExceeded");
}

TEST_CASE("an instance that is dearer than offered is ended if a cap is passed by it, and kept if none is") {
  Market market({a_gpu("t4", "0.50")});
  fake::FaultRule rule;
  rule.effect = fake::Effect::kOvercharge;
  rule.call = fake::Call::kCreate;
  rule.percent = 200;
  rule.times = 1;
  REQUIRE(market.cloud.add_fault(rule, market.reactor.timers.now()));
  SECTION("passed") {
    market.spend.installation.per_hour = dollars("0.99");
    market.start();
    market.reactor.run_for(5s);
    market.create("p0");
    market.reactor.run_for(3min);
    CHECK(market.phase_of("p0") == "Running");
    CHECK(market.bought() == 2);
    CHECK(market.alive() == 1);
    CHECK(market.has_metric("spillway_burn_dollars_per_hour{provider=\"cloud\"} 0.5\n"));
  }
  SECTION("not passed") {
    market.spend.installation.per_hour = dollars("1");
    market.start();
    market.reactor.run_for(5s);
    market.create("p0");
    market.reactor.run_for(30s);
    market.create("p1");
    market.reactor.run_for(3min);
    CHECK(market.bought() == 1);
    CHECK(market.has_metric("spillway_burn_dollars_per_hour{provider=\"cloud\"} 1\n"));
  }
}

TEST_CASE("a pod is bought for within its own maximum, or not at all") {
  Market market({a_gpu("cheap", "0.50"), a_gpu("dear", "0.80")});
  market.start();
  market.reactor.run_for(5s);
  market.create("frugal", {{"spillway.dev/max-price", "0.49"}});
  market.create("content", {{"spillway.dev/max-price", "0.50"}});
  market.reactor.run_for(30s);
  CHECK(market.phase_of("content") == "Running");
  CHECK(market.phase_of("frugal") == "Pending");
  CHECK(market.waiting("frugal")["message"] == "0 of 2 offers fit: 2 over the pod's maximum of $0.49");
}

TEST_CASE("an annotation that is no wish refuses the pod with the nearest one") {
  Market market({a_gpu("t4", "0.50")});
  market.start();
  market.reactor.run_for(5s);
  market.create("typo", {{"spillway.dev/max-prise", "1"}});
  market.reactor.run_for(5s);
  CHECK(market.bought() == 0);
  CHECK(market.waiting("typo")["reason"] == "UnsupportedPodSpec");
  const std::string message = market.waiting("typo")["message"];
  CHECK(
      message.find("metadata.annotations[spillway.dev/max-prise]: unknown key; did you mean spillway.dev/max-price?") !=
      std::string::npos);
}

TEST_CASE("spot is for pods that say so, and for jobs that save their work") {
  fake::CloudOffer spot = a_gpu("spot", "0.10");
  spot.offer.capacity_type = model::CapacityType::kSpot;
  Market market({spot, a_gpu("steady", "0.50")});
  market.capacity_types = {model::CapacityType::kSpot, model::CapacityType::kOnDemand};
  market.start();
  market.reactor.run_for(5s);
  market.create("plain");
  market.create("brave", {{"spillway.dev/capacity-type", "spot,on-demand"}});
  const auto of_job = [&](const std::string& name, const std::map<std::string, std::string>& annotations) {
    market.create_pod([&](json& pod) {
      pod["metadata"]["name"] = name;
      pod["spec"]["restartPolicy"] = "Never";
      pod["metadata"]["ownerReferences"] = {
          {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", name}, {"uid", "u-" + name}, {"controller", true}}};
      for (const auto& [key, value] : annotations) pod["metadata"]["annotations"][key] = value;
    });
  };
  of_job("job", {});
  of_job("saving-job", {{"spillway.dev/checkpoint-interval", "10m"}});
  market.reactor.run_for(1min);
  const auto offer_of = [&](const std::string& name) {
    const std::string state = market.named(name)["metadata"]["annotations"].value("state.spillway.dev/placement", "{}");
    return json::parse(state).value("offer", "");
  };
  CHECK(offer_of("plain") == "steady");
  CHECK(offer_of("brave") == "spot");
  CHECK(offer_of("job") == "steady");
  CHECK(offer_of("saving-job") == "spot");
}

TEST_CASE("an offer that cannot be what it says is never bought, and is counted with the reason") {
  fake::CloudOffer eight = a_gpu("eight", "0.90");  // the price of one, on a machine with eight
  eight.offer.gpu_count = 8;
  Market market({a_gpu("free", "0"), a_gpu("huge", "20000"), a_gpu("one", "0.80"), eight});
  market.start();
  market.reactor.run_for(5s);
  market.create("p0");
  market.reactor.run_for(30s);
  CHECK(market.phase_of("p0") == "Running");
  CHECK(market.has_metric(R"(spillway_offers_quarantined{provider="cloud",reason="free"} 1)"));
  CHECK(market.has_metric(R"(spillway_offers_quarantined{provider="cloud",reason="huge_price"} 1)"));
  CHECK(market.has_metric(R"(spillway_offers_quarantined{provider="cloud",reason="price_per_gpu"} 1)"));
  const auto bought = market.cloud.audit(market.reactor.timers.now()).instances;
  REQUIRE(bought.size() == 1);
  CHECK(market.has_metric("spillway_burn_dollars_per_hour{provider=\"cloud\"} 0.8\n"));
}

TEST_CASE("what is sold out is asked by one, and others learn from it") {
  fake::CloudOffer elsewhere = a_gpu("dear", "0.60");
  elsewhere.offer.region = "eu-west";
  Market market({a_gpu("cheap", "0.50"), elsewhere});
  fake::FaultRule rule;
  rule.effect = fake::Effect::kError;
  rule.call = fake::Call::kCreate;
  rule.offer = "cheap";
  rule.kind = base::ErrorKind::kNoCapacity;
  REQUIRE(market.cloud.add_fault(rule, market.reactor.timers.now()));
  market.start();
  market.reactor.run_for(5s);
  market.create("first");
  market.reactor.run_for(10s);
  CHECK(market.phase_of("first") == "Running");
  for (int i = 0; i < 5; ++i) market.create("p" + std::to_string(i));
  market.reactor.run_for(20s);
  CHECK(market.running_pods("p", 5) == 5);
  CHECK(market.has_metric(R"(spillway_launches_total{provider="cloud",result="sold_out"} 1)"));
  CHECK(market.has_metric(R"(spillway_launches_total{provider="cloud",result="accepted"} 6)"));
  CHECK(market.has_metric(R"(spillway_launches_total{provider="cloud",result="ran"} 6)"));
}

TEST_CASE("what one offer is refused by, another may take; only who is refused by all is told so") {
  Market market({a_gpu("cheap", "0.50"), a_gpu("dear", "0.60")});
  fake::FaultRule rule;
  rule.effect = fake::Effect::kError;
  rule.call = fake::Call::kCreate;
  rule.kind = base::ErrorKind::kInvalid;
  rule.message = "ports: too many";
  rule.image = "app:bad";
  REQUIRE(market.cloud.add_fault(rule, market.reactor.timers.now()));
  rule.image.clear();
  rule.offer = "cheap";
  REQUIRE(market.cloud.add_fault(rule, market.reactor.timers.now()));
  market.start();
  market.reactor.run_for(5s);
  market.create("picky");
  market.reactor.run_for(10s);
  CHECK(market.phase_of("picky") == "Running");
  CHECK(market.has_metric(R"(spillway_launches_total{provider="cloud",result="unsupported"} 1)"));

  market.create_pod([](json& pod) {
    pod["metadata"]["name"] = "hopeless";
    pod["spec"]["containers"][0]["image"] = "app:bad";
  });
  market.reactor.run_for(10s);
  const json waiting = market.waiting("hopeless");
  CHECK(waiting.value("reason", "") == "UnsupportedPodSpec");
  CHECK(waiting.value("message", "") == "provider cloud refuses the pod: ports: too many");
  market.reactor.run_for(5min);
  CHECK(market.phase_of("hopeless") == "Failed");
  // Each offer was asked once. What another pod was refused says nothing of the next one.
  CHECK(market.has_metric(R"(spillway_launches_total{provider="cloud",result="unsupported"} 3)"));
  market.create("healthy");
  market.reactor.run_for(10s);
  CHECK(market.phase_of("healthy") == "Running");
  CHECK(market.alive() == 2);
}

}  // namespace
