#include "vk-provider/control/ledger_codec.hpp"

#include <catch2/catch.hpp>

#include <string>

#include "vk-provider/control/brake_keeper.hpp"

namespace spillway::control {
namespace {

core::LedgerEntry an_entry(const std::string& id = "i 1/%x") {
  core::LedgerEntry e;
  e.ref = model::InstanceRef(base::ProviderName("cloud"), base::InstanceId(id));
  e.tag = base::InstanceTag("spw-aaaaaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbbbbbb-1");
  e.uid = base::PodUid("0f1e");
  e.of.ns = "team";
  e.of.pod = "-";
  e.of.owner_kind = "Job";
  e.of.owner_name = "train";
  e.of.offer = "a b\n%20";
  e.per_hour = base::Money::from_micros(2'390'000);
  e.grain = std::chrono::seconds(60);
  e.settled = base::Money::from_micros(7);
  e.billed = std::chrono::seconds(3600);
  e.opened = e.since = e.until = *base::from_rfc3339("2026-12-01T05:00:00.123456Z");
  e.begin = e.opened;
  return e;
}

TEST_CASE("ledger rows: what is written is read back") {
  core::LedgerEntry e = an_entry();
  const std::string row = encode_row(e);
  CHECK(row.find('\n') == std::string::npos);
  CHECK(decode_row(row) == e);
  e.begin.reset();
  e.gone = true;
  CHECK(decode_row(encode_row(e)) == e);
}

TEST_CASE("ledger rows: what is cut, longer or no number is none") {
  const std::string row = encode_row(an_entry());
  CHECK_FALSE(decode_row(""));
  CHECK_FALSE(decode_row(row + " more"));
  CHECK_FALSE(decode_row(row.substr(0, row.rfind(' '))));
  std::string other = row;
  other.replace(other.find("2390000"), 7, "-239000");
  CHECK_FALSE(decode_row(other));
  other.replace(other.find("-239000"), 7, "2.39e06");
  CHECK_FALSE(decode_row(other));
}

TEST_CASE("ledger shards: another version is neither read nor guessed at") {
  const core::LedgerEntry e = an_entry();
  kube::ConfigMap map = encode_shard("spillway", "2026-12-01", 2, {{core::key_of(e), encode_row(e)}}, true);
  CHECK(map.name == "spillway-ledger-spillway-2026-12-01-2");
  CHECK(map.labels.at("spillway.dev/ledger-month") == "2026-12");
  REQUIRE(decode_shard(map));
  CHECK(decode_shard(map)->at(0) == e);
  map.data["version"] = "2";
  const auto refused = decode_shard(map);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "ConfigMap spillway-ledger-spillway-2026-12-01-2 has version 2, and this Spillway knows only 1");
  map.data.erase("version");
  CHECK_FALSE(decode_shard(map));
  map.data["version"] = "1";
  map.data["rows"] += "and what is no row\n";
  CHECK_FALSE(decode_shard(map));
}

TEST_CASE("ledger shards: an instance counts once, by what the latest shard says") {
  core::LedgerEntry e = an_entry();
  core::LedgerEntry later = e;
  later.gone = true;
  const auto early = encode_shard("s", "2026-12-01", 2, {{core::key_of(e), encode_row(e)}}, true);
  const auto late = encode_shard("s", "2026-12-01", 10, {{core::key_of(e), encode_row(later)}}, false);
  const auto entries = decode_shards({late, early});
  REQUIRE(entries);
  CHECK(entries->size() == 1);
  CHECK(entries->at(core::key_of(e)).gone);
}

TEST_CASE("brake rows: what is written is read back, and nothing else is read") {
  core::OwnerBrake::Kept kept;
  kept.owner = "0f1e";
  kept.failures = 3;
  kept.next_launch = *base::from_rfc3339("2026-12-01T05:00:00Z");
  core::OwnerBrake::Kept failing = kept;
  failing.ns = "team";
  failing.failed = {kept.next_launch, kept.next_launch + std::chrono::seconds(7)};
  const auto read = decode_brake(encode_brake({kept, failing, kept}));
  REQUIRE(read);
  CHECK(*read == std::vector<core::OwnerBrake::Kept>{kept, failing, kept});
  CHECK_FALSE(decode_brake("0f1e 0 0 0 0 0 0 team 5 x"));
  // As the first ones were written.
  const auto old = decode_brake("0f1e 3 0 0 7 1 9\n");
  REQUIRE(old);
  CHECK(old->at(0).refusals == 1);
  CHECK(old->at(0).ns.empty());
  CHECK(decode_brake("")->empty());
  CHECK_FALSE(decode_brake("0f1e 3 x"));
}

TEST_CASE("the brake goes on where it stopped, whatever the clock was set to") {
  using namespace std::chrono_literals;
  const base::Now now{base::TimePoint(1h), *base::from_rfc3339("2026-12-01T05:00:00Z")};
  core::OwnerBrake brake;
  for (int i = 0; i < 3; ++i) brake.note_failure("a", "team", now.steady, now.steady + 1s * i);
  brake.note_failure("a", "team", now.steady + 3s, now.steady + 4s);
  const auto kept = brake.state(now);
  core::OwnerBrake next;
  const base::Now later{base::TimePoint(9h), now.wall + 5s};
  next.resume(kept, later);
  CHECK(next.may_launch_at("a", later.steady) - later.steady ==
        brake.may_launch_at("a", now.steady) - (now.steady + 5s));
  CHECK(next.state(later) == kept);
  core::OwnerBrake set_back;
  set_back.resume(kept, {base::TimePoint(9h), now.wall - 48h});
  CHECK(set_back.may_launch_at("a", base::TimePoint(9h)) <= base::TimePoint(9h) + core::OwnerBrake::kLaunch.cap);
}

}  // namespace
}  // namespace spillway::control
