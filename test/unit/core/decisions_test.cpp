// The small deciders beside the state machine: queue, brake, sweep.
#include <catch2/catch.hpp>

#include "test/support/pod_builder.hpp"
#include "vk-provider/core/orphan_sweep.hpp"
#include "vk-provider/core/owner_brake.hpp"
#include "vk-provider/core/work_queue.hpp"
#include "vk-provider/model/ownership.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;
using base::TimePoint;

namespace {
constexpr TimePoint kStart{1h};
}

// ---- work_queue

TEST_CASE("a key is due once, at its earliest time") {
  WorkQueue<std::string> queue;
  queue.add("a", kStart + 10s);
  queue.add("a", kStart + 5s);
  queue.add("a", kStart + 20s);
  queue.add("b", kStart + 6s);
  CHECK(queue.size() == 2);
  CHECK(queue.next_due() == kStart + 5s);
  CHECK_FALSE(queue.take(kStart + 4s));
  CHECK(queue.take(kStart + 6s) == "a");
  CHECK(queue.take(kStart + 6s) == "b");
  CHECK_FALSE(queue.take(kStart + 1h));
}

TEST_CASE("a removed key is not due, and may be added again") {
  WorkQueue<std::string> queue;
  queue.add("a", kStart);
  queue.remove("a");
  CHECK_FALSE(queue.take(kStart));
  queue.add("a", kStart + 1s);
  CHECK(queue.take(kStart + 1s) == "a");
}

// ---- owner_brake

TEST_CASE("a launch of an earlier process that failed counts, and of several made together one") {
  OwnerBrake before;
  before.note_failure("rs", "team", kStart, kStart + 1s);
  const TimePoint second = before.may_launch_at("rs", kStart + 1s);
  before.note_launch("rs", second);
  OwnerBrake after;
  const base::Now now{second + 30s, base::WallTime(1h)};
  after.resume(before.state(now), now);
  after.note_failure("rs", "team", TimePoint(), now.steady);
  CHECK(after.may_launch_at("rs", now.steady) == now.steady + 20s);
  after.note_failure("rs", "team", TimePoint(), now.steady);
  CHECK(after.may_launch_at("rs", now.steady) == now.steady + 20s);

  // Nothing was launched since the failure that is known: it is the same one.
  OwnerBrake again;
  again.resume(after.state(now), now);
  again.note_failure("rs", "team", TimePoint(), now.steady + 1s);
  CHECK(again.may_launch_at("rs", now.steady + 1s) == now.steady + 20s);

  // One that was due was made, though the process died before it wrote that down.
  again.note_failure("rs", "team", TimePoint(), now.steady + 21s);
  CHECK(again.may_launch_at("rs", now.steady + 21s) == now.steady + 61s);
  again.note_failure("rs", "team", TimePoint(), now.steady + 22s);
  CHECK(again.may_launch_at("rs", now.steady + 22s) == now.steady + 61s);
}

TEST_CASE("of thirty replicas that cannot start one is launched in ten minutes, from the twelfth failure on") {
  OwnerBrake brake;
  for (int i = 0; i < 30; ++i) brake.note_failure("rs", "team", kStart, kStart + 1s);
  // All that wait are told the same time; the first of them keeps the others waiting.
  TimePoint t = brake.may_launch_at("rs", kStart + 2s);
  CHECK(t == kStart + 1s + 10min);
  int launches = 0;
  while (t < kStart + 1h) {
    ++launches;
    brake.forget_quiet(t);
    brake.note_launch("rs", t);
    CHECK(brake.may_launch_at("rs", t) > t);
    brake.note_failure("rs", "team", t, t + 1s);
    t = brake.may_launch_at("rs", t + 1s);
  }
  CHECK(launches == 5);

  // One that goes well is followed by the others, slowly at first.
  brake.note_launch("rs", t);
  const TimePoint next = brake.may_launch_at("rs", t);
  CHECK(next > t);
  CHECK(brake.may_launch_at("rs", t + 3h) <= t + 3h);
}

TEST_CASE("a broken image is launched at most 7 times in ten minutes and 12 times in an hour") {
  OwnerBrake brake;
  int in_ten_minutes = 0;
  int in_an_hour = 0;
  for (TimePoint t = kStart; t < kStart + 1h; t = brake.may_launch_at("rs", t)) {
    in_ten_minutes += t < kStart + 10min ? 1 : 0;
    ++in_an_hour;
    brake.note_launch("rs", t);
    brake.note_failure("rs", "team", t, t + 2s);
    t += 2s;
  }
  CHECK(in_ten_minutes == 6);
  CHECK(in_an_hour == 11);
}

TEST_CASE("what fails in a namespace, and in all, holds owners that fail there, and nobody else") {
  OwnerBrake brake;
  const auto fail = [&](const std::string& owner, const char* ns, int times) {
    for (int i = 0; i < times; ++i) brake.note_failure(owner, ns, kStart, kStart + 1s * i);
  };
  for (int i = 0; i < 3; ++i) fail("a" + std::to_string(i), "noisy", 10);
  fail("b", "quiet", 1);
  // No longer than until it counts as quiet.
  CHECK(brake.may_launch_at("a0", kStart + 1min) == kStart + 9s + 10min);
  CHECK(brake.may_launch_at("b", kStart + 1min) <= kStart + 1min);
  CHECK(brake.may_launch_at("healthy", kStart + 1min) == kStart + 1min);
  for (int i = 0; i < 3; ++i) fail("c" + std::to_string(i), "other", 10);
  CHECK(brake.may_launch_at("b", kStart + 1min) == kStart + 10min);
  CHECK(brake.may_launch_at("healthy", kStart + 1min) == kStart + 1min);
}

TEST_CASE("refused pods of one owner are held together, 60 s doubled to 10 min") {
  OwnerBrake brake;
  CHECK(brake.hold_refused("rs", kStart) == kStart + 60s);
  CHECK(brake.hold_refused("rs", kStart + 1s) == kStart + 60s);
  CHECK(brake.hold_refused("other", kStart + 1s) == kStart + 61s);
  TimePoint t = kStart + 60s;
  for (const base::Duration hold : {120s, 240s, 480s, 600s, 600s}) {
    CHECK(brake.hold_refused("rs", t) == t + hold);
    t += hold;
  }
}

TEST_CASE("three replicas that cannot run make three pods in 60 s") {
  OwnerBrake brake;
  // A ReplicaSet replaces each Failed pod at once; each replacement is refused at once.
  std::vector<TimePoint> fail_at(3, TimePoint{});
  int pods = 3;
  for (TimePoint& t : fail_at) t = brake.hold_refused("rs", kStart);
  for (TimePoint now = kStart; now < kStart + 60s; now += 1s) {
    for (TimePoint& t : fail_at) {
      if (t > now) continue;
      ++pods;
      t = brake.hold_refused("rs", now);
    }
  }
  CHECK(pods == 3);
}

TEST_CASE("launches after a failed one wait 10 s, doubled to 10 min, and recover with quiet") {
  OwnerBrake brake;
  CHECK(brake.may_launch_at("rs", kStart) <= kStart);
  TimePoint t = kStart;
  for (const base::Duration wait : {10s, 20s, 40s, 80s, 160s, 320s, 600s, 600s}) {
    brake.note_failure("rs", "team", t, t);
    CHECK(brake.may_launch_at("rs", t) == t + wait);
    t += wait;
  }
  CHECK(brake.may_launch_at("other", t) <= t);
  t += 3h;
  CHECK(brake.may_launch_at("rs", t) <= t);
  brake.forget_quiet(t);
  CHECK(brake.size() == 0);
}

TEST_CASE("an owner whose pods fail before the next launch is due is slowed down all the same") {
  OwnerBrake brake;
  TimePoint t = kStart;
  for (const base::Duration wait : {10s, 20s, 40s, 80s, 160s, 320s, 600s, 600s}) {
    brake.note_launch("rs", t);
    brake.note_failure("rs", "team", t, t + 3s);
    CHECK(brake.may_launch_at("rs", t + 3s) == t + 3s + wait);
    t += 3s + wait;
  }
}

TEST_CASE(
    "a pod that was launched before the last failure fails for the same reason, and keeps its owner at its level") {
  OwnerBrake brake;
  brake.note_failure("rs", "team", kStart, kStart + 1min);
  brake.note_launch("rs", kStart + 70s);
  brake.note_failure("rs", "team", kStart, kStart + 75s);
  CHECK(brake.may_launch_at("rs", kStart + 75s) == kStart + 80s);
  // Ten minutes after the last failure, whenever it was launched, the owner is trusted again.
  CHECK(brake.may_launch_at("rs", kStart + 75s + 10min - 1s) == kStart + 80s);
  brake.forget_quiet(kStart + 75s + 10min);
  CHECK(brake.size() == 0);
}

TEST_CASE("ten pods of one owner that fail at once count once, and then launch one by one") {
  OwnerBrake brake;
  for (int i = 0; i < 10; ++i) brake.note_failure("rs", "team", kStart - 1min, kStart);
  CHECK(brake.may_launch_at("rs", kStart) == kStart + 10s);
  brake.note_launch("rs", kStart + 10s);
  CHECK(brake.may_launch_at("rs", kStart + 10s) == kStart + 20s);
}

// ---- ownership and orphan_sweep

namespace {

model::Ownership ours() {
  std::array<std::uint8_t, 32> digest{};
  digest[0] = 1;
  return model::Ownership(digest);
}

model::Instance owned(const std::string& id, const base::InstanceTag& tag) {
  model::Instance instance = test::an_instance(model::InstanceState::kRunning);
  instance.ref.id = base::InstanceId(id);
  instance.tag = tag;
  return instance;
}

}  // namespace

TEST_CASE("a tag fits 63 characters and comes back as it was") {
  const auto tag = ours().make_tag(base::PodUid(test::kUid), 99999);
  REQUIRE(tag);
  CHECK(tag->str().size() <= 63);
  CHECK(tag->str().find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos);
  const auto parsed = ours().parse(*tag);
  REQUIRE(parsed);
  CHECK(parsed->uid.str() == test::kUid);
  CHECK(parsed->attempt == 99999);
}

TEST_CASE("what is no tag of ours is not parsed") {
  const std::string good = ours().make_tag(base::PodUid(test::kUid), 1)->str();
  std::array<std::uint8_t, 32> other{};
  CHECK_FALSE(model::Ownership(other).parse(base::InstanceTag(good)));
  for (const std::string& bad : {std::string(), std::string("spw-"), good.substr(0, good.size() - 1), good + "x",
                                 good + "0000000", good.substr(0, good.size() - 1) + "0", "x" + good}) {
    CAPTURE(bad);
    CHECK_FALSE(ours().parse(base::InstanceTag(bad)));
  }
  CHECK_FALSE(ours().make_tag(base::PodUid("static-pod"), 1));
  CHECK_FALSE(ours().make_tag(base::PodUid(test::kUid), 0));
}

TEST_CASE("an orphan is due after two listings and the grace period, never before, and never a foreign one") {
  OrphanSweep sweep(ours(), 2min);
  const base::ProviderName cloud("cloud");
  const auto nobody = [](const base::PodUid&, int) { return false; };
  const std::vector<model::Instance> listing{owned("i-1", *ours().make_tag(base::PodUid(test::kUid), 1)),
                                             owned("i-2", base::InstanceTag("somebody-else"))};
  CHECK(sweep.look(cloud, listing, nobody, kStart).empty());
  CHECK(sweep.look(cloud, listing, nobody, kStart + 119s).empty());
  const auto due = sweep.look(cloud, listing, nobody, kStart + 120s);
  REQUIRE(due.size() == 1);
  CHECK(due[0].instance.ref.id == base::InstanceId("i-1"));
  CHECK(due[0].owner.attempt == 1);
}

TEST_CASE("an orphan that finds its owner again, or is gone once, starts from the beginning") {
  OrphanSweep sweep(ours(), 10s);
  const base::ProviderName cloud("cloud");
  const auto nobody = [](const base::PodUid&, int) { return false; };
  const auto somebody = [](const base::PodUid&, int) { return true; };
  const std::vector<model::Instance> listing{owned("i-1", *ours().make_tag(base::PodUid(test::kUid), 1))};
  sweep.look(cloud, listing, nobody, kStart);
  sweep.look(cloud, listing, somebody, kStart + 5s);
  CHECK(sweep.look(cloud, listing, nobody, kStart + 20s).empty());
  sweep.look(cloud, {}, nobody, kStart + 25s);
  CHECK(sweep.look(cloud, listing, nobody, kStart + 60s).empty());
  CHECK(sweep.look(cloud, listing, nobody, kStart + 70s).size() == 1);
}
