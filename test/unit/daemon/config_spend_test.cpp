// spend: of the configuration.
#include <algorithm>

#include <catch2/catch.hpp>

#include "vk-provider/daemon/config.hpp"

namespace {

using namespace spillway;
using Lines = std::vector<std::string>;

struct Loader {
  Loader() {
    provider::ProviderType type;
    type.validate = [](const nlohmann::json&) { return std::vector<provider::ConfigFault>(); };
    registry["rented"] = type;
    type.costs_money = false;
    registry["own"] = type;
    sources.providers = &registry;
  }
  std::expected<daemon::Config, std::vector<daemon::Fault>> parse(const std::string& type, const std::string& spend) {
    return daemon::parse_config(
        "apiVersion: spillway.dev/v1\nproviders: [{name: c, type: " + type + "}]\nnodes: [{name: burst}]\n" + spend,
        "f", sources);
  }
  Lines bad(const std::string& type, const std::string& spend) {
    const auto config = parse(type, spend);
    REQUIRE_FALSE(config.has_value());
    Lines out;
    for (const daemon::Fault& fault : config.error()) out.push_back(fault.to_string());
    return out;
  }

  provider::Registry registry;
  daemon::ConfigSources sources;
};

base::Money dollars(const char* text) { return *base::Money::from_dollars(text); }

TEST_CASE("caps are read by scope and span") {
  Loader loader;
  const auto config = loader.parse("rented", R"(spend:
  installation: {perHour: 10, perMonth: 2000.5}
  eachNamespace: {perHour: 4}
  namespaces: {team-a: {perDay: 24}}
  providers: {c: {perHour: 8.000001}}
  nodes: {burst: {perHour: 6}}
)");
  REQUIRE(config.has_value());
  const core::SpendPolicy& spend = config->spend;
  CHECK(spend.installation.per_hour == dollars("10"));
  CHECK_FALSE(spend.installation.per_day);
  CHECK(spend.installation.per_month == dollars("2000.5"));
  CHECK(spend.each_namespace.per_hour == dollars("4"));
  CHECK(spend.namespaces.at("team-a").per_day == dollars("24"));
  CHECK_FALSE(spend.namespaces.at("team-a").per_hour);
  CHECK(spend.providers.at(base::ProviderName("c")).per_hour == dollars("8.000001"));
  CHECK(spend.nodes.at("burst").per_hour == dollars("6"));
}

TEST_CASE("a provider that costs money needs a cap in dollars per hour") {
  Loader loader;
  const Lines fault{
      "f:2: providers[0]: found no cap on what provider \"c\" may cost; allowed: with spend.installation.perHour or "
      "spend.providers.c.perHour"};
  CHECK(loader.bad("rented", "") == fault);
  // A budget of a day, a cap of a node or of namespaces leaves a way round it.
  CHECK(loader.bad("rented", "spend: {installation: {perDay: 24}}\n") == fault);
  CHECK(loader.bad("rented", "spend: {nodes: {burst: {perHour: 1}}, eachNamespace: {perHour: 1}}\n") == fault);
  CHECK(loader.parse("rented", "spend: {installation: {perHour: 1}}\n").has_value());
  CHECK(loader.parse("rented", "spend: {providers: {c: {perHour: 1}}}\n").has_value());
  CHECK(loader.parse("own", "").has_value());
}

TEST_CASE("caps that are none are refused with a place") {
  Loader loader;
  const std::string dollars = "; allowed: dollars above 0 such as 2.50, of at most 6 decimals";
  const Lines faults = loader.bad("own", R"(spend:
  installation: {perHour: 0}
  eachNamespace: {perHour: free}
  providers: {d: {perHour: 1}}
  nodes: {other: {}}
  namespaces: {team-a: {perhour: 1}}
)");
  REQUIRE(faults.size() == 5);
  CHECK(faults[0] == "f:5: spend.installation.perHour: found \"0\"" + dollars);
  CHECK(faults[1] == "f:6: spend.eachNamespace.perHour: found \"free\"" + dollars);
  CHECK(faults[2] == "f:7: spend.providers.d: found the name \"d\"; allowed: c");
  CHECK(faults[3] == "f:8: spend.nodes.other: found the name \"other\"; allowed: burst");
  const std::string key = "f:9: spend.namespaces.team-a.perhour: found an unknown key; allowed: perHour";
  CHECK(faults[4] == key + " (the nearest of perHour, perDay, perMonth)");
}

TEST_CASE("spend: how long the ledger is kept") {
  Loader loader;
  const auto config = loader.parse("own", "spend: {ledgerRetention: 800h}\n");
  REQUIRE(config.has_value());
  CHECK(config->ledger_retention == std::chrono::hours(800));
  CHECK(loader.parse("own", "")->ledger_retention == std::chrono::hours(8760));
  CHECK(loader.bad("own", "spend: {ledgerRetention: 24h}\n").size() == 1);
}

}  // namespace
