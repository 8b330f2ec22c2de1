// What a daemon says of its choices: the line on the pod, the event, the admin port, and what it costs.
#include <chrono>

#include <catch2/catch.hpp>

#include "test/unit/daemon/daemon_world.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using test::World;
namespace fake = providers::fake;
using nlohmann::json;

namespace {

fake::CloudOffer a_gpu(const char* id, const char* price) {
  fake::CloudOffer sold = fake::default_catalogue().at(2);  // one T4, on demand
  sold.offer.id = base::OfferId(id);
  sold.offer.price_per_hour = base::Money::from_dollars(price);
  return sold;
}

fake::CloudSettings selling(std::vector<fake::CloudOffer> offers) {
  fake::CloudSettings settings = test::at_once();
  settings.offers = std::move(offers);
  return settings;
}

std::string annotation(const json& pod) {
  return pod["metadata"].value("annotations", json::object()).value("state.spillway.dev/why", "");
}

std::vector<json> events(const World& world) {
  std::vector<json> out;
  for (const json& event : world.api.list("/api/v1/namespaces/team-a/events")) out.push_back(event);
  return out;
}

constexpr const char* kWhy =
    "offer cheap of provider cloud at $0.50/h: expected cost $1.08, chance 70 %, starts in 2m16s; next: cloud/dear "
    "lost by price";

}  // namespace

TEST_CASE("why an offer was chosen stands on the pod with its intent, and is told once it is accepted") {
  World world(selling({a_gpu("dear", "0.70"), a_gpu("cheap", "0.50")}));
  world.start();
  world.reactor.run_for(5s);
  world.create_pod();
  REQUIRE(world.until("Running", 1min));
  world.reactor.run_for(6s);
  CHECK(annotation(world.pod()) == kWhy);
  CHECK(world.api.requests().at("PATCH pods/status") == 2);
  REQUIRE(events(world).size() == 1);
  CHECK(events(world)[0]["reason"] == "Placed");
  CHECK(events(world)[0]["message"] == kWhy);
  const std::string metrics = world.metrics.to_text();
  CHECK(metrics.find("spillway_decisions_total{decision=\"buy\"} 2") != std::string::npos);
  CHECK(metrics.find("spillway_offers_lost_total{by=\"price\"} 1") != std::string::npos);
}

TEST_CASE("the admin port tells what was decided for a pod, and what would be now") {
  World world(selling({a_gpu("dear", "0.70"), a_gpu("cheap", "0.50")}));
  world.start();
  world.reactor.run_for(5s);
  world.create_pod();
  REQUIRE(world.until("Running", 1min));
  const std::string uid = world.pod()["metadata"]["uid"];
  CHECK_FALSE(world.running->debug_placement("nobody"));
  const auto text = world.running->debug_placement(uid);
  REQUIRE(text);
  const json report = json::parse(*text);
  CHECK(report["stage"] == "running");
  CHECK(report["placement"]["offer"] == "cheap");
  CHECK(report["decided"]["best"]["offer"] == "cheap");
  CHECK(report["decided"]["best"]["chance"] == Approx(0.7));
  CHECK(report["decided"]["next"][0]["offer"] == "dear");
  CHECK(report["decided"]["next"][0]["lostBy"] == "price");
  CHECK(report["now"]["decision"] == "buy");
  CHECK(report["now"]["fit"] == 2);
}

TEST_CASE("a pod that has to wait is told what would change it, and many of them cost one look") {
  World world(selling({a_gpu("dear", "0.70"), a_gpu("cheap", "0.50")}));
  world.price_cap = base::Money::from_dollars("0.40");
  world.start();
  world.reactor.run_for(5s);
  for (int i = 0; i < 100; ++i) {
    world.create_pod([&](json& pod) { pod["metadata"]["name"] = "p" + std::to_string(i); });
  }
  world.reactor.run_for(1s);
  // Each look at two offers counts both.
  CHECK(world.metrics.to_text().find("spillway_offers_rejected_total{filter=\"node_price\"} 2\n") != std::string::npos);
  CHECK(world.metrics.to_text().find("spillway_decisions_total{decision=\"none\"} 100\n") != std::string::npos);
  const json pod = world.api.get(std::string(test::kPods) + "/p7");
  CHECK(pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"] ==
        "0 of 2 offers fit: 2 over the price cap of $0.40");
  const json report = json::parse(*world.running->debug_placement(pod["metadata"]["uid"]));
  CHECK(report["waiting"]["reason"] == "NoCapacity");
  CHECK(report["now"]["decision"] == "none");
  CHECK(report["now"]["rejected"] == json{{"node_price", 2}});
  CHECK(report["now"]["changes"][0]["text"] ==
        "the node's maxPricePerHour 0.40 -> 0.50 admits offer cheap of provider cloud at $0.50/h");
  CHECK_FALSE(report.contains("decided"));
}

TEST_CASE("what is sold out makes no event of its own") {
  World world(selling({a_gpu("dear", "0.70"), a_gpu("cheap", "0.50")}));
  fake::FaultRule sold_out;
  sold_out.kind = base::ErrorKind::kNoCapacity;
  sold_out.call = fake::Call::kCreate;
  sold_out.times = 1;
  REQUIRE(world.cloud.add_fault(sold_out, world.reactor.timers.now()));
  world.start();
  world.reactor.run_for(5s);
  world.create_pod();
  REQUIRE(world.until("Running", 1min));
  world.reactor.run_for(6s);
  std::vector<std::string> placed;
  for (const json& e : events(world)) {
    if (e["reason"] == "Placed") placed.push_back(e["message"]);
  }
  CHECK(placed == std::vector<std::string>{annotation(world.pod())});
}
