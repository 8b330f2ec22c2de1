#include "vk-provider/daemon/cli_cost.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

using namespace std::chrono_literals;

namespace spillway::daemon {
namespace {

const base::WallTime kNow = *base::from_rfc3339("2026-12-01T12:00:00Z");

core::LedgerEntry entry(const char* ns, const char* owner, const char* provider, base::WallTime from, bool runs) {
  core::LedgerEntry e;
  e.ref = model::InstanceRef(base::ProviderName(provider), base::InstanceId("i"));
  e.of.ns = ns;
  e.of.pod = "web";
  if (*owner != '\0') e.of.owner_kind = "Job";
  e.of.owner_name = owner;
  e.per_hour = base::Money::from_micros(3'600'000);
  e.opened = e.since = e.until = from;
  if (runs) {
    e.begin = from;
  } else {
    e.billed = 1h;
    e.until = from + 1h;
    e.gone = true;
  }
  return e;
}

std::vector<core::LedgerEntry> some() {
  return {entry("a", "train", "docker", kNow - 10h, false), entry("b", "", "fake", kNow - 10s, true),
          entry("a", "", "fake", kNow - 48h, false)};
}

TEST_CASE("cost: sums by what is asked for, the dearest first, and what runs until now") {
  CostOptions options;
  CostReport report = sum_up(some(), options, kNow);
  REQUIRE(report.rows.size() == 2);
  CHECK(report.rows[0].name == "a");
  CHECK(report.rows[0].spent.to_dollars() == "7.20");
  CHECK(report.rows[0].running == 0);
  CHECK(report.rows[1].spent.to_dollars() == "0.01");
  CHECK(report.rows[1].running == 1);
  CHECK(report.rows[1].per_hour.to_dollars() == "3.60");
  CHECK(report.total.spent.to_dollars() == "7.21");
  CHECK(report.total.instances == 3);
  options.by = CostBy::kProvider;
  report = sum_up(some(), options, kNow);
  CHECK(report.rows[0].name == "fake");
  CHECK(report.rows[0].spent.to_dollars() == "3.61");
  options.by = CostBy::kOwner;
  report = sum_up(some(), options, kNow);
  REQUIRE(report.rows.size() == 3);
  CHECK(report.rows[0].name == "a/Job/train");
  CHECK(report.rows[2].name == "b/web");
}

TEST_CASE("cost: of a time only what falls into it") {
  CostOptions options;
  options.since = kNow - 9h - 30min;
  const CostReport report = sum_up(some(), options, kNow);
  CHECK(report.total.instances == 2);
  CHECK(report.total.spent.to_dollars() == "1.81");
}

TEST_CASE("cost: as a table and as JSON") {
  const CostReport report = sum_up(some(), {}, kNow);
  CHECK(to_text(report, Output::kTable) ==
        "NAMESPACE  INSTANCES  RUNNING  $/H   SPENT $\n"
        "a          2          0        0.00  7.20\n"
        "b          1          1        3.60  0.01\n"
        "total      3          1        3.60  7.21\n");
  const auto json = nlohmann::json::parse(to_text(report, Output::kJson));
  CHECK(json["by"] == "namespace");
  CHECK(json["rows"][0]["micros"] == 7'200'000);
  CHECK(json["total"]["dollars"] == "7.21");
  CHECK_FALSE(json.contains("since"));
}

TEST_CASE("cost: since when") {
  CHECK(parse_since("90m", kNow) == kNow - 90min);
  CHECK(parse_since("7d", kNow) == kNow - 168h);
  CHECK(parse_since("2026-11-30", kNow) == *base::from_rfc3339("2026-11-30T00:00:00Z"));
  CHECK(parse_since("2026-11-30T08:00:00Z", kNow) == *base::from_rfc3339("2026-11-30T08:00:00Z"));
  for (const char* bad : {"", "yesterday", "7", "-7d", "d", "99999999d", "2026-13-01"}) {
    INFO(bad);
    const auto since = parse_since(bad, kNow);
    REQUIRE_FALSE(since);
    CHECK(since.error().message.starts_with("--since: found \"" + std::string(bad) + "\"; allowed: "));
  }
}

}  // namespace
}  // namespace spillway::daemon
