#include <catch2/catch.hpp>

#include "providers/fake/fake_cloud.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using model::InstanceState;

namespace {

size_t listed(FakeCloud& cloud, base::TimePoint now) {
  return cloud.list_owned("spw-", now).result.value().instances.size();
}

}  // namespace

TEST_CASE("fake faults: an answer is lost after the effect, or a request before it") {
  FakeCloud cloud(a_cloud(), cloud_start());
  FaultRule lost = a_fault(Effect::kLoseAnswer, Call::kCreate);
  lost.times = 1;
  REQUIRE(cloud.add_fault(lost, at(0s)).has_value());
  CHECK(cloud.create(a_purchase("spw-a-1"), at(1s)).lost);
  CHECK(listed(cloud, at(2s)) == 1);

  FaultRule unheard = a_fault(Effect::kLoseRequest, Call::kCreate);
  unheard.times = 1;
  REQUIRE(cloud.add_fault(unheard, at(2s)).has_value());
  CHECK(cloud.create(a_purchase("spw-a-2"), at(3s)).lost);
  CHECK(listed(cloud, at(4s)) == 1);
  CHECK(cloud.audit(at(4s)).creates.count("spw-a-2") == 0);

  CHECK_FALSE(cloud.create(a_purchase("spw-a-2"), at(5s)).lost);
}

TEST_CASE("fake faults: a ghost answers an error and appears later, once") {
  FakeCloud cloud(a_cloud(), cloud_start());
  FaultRule ghost = a_fault(Effect::kGhost);
  ghost.times = 1;
  ghost.duration = 5s;
  REQUIRE(cloud.add_fault(ghost, at(0s)).has_value());
  CHECK(cloud.create(a_purchase("spw-a-1"), at(1s)).result.error().kind == ErrorKind::kUnknownOutcome);
  CHECK(listed(cloud, at(5s)) == 0);
  CHECK(listed(cloud, at(6s)) == 1);
  CHECK(cloud.create(a_purchase("spw-a-1"), at(7s)).result.value().created_at == cloud_start().wall + 6s);
}

TEST_CASE("fake faults: an error befalls the chosen calls only") {
  FakeCloud cloud(a_cloud(), cloud_start());
  FaultRule limit = a_fault(Effect::kError, Call::kCreate);
  limit.kind = ErrorKind::kRateLimited;
  limit.retry_after = 1500ms;
  limit.skip = 1;
  limit.times = 2;
  limit.tag = "-b-";
  REQUIRE(cloud.add_fault(limit, at(0s)).has_value());
  CHECK(cloud.create(a_purchase("spw-a-1"), at(0s)).result.has_value());
  CHECK(cloud.create(a_purchase("spw-b-1"), at(0s)).result.has_value());
  const auto refused = cloud.create(a_purchase("spw-b-2"), at(0s)).result.error();
  CHECK(refused.kind == ErrorKind::kRateLimited);
  CHECK(refused.retry_after == 1500ms);
  CHECK_FALSE(cloud.create(a_purchase("spw-b-3"), at(0s)).result.has_value());
  CHECK(cloud.create(a_purchase("spw-b-3"), at(0s)).result.has_value());
}

TEST_CASE("fake faults: an outage ends by itself") {
  FakeCloud cloud(a_cloud(), cloud_start());
  FaultRule outage = a_fault(Effect::kError);
  outage.lasts = 60s;
  REQUIRE(cloud.add_fault(outage, at(0s)).has_value());
  CHECK(cloud.list_offers(at(59s)).result.error().kind == ErrorKind::kUnavailable);
  CHECK(cloud.list_owned("spw-", at(59s)).result.error().kind == ErrorKind::kUnavailable);
  CHECK(cloud.create(a_purchase("spw-a-1"), at(59s)).result.error().kind == ErrorKind::kUnavailable);
  CHECK(cloud.list_offers(at(60s)).result.has_value());
  CHECK(cloud.size(at(60s)) == 0);
}

TEST_CASE("fake faults: delays add up and change nothing else") {
  FakeCloud cloud(a_cloud(), cloud_start());
  FaultRule slow = a_fault(Effect::kDelay, Call::kCreate);
  slow.duration = 2s;
  REQUIRE(cloud.add_fault(slow, at(0s)).has_value());
  REQUIRE(cloud.add_fault(slow, at(0s)).has_value());
  const auto reply = cloud.create(a_purchase("spw-a-1"), at(0s));
  CHECK(reply.delay == 4s);
  CHECK(reply.result.has_value());
  CHECK_FALSE(reply.lost);
}

TEST_CASE("fake faults: listings that are partial, empty by error, or lagging") {
  FakeCloud cloud(a_cloud(), cloud_start());
  for (const char* tag : {"spw-a-1", "spw-b-1", "spw-c-1"}) cloud.create(a_purchase(tag), at(0s));

  FaultRule partial = a_fault(Effect::kPartialList);
  partial.times = 1;
  REQUIRE(cloud.add_fault(partial, at(1s)).has_value());
  const auto part = cloud.list_owned("spw-", at(1s)).result.value();
  CHECK_FALSE(part.complete);
  CHECK_FALSE(part.incomplete_why.empty());
  REQUIRE(part.instances.size() == 1);
  CHECK(part.instances[0].tag.str() == "spw-b-1");

  FaultRule empty = a_fault(Effect::kEmptyList);
  empty.times = 1;
  REQUIRE(cloud.add_fault(empty, at(2s)).has_value());
  const auto nothing = cloud.list_owned("spw-", at(2s)).result.value();
  CHECK(nothing.complete);
  CHECK(nothing.instances.empty());

  FaultRule lag = a_fault(Effect::kLaggingList);
  lag.duration = 10s;
  lag.tag = "-b-";
  REQUIRE(cloud.add_fault(lag, at(3s)).has_value());
  CHECK(listed(cloud, at(9s)) == 2);
  CHECK(listed(cloud, at(10s)) == 3);
}

TEST_CASE("fake faults: offers are sold out by pattern") {
  FakeCloud cloud(a_cloud(), cloud_start());
  FaultRule sold_out = a_fault(Effect::kSoldOut);
  sold_out.offer = "sm*";
  REQUIRE(cloud.add_fault(sold_out, at(0s)).has_value());
  const auto offers = cloud.list_offers(at(0s)).result.value();
  CHECK_FALSE(offers[0].available);
  CHECK(offers[1].available);
  CHECK(cloud.create(a_purchase("spw-a-1"), at(0s)).result.error().kind == ErrorKind::kNoCapacity);
  cloud.clear_faults();
  CHECK(cloud.create(a_purchase("spw-a-1"), at(0s)).result.has_value());
}

TEST_CASE("fake faults: images that cannot be pulled, terminations that hang, prices that were another") {
  FakeCloud cloud(a_cloud(), cloud_start());
  FaultRule image = a_fault(Effect::kImageError);
  image.image = "*/app:*";
  image.times = 1;
  REQUIRE(cloud.add_fault(image, at(0s)).has_value());
  CHECK(cloud.create(a_purchase("spw-a-1"), at(0s)).result.value().image_error);

  FaultRule dear = a_fault(Effect::kOvercharge);
  dear.percent = 250;
  dear.times = 1;
  REQUIRE(cloud.add_fault(dear, at(0s)).has_value());
  const auto overcharged = cloud.create(a_purchase("spw-a-2"), at(0s)).result.value();
  CHECK(overcharged.price_per_hour == base::Money::from_dollars("0.9"));
  CHECK(cloud.invoice(at(100s))[1].amount.micros() == 25'000);

  FaultRule stuck = a_fault(Effect::kStuckTermination);
  REQUIRE(cloud.add_fault(stuck, at(1s)).has_value());
  const auto id = overcharged.ref.id.str();
  CHECK(cloud.terminate(id, 30s, at(1s)).result.has_value());
  CHECK(cloud.get(id, at(24h)).result.value().state == InstanceState::kTerminating);
  CHECK(cloud.invoice(at(24h))[1].running);
  cloud.clear_faults();
  CHECK(cloud.terminate(id, 30s, at(24h)).result.has_value());
  CHECK(cloud.get(id, at(24h)).result.error().kind == ErrorKind::kNotFound);
}

TEST_CASE("fake faults: a rule that cannot be meant is refused") {
  FakeCloud cloud(a_cloud(), cloud_start());
  const auto wrong = cloud.add_fault(a_fault(Effect::kGhost, Call::kGet), at(0s));
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().message == "effect ghost can befall create only, not get");
  FaultRule negative = a_fault(Effect::kDelay);
  negative.times = -1;
  CHECK(cloud.add_fault(negative, at(0s)).error().kind == ErrorKind::kInvalid);
}

TEST_CASE("fake faults: chance is seeded") {
  CloudSettings settings = a_cloud();
  settings.seed = 7;
  FakeCloud one(settings, cloud_start());
  FakeCloud two(settings, cloud_start());
  FaultRule half = a_fault(Effect::kError, Call::kListOffers);
  half.probability = 50;
  REQUIRE(one.add_fault(half, at(0s)).has_value());
  REQUIRE(two.add_fault(half, at(0s)).has_value());
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    const bool ok = one.list_offers(at(0s)).result.has_value();
    CHECK(two.list_offers(at(0s)).result.has_value() == ok);
    failed += ok ? 0 : 1;
  }
  CHECK(failed > 60);
  CHECK(failed < 140);
}

TEST_CASE("fake faults: patterns") {
  CHECK(matches("*", ""));
  CHECK(matches("a*c", "abbc"));
  CHECK(matches("*bad*", "registry/bad:1"));
  CHECK(matches("a*b*c", "aXbXbXc"));
  CHECK_FALSE(matches("a*c", "abcd"));
  CHECK_FALSE(matches("", "x"));
}
