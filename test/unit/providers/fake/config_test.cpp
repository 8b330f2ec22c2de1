#include "providers/fake/config.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using nlohmann::json;

namespace {

std::string fault_at(const std::vector<provider::ConfigFault>& faults, std::string_view path) {
  for (const auto& f : faults) {
    if (f.path == path) return f.message;
  }
  return "no fault there";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("fake config: nothing is a cloud in process with the default catalogue") {
  for (const json& config : {json(), json::object()}) {
    const ConfigReading r = read_config(config);
    CHECK(r.faults.empty());
    CHECK(r.config.mode == Mode::kInProcess);
    CHECK(r.config.settle_time == 10s);
    CHECK(r.config.cloud.boot_time == 0s);
    CHECK(r.config.cloud.offers.size() == default_catalogue().size());
  }
}

TEST_CASE("fake config: every key is read") {
  const ConfigReading r = read_config(json::parse(R"({
    "mode": "inProcess", "settleTime": "3s", "seed": 42, "bootTime": "1m30s",
    "priceWalk": {"step": "10s", "permille": 25},
    "offers": [
      {"id": "a", "region": "eu", "gpuModel": "A100", "gpuCount": 2, "gpuMemory": "80Gi", "cpu": "500m",
       "memory": "64Gi", "pricePerHour": "2.39", "capacityType": "spot", "stock": 3, "trust": "community",
       "billing": {"grain": "1m", "minimum": "1h"}},
      {"id": "b", "cpu": 4, "memory": "8Gi", "pricePerHour": 0.05},
      {"id": "c", "gpuModel": "rtx 4090", "gpuCount": 1, "stock": 0}
    ]})"));
  CHECK(r.faults.empty());
  CHECK(r.config.settle_time == 3s);
  CHECK(r.config.cloud.seed == 42);
  CHECK(r.config.cloud.boot_time == 90s);
  CHECK(r.config.cloud.price_step == 10s);
  CHECK(r.config.cloud.price_permille == 25);
  REQUIRE(r.config.cloud.offers.size() == 3);
  const CloudOffer& a = r.config.cloud.offers[0];
  CHECK(a.offer.id.str() == "a");
  CHECK(a.offer.region == "eu");
  CHECK(a.offer.gpu_model == "A100-80GB");
  CHECK(a.offer.gpu_count == 2);
  CHECK(a.offer.gpu_memory == std::int64_t{80} << 30);
  CHECK(a.offer.cpu_milli == 500);
  CHECK(a.offer.memory == std::int64_t{64} << 30);
  CHECK(a.offer.price_per_hour == base::Money::from_micros(2'390'000));
  CHECK(a.offer.capacity_type == model::CapacityType::kSpot);
  CHECK(a.offer.trust == model::Trust::kCommunity);
  CHECK(a.stock == 3);
  CHECK(a.grain == 60s);
  CHECK(a.minimum == 3600s);
  const CloudOffer& b = r.config.cloud.offers[1];
  CHECK(b.offer.price_per_hour == base::Money::from_micros(50'000));
  CHECK(b.offer.cpu_milli == 4000);
  CHECK_FALSE(b.stock.has_value());
  const CloudOffer& c = r.config.cloud.offers[2];
  CHECK(c.offer.gpu_model == "RTX4090");
  CHECK(c.offer.gpu_memory == std::int64_t{24} << 30);
  CHECK(c.stock == 0);
  CHECK_FALSE(c.offer.price_per_hour.has_value());
}

TEST_CASE("fake config: all faults come at once, with path, finding and remedy") {
  const auto faults = validate_config(json::parse(R"({
    "mode": "inprocess", "bootTime": "10", "seed": -1, "bottTime": "1s", "socket": "/x",
    "priceWalk": {"permille": 501},
    "offers": [
      {"gpuModel": "H10", "gpuCount": 1},
      {"id": "a", "gpuCount": 1, "pricePerHour": "cheap", "capacityType": "preemptible", "trust": "home"},
      {"id": "a", "memory": "many", "cpu": -1, "stock": 1.5, "billing": {"grain": "500ms", "grains": "1s"}},
      {"id": "d", "gpuModel": "A100", "gpuCount": 1},
      7
    ]})"));
  CHECK(contains(fault_at(faults, "mode"), "inProcess, socket"));
  CHECK(contains(fault_at(faults, "bootTime"), "found \"10\", expected a duration"));
  CHECK(contains(fault_at(faults, "seed"), "found -1"));
  CHECK(contains(fault_at(faults, "bottTime"), "did you mean bootTime?"));
  CHECK(contains(fault_at(faults, "socket"), "no effect"));
  CHECK(contains(fault_at(faults, "priceWalk.permille"), "from 0 to 500"));
  CHECK(contains(fault_at(faults, "priceWalk.step"), "missing"));
  CHECK(contains(fault_at(faults, "offers[0].id"), "missing"));
  CHECK(contains(fault_at(faults, "offers[0].gpuModel"), "did you mean H100?"));
  CHECK(contains(fault_at(faults, "offers[1].gpuModel"), "missing"));
  CHECK(contains(fault_at(faults, "offers[1].pricePerHour"), "found \"cheap\""));
  CHECK(contains(fault_at(faults, "offers[1].capacityType"), "on-demand, spot, reserved"));
  CHECK(contains(fault_at(faults, "offers[1].trust"), "datacenter, community"));
  CHECK(contains(fault_at(faults, "offers[2].id"), "used twice"));
  CHECK(contains(fault_at(faults, "offers[2].memory"), "found \"many\""));
  CHECK(contains(fault_at(faults, "offers[2].cpu"), "found -1"));
  CHECK(contains(fault_at(faults, "offers[2].stock"), "found 1.5"));
  CHECK(contains(fault_at(faults, "offers[2].billing.grain"), "whole seconds"));
  CHECK(contains(fault_at(faults, "offers[2].billing.grains"), "did you mean grain?"));
  CHECK(contains(fault_at(faults, "offers[3].gpuModel"), "A100"));
  CHECK(contains(fault_at(faults, "offers[4]"), "expected a mapping"));
}

TEST_CASE("fake config: mode socket takes a path, and nothing of the cloud") {
  const ConfigReading r = read_config(json::parse(R"({"mode": "socket", "socket": "/run/fake.sock"})"));
  CHECK(r.faults.empty());
  CHECK(r.config.mode == Mode::kSocket);
  CHECK(r.config.socket == "/run/fake.sock");

  const auto faults = validate_config(json::parse(R"({"mode": "socket", "seed": 1, "offers": []})"));
  CHECK(faults.size() == 3);
  CHECK(contains(fault_at(faults, "socket"), "missing"));
  CHECK(contains(fault_at(faults, "seed"), "fake-cloud --config"));
  CHECK(contains(fault_at(faults, "offers"), "fake-cloud --config"));
}

TEST_CASE("fake config: wrong types anywhere are faults, never a crash") {
  for (const char* text : {"[]", "1", "\"x\"", R"({"offers": {}})", R"({"offers": [[]]})", R"({"priceWalk": 1})",
                           R"({"offers": [{"id": "a", "billing": []}]})", R"({"offers": [{"id": 1}]})",
                           R"({"bootTime": {}})", R"({"seed": 1e30})", R"({"seed": 18446744073709551615})"}) {
    INFO(text);
    CHECK_FALSE(validate_config(json::parse(text)).empty());
  }
}

TEST_CASE("fake config: the file of the command") {
  const auto good = read_cloud_settings(R"({"seed": 9, "offers": [{"id": "a", "pricePerHour": 1}]})");
  REQUIRE(good.has_value());
  CHECK(good->seed == 9);
  CHECK(good->offers.size() == 1);
  CHECK(read_cloud_settings("mode: x").error().message == "the file is not JSON");
  const auto bad = read_cloud_settings(R"({"mode": "socket", "seed": "x"})");
  REQUIRE_FALSE(bad.has_value());
  CHECK(contains(bad.error().message, "mode: unknown key"));
  CHECK(contains(bad.error().message, "seed: found \"x\""));
}

TEST_CASE("fake config: the default catalogue is realistic") {
  int without_gpu = 0;
  int spot = 0;
  for (const CloudOffer& sold : default_catalogue()) {
    INFO(sold.offer.id.str());
    CHECK(sold.offer.price_per_hour > base::Money());
    CHECK(sold.offer.cpu_milli > 0);
    CHECK(sold.offer.memory > 0);
    CHECK((sold.offer.gpu_count > 0) == !sold.offer.gpu_model.empty());
    CHECK((sold.offer.gpu_count > 0) == (sold.offer.gpu_memory > 0));
    without_gpu += sold.offer.gpu_count == 0 ? 1 : 0;
    spot += sold.offer.capacity_type == model::CapacityType::kSpot ? 1 : 0;
  }
  CHECK(without_gpu >= 1);
  CHECK(spot >= 1);
}
