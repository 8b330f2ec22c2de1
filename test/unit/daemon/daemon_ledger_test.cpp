// What was spent: written down before pods are deleted, the same as the cloud's invoice, and known after restarts.
#include <chrono>

#include <catch2/catch.hpp>

#include "test/support/faulty_kube_api.hpp"
#include "test/unit/daemon/daemon_world.hpp"
#include "vk-provider/control/ledger_codec.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using test::World;
namespace fake = providers::fake;
using nlohmann::json;

namespace {

constexpr const char* kMaps = "/api/v1/namespaces/spillway-system/configmaps";

base::Money dollars(const char* text) { return *base::Money::from_dollars(text); }

fake::CloudSettings one_kind(const char* price, std::chrono::seconds minimum) {
  fake::CloudSettings settings = test::at_once();
  fake::CloudOffer sold = fake::default_catalogue().at(2);  // one T4, on demand
  sold.offer.price_per_hour = dollars(price);
  sold.minimum = sold.offer.billing_minimum = minimum;
  settings.offers = {sold};
  return settings;
}

/// Fails the writes of ConfigMaps as the test wants.
struct MapFaults final : test::ApiFaults {
  test::RequestFault on_request(const kube::KubeRequest& request) override {
    const bool write = request.method != net::Method::kGet && request.target.find("/configmaps") != std::string::npos;
    return write && next ? next() : test::RequestFault();
  }
  std::function<test::RequestFault()> next;
};

struct Books : World {
  explicit Books(const char* price = "0.36", std::chrono::seconds minimum = {}) : World(one_kind(price, minimum)) {
    way = &faulty;
  }
  ~Books() { crash(); }

  std::map<core::LedgerKey, core::LedgerEntry> entries() const {
    std::vector<kube::ConfigMap> maps;
    for (const json& object : api.list(kMaps)) {
      const std::string name = object["metadata"]["name"];
      if (!name.starts_with("spillway-ledger-")) continue;
      kube::ConfigMap& map = maps.emplace_back();
      map.name = name;
      map.labels = object["metadata"]["labels"].get<std::map<std::string, std::string>>();
      map.data = object["data"].get<std::map<std::string, std::string>>();
    }
    auto out = control::decode_shards(std::move(maps));
    REQUIRE(out);
    return std::move(*out);
  }
  std::int64_t ledger_micros() const {
    std::int64_t sum = 0;
    for (const auto& [key, e] : entries()) sum += core::cost_of(e, reactor.timers.wall()).micros();
    return sum;
  }
  std::int64_t invoice_micros() {
    std::int64_t sum = 0;
    for (const auto& line : cloud.invoice(reactor.timers.now())) sum += line.amount.micros();
    return sum;
  }
  void create(const std::string& name) {
    create_pod([&](json& pod) { pod["metadata"]["name"] = name; });
  }
  std::string phase_of(const std::string& name) const {
    const json object = api.get(std::string(test::kPods) + "/" + name);
    return object.is_null() ? "gone" : object.value("status", json::object()).value("phase", "");
  }
  bool gone(const std::string& name, base::Duration limit) {
    return reactor.run_until([&] { return phase_of(name) == "gone"; }, limit);
  }
  json waiting(const std::string& name) const {
    const json object = api.get(std::string(test::kPods) + "/" + name);
    return object["status"]["containerStatuses"][0]["state"].value("waiting", json::object());
  }
  void begin() {
    start();
    reactor.run_for(5s);
  }

  MapFaults faults;
  test::FaultyKubeApi faulty{api, faults, reactor.timers};
};

test::RequestFault refuse(int code, const char* reason) {
  test::RequestFault fault;
  fault.refusal = test::RequestFault::Refusal(code, reason);
  return fault;
}

TEST_CASE("the ledger is the cloud's invoice, also after a restart and after the pods are gone") {
  Books books;
  books.begin();
  for (const char* name : {"a", "b", "c"}) books.create(name);
  books.reactor.run_for(1h);
  CHECK(books.entries().size() == 3);
  CHECK(books.entries().begin()->second.of.node.str() == "burst");
  books.crash();
  books.reactor.run_for(10min);
  books.begin();
  books.reactor.run_for(1h);
  for (const char* name : {"a", "b", "c"}) books.api.delete_pod("team-a", name, 30);
  for (const char* name : {"a", "b", "c"}) CHECK(books.gone(name, 1min));
  CHECK(books.alive() == 0);
  for (const auto& [key, e] : books.entries()) CHECK(e.gone);
  CHECK(books.ledger_micros() == books.invoice_micros());
  CHECK(books.invoice_micros() > 2'000'000 * 36 / 100);
}

TEST_CASE("a pod's object is deleted only after its closing entry was written") {
  Books books;
  books.begin();
  books.create("web");
  REQUIRE(books.until("Running", 10s));
  books.reactor.run_for(10s);
  SECTION("the server fails") {
    books.faults.next = [] { return refuse(500, "InternalError"); };
  }
  SECTION("it may not") {
    books.faults.next = [] { return refuse(403, "Forbidden"); };
  }
  books.api.delete_pod("team-a", "web", 30);
  books.reactor.run_for(3min);
  CHECK(books.alive() == 0);
  CHECK(books.phase() != "gone");
  const std::string page = books.metrics.to_text();
  CHECK(page.find("spillway_spend_dollars_total{namespace=\"team-a\",provider=\"cloud\"}") != std::string::npos);
  // What could not be written down is not spent.
  books.create("next");
  books.reactor.run_for(30s);
  CHECK(books.bought() == 1);
  CHECK(books.waiting("next")["message"].get<std::string>().starts_with("the ledger cannot be read or written"));
  books.faults.next = {};
  CHECK(books.until("gone", 1min));
  CHECK(books.entries().begin()->second.gone);
  CHECK(books.reactor.run_until([&] { return books.phase_of("next") == "Running"; }, 10min));
}

TEST_CASE("killed before the closing entry was written, the next daemon writes it, and once") {
  Books books;
  books.begin();
  books.create("web");
  REQUIRE(books.until("Running", 10s));
  books.reactor.run_for(10min);
  books.faults.next = [] { return refuse(503, "ServiceUnavailable"); };
  books.api.delete_pod("team-a", "web", 30);
  REQUIRE(books.reactor.run_until([&] { return books.alive() == 0; }, 10s));
  books.reactor.run_for(2s);
  books.crash();
  books.faults.next = {};
  CHECK(books.phase() != "gone");
  CHECK_FALSE(books.entries().begin()->second.gone);
  books.begin();
  CHECK(books.until("gone", 2min));
  REQUIRE(books.reactor.run_until([&] { return books.entries().begin()->second.gone; }, 2min));
  CHECK(books.entries().size() == 1);
  // The time in which nobody could know better counts.
  const auto over = books.ledger_micros() - books.invoice_micros();
  CHECK(over >= 0);
  CHECK(over < 360'000 / 30);  // two minutes
}

TEST_CASE("lost answers and foreign writes to the ledger change nothing in it") {
  Books books;
  int n = 0;
  books.faults.next = [&n] {
    test::RequestFault fault;
    if (++n % 2 == 0) fault.loss = test::RequestFault::Loss::kAnswer;
    return fault;
  };
  books.begin();
  for (int i = 0; i < 6; ++i) {
    books.create("p" + std::to_string(i));
    books.reactor.run_for(20s);
  }
  REQUIRE(books.entries().size() == 6);
  for (const json& object : books.api.list(kMaps)) {
    const std::string name = object["metadata"]["name"];
    books.api.edit(std::string(kMaps) + "/" + name, {{"metadata", {{"labels", {{"seen", "yes"}}}}}});
  }
  for (int i = 0; i < 6; ++i) books.api.delete_pod("team-a", "p" + std::to_string(i), 0);
  for (int i = 0; i < 6; ++i) CHECK(books.gone("p" + std::to_string(i), 2min));
  CHECK(books.entries().size() == 6);
  CHECK(books.ledger_micros() == books.invoice_micros());
}

TEST_CASE("what the sweep ends counts") {
  Books books;
  books.begin();
  books.create("web");
  REQUIRE(books.until("Running", 10s));
  books.reactor.run_for(1min);
  books.crash();
  books.api.delete_pod("team-a", "web", 0);
  books.begin();
  REQUIRE(books.reactor.run_until([&] { return books.alive() == 0; }, 5min));
  REQUIRE(books.reactor.run_until([&] { return books.entries().begin()->second.gone; }, 5min));
  CHECK(books.entries().begin()->second.of.ns.str() == "team-a");
  CHECK(books.ledger_micros() >= books.invoice_micros());
  CHECK(books.ledger_micros() - books.invoice_micros() < 10'000);  // a cent
}

TEST_CASE("what was spent today is known after a restart") {
  // A day is the least that is billed: one pod costs $24 at once.
  Books books("1", 24h);
  const bool capped = GENERATE(true, false);
  if (capped) books.spend.installation.per_day = dollars("30");
  books.begin();
  books.create("first");
  REQUIRE(books.reactor.run_until([&] { return books.phase_of("first") == "Running"; }, 10s));
  books.api.delete_pod("team-a", "first", 0);
  REQUIRE(books.gone("first", 1min));
  CHECK(books.ledger_micros() == 24'000'000);
  books.crash();
  books.begin();
  books.create("second");
  books.reactor.run_for(2min);
  CHECK(books.bought() == (capped ? 1U : 2U));
  if (capped) CHECK(books.waiting("second")["reason"] == "BudgetExceeded");
}

TEST_CASE("a ledger of another version is neither read nor overwritten, and nothing is bought") {
  Books books;
  const std::string day = control::day_of(books.reactor.timers.wall());
  json map = {{"metadata",
               {{"name", "spillway-ledger-spillway-" + day},
                {"namespace", "spillway-system"},
                {"labels",
                 {{"spillway.dev/ledger", "spillway"},
                  {"spillway.dev/ledger-day", day},
                  {"spillway.dev/ledger-month", day.substr(0, 7)},
                  {"spillway.dev/ledger-open", "true"}}}}},
              {"data", {{"version", "2"}, {"rows", "something new\n"}}}};
  books.api.create(kMaps, map);
  books.begin();
  books.create("web");
  books.reactor.run_for(2min);
  CHECK(books.bought() == 0);
  CHECK(books.waiting("web")["reason"] == "BudgetExceeded");
  CHECK(books.waiting("web")["message"].get<std::string>().find("has version 2") != std::string::npos);
  CHECK(books.api.get(kMaps + std::string("/spillway-ledger-spillway-") + day)["data"]["version"] == "2");
  books.api.edit(kMaps + std::string("/spillway-ledger-spillway-") + day, {{"data", {{"version", "1"}, {"rows", ""}}}});
  CHECK(books.until("Running", 10min));
}

TEST_CASE("shards that are too old go, and those that are not stay") {
  Books books;
  const auto put = [&](const std::string& day, const char* open) {
    json map = {{"metadata",
                 {{"name", "spillway-ledger-spillway-" + day},
                  {"namespace", "spillway-system"},
                  {"labels",
                   {{"spillway.dev/ledger", "spillway"},
                    {"spillway.dev/ledger-day", day},
                    {"spillway.dev/ledger-month", day.substr(0, 7)},
                    {"spillway.dev/ledger-open", open}}}}},
                {"data", {{"version", "1"}, {"rows", ""}}}};
    books.api.create(kMaps, map);
  };
  const auto days_ago = [&](int days) { return control::day_of(books.reactor.timers.wall() - 24h * days); };
  put(days_ago(400), "false");
  put(days_ago(401), "true");
  put(days_ago(300), "false");
  books.begin();
  const auto stands = [&](int days) {
    return !books.api.get(kMaps + std::string("/spillway-ledger-spillway-") + days_ago(days)).is_null();
  };
  CHECK_FALSE(stands(400));
  CHECK(stands(401));
  CHECK(stands(300));
}

TEST_CASE("a failing owner is slowed down by the next daemon, too") {
  Books books;
  books.begin();
  const auto create = [&](const std::string& name) {
    books.create_pod([&](json& pod) {
      pod["metadata"]["name"] = name;
      pod["metadata"]["annotations"] = {{"fake.spillway.dev/run-for", "1s"}, {"fake.spillway.dev/exit-code", "1"}};
      pod["spec"]["restartPolicy"] = "Never";
      pod["metadata"]["ownerReferences"] = {
          {{"apiVersion", "apps/v1"}, {"kind", "Job"}, {"name", "j"}, {"uid", "u-j"}, {"controller", true}}};
    });
    return books.reactor.run_until([&] { return books.phase_of(name) == "Failed"; }, 15min);
  };
  for (int i = 0; i < 4; ++i) REQUIRE(create("p" + std::to_string(i)));
  books.reactor.run_for(10s);
  books.crash();
  books.start();
  books.create_pod([&](json& pod) {
    pod["metadata"]["name"] = "late";
    pod["metadata"]["ownerReferences"] = {
        {{"apiVersion", "apps/v1"}, {"kind", "Job"}, {"name", "j"}, {"uid", "u-j"}, {"controller", true}}};
  });
  // The lease of the one that was killed runs out meanwhile.
  books.reactor.run_for(45s);
  CHECK(books.waiting("late")["reason"] == "LaunchBackOff");
}

}  // namespace
