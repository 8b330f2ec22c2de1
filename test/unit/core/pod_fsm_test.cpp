#include "vk-provider/core/pod_fsm.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "test/unit/core/life.hpp"
#include "vk-provider/core/pod_status.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;
using spillway::base::ErrorKind;
using spillway::model::InstanceState;
using spillway::test::Life;
using spillway::test::with_state;

TEST_CASE("a pod is bought only after the intent stands on it") {
  Life life;
  life.join();
  CHECK(life.does<action::Choose>());
  life.choose();
  CHECK(life.stage() == "creating");
  CHECK(life.does<action::WriteIntent>());
  CHECK_FALSE(life.does<action::Create>());
  life.on(event::IntentWritten{});
  CHECK(life.does<action::Create>());
  life.on(event::Created{test::an_instance(InstanceState::kRunning)});
  CHECK(life.stage() == "running");
  CHECK(life.told().empty());
}

TEST_CASE("a pod that runs keeps its containers once: there are ten thousand such records") {
  Life life;
  life.to_running();
  event::StatusWritten written;
  written.resource_version = "999";
  written.status.containers.resize(1);
  life.on(written);
  CHECK(life.record.containers.size() == 1);
  CHECK(std::get<model::Running>(life.record.stage).instance.containers.capacity() == 0);
  CHECK(life.record.observed.status.containers_fingerprint == model::fingerprint(written.status.containers));
  CHECK(life.record.observed.status.containers.capacity() == 0);
}

TEST_CASE("an unfinished create that fails again is carried on until it works") {
  Life life{test::a_pod(), with_state(false, "i-1")};
  life.join(test::an_instance(InstanceState::kPending));
  REQUIRE(life.stage() == "booting");
  CHECK(life.does<action::Create>());
  life.fail_create(ErrorKind::kUnavailable);
  CHECK(life.stage() == "booting");
  CHECK(life.told() == "FailedCreate");
  REQUIRE(life.does<action::WakeAt>());
  life.now.steady = life.did<action::WakeAt>()->when;
  life.on(event::Tick{});
  CHECK(life.does<action::Create>());
  life.fail_create(ErrorKind::kUnknownOutcome);
  CHECK(life.told().empty());
  life.now.steady = life.did<action::WakeAt>()->when;
  life.on(event::Tick{});
  CHECK(life.does<action::Create>());
  life.on(event::Created{test::an_instance(InstanceState::kRunning)});
  CHECK(life.stage() == "running");
}

TEST_CASE("an unfinished create that fails for its image gives the instance back") {
  Life life{test::a_pod(), with_state(false, "i-1")};
  life.join(test::an_instance(InstanceState::kPending));
  life.fail_create(ErrorKind::kImage);
  CHECK(life.stage() == "stopping");
  CHECK(life.does<action::Terminate>());
}

TEST_CASE("the next attempt waits for the create that carried an unfinished instance on") {
  Life life{test::a_pod(), with_state(false, "i-1")};
  life.join(test::an_instance(InstanceState::kPending));
  REQUIRE(life.does<action::Create>());
  model::Instance failed = test::an_instance(InstanceState::kFailed);
  model::Instance another = test::an_instance(InstanceState::kPending);
  another.ref.id = base::InstanceId("i-2");

  SECTION("it bought another one, which is ended first") {
    life.on(event::InstanceSeen{failed});
    REQUIRE(life.stage() == "stopping");
    life.on(event::InstanceGone{});
    CHECK(life.stage() == "stopping");
    life.on(event::Created{another});
    CHECK(life.stage() == "stopping");
    REQUIRE(life.does<action::Terminate>());
    CHECK(life.did<action::Terminate>()->ref.id == another.ref.id);
    life.on(event::TerminateAccepted{});
    life.on(event::InstanceGone{});
    CHECK(life.stage() == "choosing");
  }
  SECTION("it bought another one before the first was gone") {
    life.on(event::InstanceSeen{failed});
    life.on(event::Created{another});
    life.on(event::InstanceGone{});
    CHECK(life.stage() == "stopping");
    CHECK(life.does<action::LookUp>());
    life.on(event::InstanceSeen{another});
    REQUIRE(life.does<action::Terminate>());
    CHECK(life.did<action::Terminate>()->ref.id == another.ref.id);
  }
  SECTION("it bought nothing") {
    life.on(event::InstanceSeen{failed});
    life.on(event::InstanceGone{});
    life.fail_create(ErrorKind::kUnavailable);
    CHECK(life.stage() == "choosing");
  }
  SECTION("it may have bought something: a complete listing after the settle time says") {
    life.on(event::InstanceSeen{failed});
    life.on(event::InstanceGone{});
    life.fail_create(ErrorKind::kUnknownOutcome);
    CHECK(life.does<action::LookUp>());
    life.on(event::InstanceMissing{life.now.steady + 1s});
    CHECK(life.stage() == "stopping");
    life.pass(test::facts().settle_time);
    life.on(event::Tick{});
    CHECK(life.does<action::LookUp>());
    life.on(event::InstanceSeen{failed});  // a listing that lags
    CHECK(life.stage() == "stopping");
    life.on(event::InstanceMissing{life.now.steady});
    CHECK(life.stage() == "choosing");
  }
  SECTION("an instance that vanished by itself") {
    life.pass(1s);
    life.on(event::InstanceMissing{life.now.steady});
    life.on(event::InstanceMissing{life.now.steady});
    life.on(event::InstanceGone{});
    CHECK(life.stage() == "stopping");
    CHECK_FALSE(life.does<action::Choose>());
    life.on(event::Created{another});
    REQUIRE(life.does<action::Terminate>());
    life.on(event::TerminateAccepted{});
    life.on(event::InstanceGone{});
    CHECK(life.told() == "InstanceLost");
    CHECK(life.does<action::Choose>());
  }
  SECTION("a pod that is deleted goes after it, too") {
    life.user_deletes(0s);
    life.on(event::InstanceGone{});
    CHECK(life.stage() == "stopping");
    life.on(event::Created{another});
    CHECK(life.did<action::Terminate>()->ref.id == another.ref.id);
    life.on(event::InstanceGone{});
    CHECK(life.stage() == "finished");
  }
}

TEST_CASE("a create that the former daemon sent again is waited for when what it carried on ends") {
  Life life{test::a_pod(), with_state(false, "i-1")};
  event::Joined joined;
  joined.instance = test::an_instance(InstanceState::kPending);
  joined.provider = test::facts();
  joined.intent_may_land_until = life.now.steady + 30s;
  life.on(joined);
  life.on(event::Created{test::an_instance(InstanceState::kPending)});
  life.on(event::InstanceSeen{test::an_instance(InstanceState::kFailed)});
  life.on(event::InstanceGone{});
  CHECK(life.stage() == "stopping");
  life.pass(31s);
  life.on(event::InstanceMissing{life.now.steady});
  CHECK(life.stage() == "choosing");
}

TEST_CASE("an instance that is named on the pod is asked for when the first listing leaves it out") {
  event::Joined joined;
  joined.provider = test::facts();
  SECTION("one that did not run yet is asked for before the purchase is made again") {
    Life life{test::a_pod(), with_state(false, "i-1")};
    joined.intent_may_land_until = life.now.steady;
    life.on(joined);
    CHECK(life.does<action::LookUp>());
    life.pass(test::facts().settle_time);
    life.on(event::InstanceMissing{life.now.steady});
    CHECK_FALSE(life.does<action::Create>());
    REQUIRE(life.does<action::Confirm>());
    CHECK(life.did<action::Confirm>()->ref.id.str() == "i-1");
    SECTION("it is there") {
      life.on(event::InstanceSeen{test::an_instance(InstanceState::kPending)});
      CHECK(life.stage() == "booting");
    }
    SECTION("it is gone") {
      life.on(event::InstanceGone{});
      CHECK(life.does<action::Create>());
      CHECK(life.record.placement->tag == test::a_placement().tag);
    }
    SECTION("the pod is deleted: it is told to end") {
      life.user_deletes();
      REQUIRE(life.does<action::Terminate>());
      CHECK(life.did<action::Terminate>()->ref.id.str() == "i-1");
    }
  }
  SECTION("of a pod that is being deleted it is told to end") {
    model::ObservedPod observed = with_state(false, "i-1");
    observed.deletion_timestamp = base::WallTime();
    Life life{test::a_pod(), observed};
    life.on(joined);
    CHECK(life.stage() == "stopping");
    REQUIRE(life.does<action::Terminate>());
    CHECK(life.did<action::Terminate>()->ref.id.str() == "i-1");
  }
  SECTION("of a pod that has ended it is told to end before the object goes, and not asked for until then") {
    model::ObservedPod observed = with_state(true, "i-1");
    observed.status.phase = model::PodPhase::kFailed;
    Life life{test::a_pod(), observed};
    life.on(joined);
    CHECK(life.stage() == "finished");
    for (int i = 0; i < 3; ++i) {
      life.pass(10s);
      life.on(event::InstanceMissing{life.now.steady});
      CHECK(life.last.empty());
    }
    SECTION("nothing shows it") {
      life.user_deletes();
      REQUIRE(life.does<action::Terminate>());
      life.on(event::TerminateFailed{base::Error(ErrorKind::kNotFound, "no")});
      life.on(event::InstanceGone{});
      CHECK(life.stage() == "finished");
      CHECK(life.does<action::CloseEntry>());
    }
    SECTION("a later listing shows that it runs: nobody pays for the work of a pod that has ended") {
      life.on(event::InstanceSeen{test::an_instance(InstanceState::kRunning)});
      CHECK(life.stage() == "stopping");
      CHECK(life.does<action::Terminate>());
    }
  }
}

TEST_CASE("an attempt whose intent was not written is the next one, too") {
  Life life;
  life.join();
  life.choose(1);
  life.on(event::IntentFailed{base::Error(ErrorKind::kInvalid, "admission says no")});
  CHECK(life.stage() == "waiting");
  CHECK(life.record.attempt == 0);
}

TEST_CASE("nothing is bought when the intent meets a newer pod") {
  Life life;
  life.join();
  life.choose();
  life.on(event::IntentFailed{base::Error(ErrorKind::kConflict, "changed")});
  CHECK_FALSE(life.does<action::Create>());
  life.on(event::Tick{});
  CHECK_FALSE(life.does<action::WriteIntent>());
  life.pass(1s);
  life.on(event::Tick{});
  CHECK(life.does<action::WriteIntent>());
}

TEST_CASE("a purchase whose intent was not written is not mentioned on the pod") {
  for (const ErrorKind kind : {ErrorKind::kInvalid, ErrorKind::kConflict}) {
    Life life;
    life.join();
    life.choose();
    CHECK(wanted_state(life.record).has_value());
    life.on(event::IntentFailed{base::Error(kind, "no")});
    if (kind == ErrorKind::kConflict) life.user_deletes();
    CHECK(life.stage() == (kind == ErrorKind::kConflict ? "finished" : "waiting"));
    CHECK_FALSE(wanted_state(life.record).has_value());
  }
}

TEST_CASE("nothing is bought before the providers were asked") {
  Life life;
  life.on(event::PodSeen{test::seen_at("101")});
  CHECK(life.last.empty());
  CHECK(life.stage() == "admitted");
}

TEST_CASE("an unknown outcome is looked up until a complete listing after the settle time") {
  for (const ErrorKind kind : {ErrorKind::kUnknownOutcome, ErrorKind::kDeadline, ErrorKind::kInternal}) {
    Life life;
    life.to_create();
    life.fail_create(kind);
    CHECK(life.does<action::LookUp>());
    CHECK_FALSE(life.does<action::Create>());
    // Too early: the instance may still turn up.
    life.on(event::InstanceMissing{life.now.steady});
    CHECK_FALSE(life.does<action::Create>());
    life.pass(11s);
    life.on(event::InstanceMissing{life.now.steady - 5s});
    CHECK_FALSE(life.does<action::Create>());
    life.on(event::InstanceMissing{life.now.steady});
    CHECK(life.does<action::Create>());
    CHECK(life.record.attempt == 1);
  }
}

TEST_CASE("an instance that turns up late is adopted") {
  Life life;
  life.to_create();
  life.fail_create(ErrorKind::kUnknownOutcome);
  life.pass(5s);
  life.on(event::InstanceSeen{test::an_instance(InstanceState::kRunning)});
  CHECK(life.stage() == "running");
  CHECK_FALSE(life.does<action::Create>());
}

TEST_CASE("an instance that turns up unfinished is carried on with under the same tag") {
  Life life;
  life.to_create();
  life.fail_create(ErrorKind::kUnknownOutcome);
  life.on(event::InstanceSeen{test::an_instance(InstanceState::kPending)});
  CHECK(life.stage() == "booting");
  CHECK(life.does<action::Create>());
  CHECK(life.record.attempt == 1);
  // One that was answered carries on by itself.
  Life answered;
  answered.to_create();
  answered.on(event::Created{test::an_instance(InstanceState::kPending)});
  CHECK(answered.stage() == "booting");
  CHECK_FALSE(answered.does<action::Create>());
}

TEST_CASE("after a sold out offer the next one is chosen") {
  Life life;
  life.to_create();
  life.fail_create(ErrorKind::kNoCapacity);
  CHECK(life.does<action::Choose>());
  CHECK(life.record.tried == std::vector{base::OfferId("cheap")});
}

TEST_CASE("a provider that is away is tried again with the same purchase, then another one is chosen") {
  Life life;
  life.to_create();
  life.fail_create(ErrorKind::kUnavailable);
  CHECK(life.stage() == "creating");
  life.pass(2s);
  life.on(event::Tick{});
  CHECK(life.does<action::Create>());
  life.fail_create(ErrorKind::kUnavailable);
  life.pass(3s);
  life.on(event::Tick{});
  life.fail_create(ErrorKind::kUnavailable);
  CHECK(life.does<action::Choose>());
}

TEST_CASE("retry-after is obeyed") {
  Life life;
  life.to_create();
  base::Error error(ErrorKind::kRateLimited, "slow down");
  error.retry_after = 25s;
  life.on(event::CreateFailed{error});
  life.pass(24s);
  life.on(event::Tick{});
  CHECK_FALSE(life.does<action::Create>());
  life.pass(2s);
  life.on(event::Tick{});
  CHECK(life.does<action::Create>());
}

TEST_CASE("a pod that nobody can run stays Pending until the hold is over, with one event") {
  Life life;
  life.join();
  life.on(event::Refused{"Pod was rejected: spec.hostNetwork", life.now.steady + 60s});
  CHECK(life.stage() == "waiting");
  CHECK(life.told() == "UnsupportedPodSpec");
  life.pass(59s);
  life.on(event::Tick{});
  CHECK(life.stage() == "waiting");
  CHECK_FALSE(life.does<action::Tell>());
  life.pass(1s);
  life.on(event::Tick{});
  CHECK(life.stage() == "finished");
  CHECK(life.record.outcome->phase == model::PodPhase::kFailed);
  CHECK(life.record.outcome->reason == "UnsupportedPodSpec");
}

TEST_CASE("a refusal that is too long for an event is told in short, and stands whole in the status") {
  Life life;
  life.join();
  const std::string message = "Pod was rejected: " + std::string(3000, 'x');
  life.on(event::Refused{message, life.now.steady + 60s, model::WaitReason::kInvalidImage});
  CHECK(life.told() == "InvalidImageName");
  REQUIRE(life.did<action::Tell>() != nullptr);
  CHECK(life.did<action::Tell>()->message.size() == 1024);
  CHECK_THAT(life.did<action::Tell>()->message, Catch::EndsWith("(the pod's status has all of it)"));
  life.pass(60s);
  life.on(event::Tick{});
  CHECK(life.record.outcome->reason == "InvalidImageName");
  CHECK(life.record.outcome->message == message);
}

TEST_CASE("a pod that a provider refuses looks for another one, and is refused when there is none") {
  Life life;
  life.to_create();
  life.fail_create(ErrorKind::kInvalid);
  CHECK(life.does<action::Choose>());
  CHECK(life.record.tried.size() == 1);
  life.on(event::Refused{"m", life.now.steady + 60s});
  CHECK(life.stage() == "waiting");
}

TEST_CASE("deletion: terminate until not found, then the status, then the entry, then the object") {
  Life life;
  life.to_running();
  life.user_deletes(30s);
  REQUIRE(life.did<action::Terminate>() != nullptr);
  CHECK(life.did<action::Terminate>()->grace == 30s);
  life.on(event::TerminateAccepted{});
  CHECK(life.does<action::Confirm>());
  CHECK_FALSE(life.does<action::DeletePod>());
  life.on(event::InstanceGone{});
  CHECK(life.stage() == "finished");
  CHECK_FALSE(life.does<action::CloseEntry>());
  life.publish();
  CHECK(life.does<action::CloseEntry>());
  CHECK_FALSE(life.does<action::DeletePod>());
  life.on(event::EntryClosed{});
  CHECK(life.does<action::DeletePod>());
  life.on(event::PodDeleteAccepted{});
  life.on(event::PodGone{});
  CHECK(life.does<action::Forget>());
}

TEST_CASE("only a pod that has ended is discarded, and only once") {
  Life life;
  life.to_running();
  life.on(event::Discarded{});
  CHECK(life.stage() == "running");
  life.user_deletes(30s);
  life.on(event::InstanceGone{});
  life.publish();
  CHECK(life.does<action::CloseEntry>());
  life.on(event::Discarded{});
  CHECK_FALSE(life.does<action::CloseEntry>());
}

TEST_CASE("terminate is repeated until the provider answers") {
  Life life;
  life.to_running();
  life.user_deletes();
  life.on(event::TerminateFailed{base::Error(ErrorKind::kUnavailable, "503")});
  CHECK(life.stage() == "stopping");
  life.pass(1s);
  life.on(event::Tick{});
  CHECK(life.does<action::Terminate>());
  life.on(event::TerminateAccepted{});
  // Accepted is not gone: after the grace period and half a minute it is asked for again.
  life.pass(61s);
  life.on(event::Tick{});
  CHECK(life.does<action::Terminate>());
}

TEST_CASE("a shorter grace is passed on") {
  Life life;
  life.to_running();
  life.user_deletes(60s);
  life.on(event::TerminateAccepted{});
  life.pass(10s);
  life.user_deletes(5s);
  REQUIRE(life.did<action::Terminate>() != nullptr);
  CHECK(life.did<action::Terminate>()->grace == 5s);
}

TEST_CASE("deleted while the create is under way: what comes of it is ended") {
  Life life;
  life.to_create();
  life.user_deletes();
  CHECK(life.stage() == "creating");
  life.on(event::Created{test::an_instance(InstanceState::kPending)});
  CHECK(life.stage() == "stopping");
  CHECK(life.does<action::Terminate>());
}

TEST_CASE("deleted with the intent under way: nothing is bought") {
  Life life;
  life.join();
  life.choose();
  life.user_deletes();
  life.on(event::IntentWritten{});
  CHECK_FALSE(life.does<action::Create>());
  CHECK(life.stage() == "finished");
}

TEST_CASE("deleted with an unknown outcome: it is looked for before the pod goes") {
  Life life;
  life.to_create();
  life.fail_create(ErrorKind::kUnknownOutcome);
  life.user_deletes();
  CHECK(life.stage() == "creating");
  life.on(event::InstanceSeen{test::an_instance(InstanceState::kPending)});
  CHECK(life.stage() == "stopping");
}

TEST_CASE("a force-deleted pod's instance is ended at once and nothing is written") {
  Life life;
  life.to_running();
  life.on(event::PodGone{});
  REQUIRE(life.did<action::Terminate>() != nullptr);
  CHECK(life.did<action::Terminate>()->grace == 0s);
  life.on(event::TerminateAccepted{});
  life.on(event::InstanceGone{});
  CHECK(life.does<action::Forget>());
  CHECK_FALSE(life.does<action::DeletePod>());
}

TEST_CASE("absence counts only twice, in complete fresh listings, and with a get") {
  Life life;
  life.to_running();
  life.pass(1s);
  life.on(event::InstanceMissing{life.now.steady - 5s});
  life.on(event::InstanceMissing{life.now.steady - 5s});
  CHECK(life.record.missing == 0);
  life.on(event::InstanceMissing{life.now.steady});
  CHECK(life.last.empty());
  life.on(event::InstanceGone{});
  CHECK(life.stage() == "running");
  life.pass(1s);
  life.on(event::InstanceMissing{life.now.steady});
  CHECK(life.does<action::Confirm>());
  CHECK(life.stage() == "running");
  SECTION("the get agrees") {
    life.on(event::InstanceGone{});
    CHECK(life.stage() == "finished");
    CHECK(life.record.outcome->phase == model::PodPhase::kFailed);
    CHECK(life.record.outcome->reason == "InstanceLost");
    CHECK(life.record.outcome->disruption == "DeletionByProvider");
  }
  SECTION("the get still finds it") {
    life.on(event::InstanceSeen{test::an_instance(InstanceState::kRunning)});
    CHECK(life.stage() == "running");
    CHECK(life.record.missing == 0);
  }
}

TEST_CASE("an instance that vanishes before it ran leads to the next offer, three times, then Failed") {
  Life life;
  life.join();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    life.choose(attempt);
    life.on(event::IntentWritten{});
    life.on(event::Created{test::an_instance(InstanceState::kPending, attempt)});
    REQUIRE(life.stage() == "booting");
    life.pass(1s);
    life.on(event::InstanceMissing{life.now.steady});
    life.on(event::InstanceMissing{life.now.steady});
    life.on(event::InstanceGone{});
    if (attempt < 3) {
      CHECK(life.stage() == "choosing");
    } else {
      CHECK(life.stage() == "finished");
      CHECK(life.record.outcome->reason == "InstanceLost");
    }
  }
}

TEST_CASE("a cloud that leaves everything out of its listings is not asked for each instance after each of them") {
  Life life;
  life.to_running();
  int asked = 0;
  for (int second = 0; second < 600; ++second) {
    life.pass(1s);
    life.on(event::InstanceMissing{life.now.steady});
    if (!life.does<action::Confirm>()) continue;
    ++asked;
    life.on(event::InstanceSeen{test::an_instance(InstanceState::kRunning)});
  }
  CHECK(asked > 10);
  CHECK(asked < 30);
  CHECK(life.stage() == "running");
}

TEST_CASE("an instance that is being ended is asked for less often the longer a listing is wrong about it") {
  Life life;
  life.to_running();
  life.user_deletes(30s);
  life.on(event::TerminateAccepted{});
  std::vector<int> asked_at;
  for (int second = 1; second <= 62; ++second) {
    life.pass(1s);
    life.on(event::InstanceMissing{life.now.steady});
    if (life.does<action::Confirm>()) asked_at.push_back(second);
  }
  CHECK(asked_at == std::vector<int>{1, 2, 4, 8, 16, 32, 62});
}

TEST_CASE("a pod that ran is never bought again") {
  Life life(test::a_pod(), with_state(true, "i-1"));
  life.join();
  CHECK(life.stage() == "running");
  CHECK_FALSE(life.does<action::Choose>());
  CHECK_FALSE(life.does<action::Create>());
  life.pass(1s);
  life.on(event::InstanceMissing{life.now.steady});
  CHECK(life.does<action::Confirm>());
  life.on(event::InstanceGone{});
  CHECK(life.record.outcome->reason == "InstanceLost");
}

TEST_CASE("an intent without an instance waits out creates of a former daemon, then buys with the same tag") {
  Life life(test::a_pod(), with_state(false, ""));
  event::Joined joined;
  joined.provider = test::facts();
  joined.intent_may_land_until = life.now.steady + 30s;
  life.on(joined);
  CHECK(life.does<action::LookUp>());
  life.pass(20s);
  life.on(event::InstanceMissing{life.now.steady});
  CHECK_FALSE(life.does<action::Create>());
  life.pass(11s);
  life.on(event::InstanceMissing{life.now.steady});
  CHECK(life.does<action::Create>());
  CHECK(life.record.placement->tag == test::a_placement().tag);
}

TEST_CASE("adoption") {
  SECTION("a running instance goes on") {
    Life life(test::a_pod(), with_state(true, "i-1"));
    life.join(test::an_instance(InstanceState::kRunning));
    CHECK(life.stage() == "running");
    CHECK_FALSE(life.does<action::Tell>());
  }
  SECTION("an unfinished one is carried on with") {
    Life life(test::a_pod(), with_state(false, ""));
    life.join(test::an_instance(InstanceState::kPending));
    CHECK(life.stage() == "booting");
    CHECK(life.does<action::Create>());
  }
  SECTION("one that ran and is unfinished again was lost, and is never carried on") {
    Life life(test::a_pod(), with_state(true, "i-1"));
    life.join(test::an_instance(InstanceState::kPending));
    CHECK(life.stage() == "stopping");
    CHECK_FALSE(life.does<action::Create>());
    life.on(event::TerminateAccepted{});
    life.on(event::InstanceGone{});
    CHECK(life.record.outcome->phase == model::PodPhase::kFailed);
    CHECK(life.record.outcome->reason == "InstanceLost");
  }
  SECTION("one that ran and of which little is known now keeps its pod Running") {
    for (const InstanceState state : {InstanceState::kTerminating, InstanceState::kUnknown}) {
      Life life(test::a_pod(), with_state(true, "i-1"));
      life.join(test::an_instance(state));
      CHECK(life.stage() == "running");
    }
  }
  SECTION("one of a pod that is being deleted is ended") {
    model::ObservedPod observed = with_state(true, "i-1");
    observed.deletion_timestamp = base::WallTime{};
    Life life(test::a_pod(), observed);
    life.join(test::an_instance(InstanceState::kRunning));
    CHECK(life.stage() == "stopping");
  }
  SECTION("one of a pod that has ended is kept if it is stopped, and ended if not") {
    model::ObservedPod observed = with_state(true, "i-1");
    observed.status.phase = model::PodPhase::kSucceeded;
    Life stopped(test::a_pod(), observed);
    stopped.join(test::an_instance(InstanceState::kExited));
    CHECK(stopped.stage() == "finished");
    CHECK(std::get<model::Finished>(stopped.record.stage).kept.has_value());
    Life running(test::a_pod(), observed);
    running.join(test::an_instance(InstanceState::kRunning));
    CHECK(running.stage() == "stopping");
    CHECK(running.record.outcome->phase == model::PodPhase::kSucceeded);
  }
  SECTION("one whose annotation was lost is found by its tag") {
    Life life;
    life.join(test::an_instance(InstanceState::kRunning));
    CHECK(life.stage() == "running");
    CHECK(life.record.placement->tag == test::a_placement().tag);
  }
}

TEST_CASE("our annotation in a version that we do not know: neither buy nor terminate, and say so") {
  model::ObservedPod observed = test::seen_at();
  observed.state.kind = model::StateAnnotation::Kind::kUnreadable;
  observed.state.problem = "version 7";
  Life life(test::a_pod(), observed);
  life.join(test::an_instance(InstanceState::kRunning));
  CHECK(life.stage() == "waiting");
  CHECK(life.told() == "UnreadableState");
  life.user_deletes();
  CHECK_FALSE(life.does<action::Terminate>());
  CHECK_FALSE(life.does<action::DeletePod>());
}

TEST_CASE("the provider is not configured any more: neither buy nor terminate, and say so") {
  Life life(test::a_pod(), with_state(true, "i-1"));
  event::Joined joined;
  joined.problem = "its provider old is not configured";
  life.on(joined);
  CHECK(life.stage() == "waiting");
  CHECK(life.told() == "UnreadableState");
  CHECK_FALSE(life.does<action::Choose>());
  life.user_deletes();
  CHECK(life.last.empty());
}

TEST_CASE("a copied manifest is bought for as if our annotation were not there") {
  model::ObservedPod observed = test::seen_at();
  observed.state.kind = model::StateAnnotation::Kind::kForeign;
  Life life(test::a_pod(), observed);
  life.join();
  CHECK(life.does<action::Choose>());
}

TEST_CASE("an instance of a pod that somebody else ended is told to end once, and then waited for") {
  Life life;
  life.to_running();
  model::ObservedPod observed = life.record.observed;
  observed.status.phase = model::PodPhase::kFailed;
  life.on(event::PodSeen{observed});
  REQUIRE(life.does<action::Terminate>());
  life.on(event::TerminateAccepted{});
  CHECK(life.does<action::Confirm>());
  CHECK_FALSE(life.does<action::Terminate>());
}

TEST_CASE("somebody else's terminal phase is respected and the instance given back") {
  Life life;
  life.to_running();
  model::ObservedPod observed = life.record.observed;
  observed.resource_version = "101";
  observed.status.phase = model::PodPhase::kSucceeded;
  life.on(event::PodSeen{observed});
  CHECK(life.stage() == "stopping");
  life.on(event::TerminateAccepted{});
  life.on(event::InstanceGone{});
  CHECK(life.stage() == "finished");
  CHECK(life.record.outcome->phase == model::PodPhase::kSucceeded);
}

TEST_CASE("restartPolicy Never: the exit code decides, and a kept instance goes with the pod") {
  // A user deletes it, or newer ones of its owner show as much.
  const bool discarded = GENERATE(false, true);
  for (const int code : {0, 3}) {
    model::PodSpec spec = test::a_pod();
    spec.restart_policy = model::RestartPolicy::kNever;
    Life life(spec);
    life.to_running();
    life.on(event::InstanceSeen{test::exited(code, life.now.wall)});
    CHECK(life.stage() == "finished");
    CHECK(life.record.outcome->phase == (code == 0 ? model::PodPhase::kSucceeded : model::PodPhase::kFailed));
    CHECK(life.does<action::NoteFailure>() == (code != 0));
    if (discarded) {
      life.publish();
      life.on(event::Discarded{});
    } else {
      life.user_deletes();
    }
    CHECK(life.stage() == "stopping");
    life.on(event::InstanceGone{});
    if (!discarded) life.publish();
    CHECK(life.does<action::CloseEntry>());
  }
}

TEST_CASE("a kept instance that listings leave out is let go of only when a get agrees") {
  model::PodSpec spec = test::a_pod();
  spec.restart_policy = model::RestartPolicy::kNever;
  Life life(spec);
  life.to_running();
  life.on(event::InstanceSeen{test::exited(0, life.now.wall)});
  life.pass(1s);
  life.on(event::InstanceMissing{life.now.steady});
  CHECK(life.last.empty());
  life.on(event::InstanceMissing{life.now.steady});
  REQUIRE(life.did<action::Confirm>() != nullptr);
  CHECK(life.did<action::Confirm>()->ref == test::an_instance(InstanceState::kExited).ref);
  SECTION("the get agrees: the pod goes without a word to the provider") {
    life.on(event::InstanceGone{});
    life.user_deletes();
    CHECK(life.stage() == "finished");
  }
  SECTION("the get still finds it: it is ended before the pod goes") {
    life.on(event::InstanceSeen{test::exited(0, life.now.wall)});
    CHECK(life.record.missing == 0);
    life.user_deletes();
    CHECK(life.stage() == "stopping");
    CHECK(life.does<action::Terminate>());
  }
}

TEST_CASE("an unknown exit code is never Succeeded") {
  model::PodSpec spec = test::a_pod();
  spec.restart_policy = model::RestartPolicy::kNever;
  Life life(spec);
  life.to_running();
  life.on(event::InstanceSeen{test::an_instance(InstanceState::kExited)});
  CHECK(life.record.outcome->phase == model::PodPhase::kFailed);
}

TEST_CASE("a provider that cannot keep a stopped instance ends it after its containers ended") {
  model::PodSpec spec = test::a_pod();
  spec.restart_policy = model::RestartPolicy::kNever;
  Life life(spec);
  life.to_running();
  life.record.provider.keeps_stopped = false;
  life.on(event::InstanceSeen{test::exited(0, life.now.wall)});
  CHECK(life.stage() == "stopping");
  CHECK(life.record.outcome->phase == model::PodPhase::kSucceeded);
}

TEST_CASE("restartPolicy Always: 10 s, doubled to 5 min, forgotten after a long run") {
  Life life;
  life.to_running();
  const base::Duration delays[] = {10s, 20s, 40s, 80s, 160s, 300s, 300s};
  int restarts = 0;
  for (const base::Duration delay : delays) {
    life.pass(1s);
    life.on(event::InstanceSeen{test::exited(1, life.now.wall)});
    CHECK(life.stage() == "running");
    CHECK_FALSE(life.does<action::StartContainer>());
    life.pass(delay - 1ms);
    life.on(event::Tick{});
    CHECK_FALSE(life.does<action::StartContainer>());
    life.pass(1ms);
    life.on(event::Tick{});
    REQUIRE(life.does<action::StartContainer>());
    life.on(event::ContainerStarted{"main"});
    CHECK(life.record.containers[0].restarts == ++restarts);
    life.on(event::InstanceSeen{test::an_instance(InstanceState::kRunning)});
  }
  life.pass(11min);
  life.on(event::InstanceSeen{test::exited(1, life.now.wall, 11min)});
  life.pass(10s);
  life.on(event::Tick{});
  CHECK(life.does<action::StartContainer>());
}

TEST_CASE("a back-off counts from the end of the run, but a clock that is wrong shortens none by more than 10 s") {
  Life life;
  life.to_running();
  const auto [late, left] =
      GENERATE(table<base::Duration, base::Duration>({{-1h, 10s}, {0s, 10s}, {4s, 6s}, {10s, 0s}, {1h, 0s}}));
  life.pass(5s);
  life.on(event::InstanceSeen{test::exited(1, life.now.wall - std::chrono::duration_cast<std::chrono::seconds>(late))});
  CHECK(life.record.containers[0].restart_at == life.now.steady + left);
}

TEST_CASE("a restart is counted once, whoever tells of it") {
  Life life;
  life.to_running();
  life.pass(5s);
  life.on(event::InstanceSeen{test::exited(1, life.now.wall)});
  life.pass(10s);
  life.on(event::Tick{});
  REQUIRE(life.does<action::StartContainer>());
  SECTION("a listing, before the answer") {
    model::Instance again = test::an_instance(InstanceState::kRunning);
    again.containers[0].started_at = life.now.wall;
    life.on(event::InstanceSeen{again});
    CHECK(life.record.containers[0].restarts == 1);
    life.on(event::ContainerStarted{"main"});
  }
  SECTION("the next exit, after a lost answer") {
    life.pass(5s);
    const model::Instance crash = test::exited(1, life.now.wall);
    life.on(event::InstanceSeen{crash});
    life.on(event::InstanceSeen{crash});
    CHECK(life.record.containers[0].restart_at.has_value());
  }
  SECTION("a listing from before the exit tells of none") {
    model::Instance old = test::an_instance(InstanceState::kRunning);
    old.containers[0].started_at = life.now.wall - 30s;
    life.on(event::InstanceSeen{old});
    CHECK(life.record.containers[0].restarts == 0);
    return;
  }
  CHECK(life.record.containers[0].restarts == 1);
}

TEST_CASE("a restart whose answer died with the daemon is counted by the next one") {
  const base::WallTime crashed = Life().now.wall - 20s;
  model::ObservedPod observed = with_state(true, "i-1");
  observed.status.phase = model::PodPhase::kRunning;
  model::ContainerStatus& told = observed.status.containers.emplace_back();
  told.name = "main";
  told.restart_count = 4;
  told.state.kind = model::ContainerStatusState::Kind::kWaiting;
  told.last_state.kind = model::ContainerStatusState::Kind::kTerminated;
  told.last_state.finished_at = crashed;
  model::Instance instance = test::an_instance(InstanceState::kRunning);
  SECTION("it was restarted") {
    instance.containers[0].started_at = crashed + 10s;
    Life life(test::a_pod(), observed);
    life.join(instance);
    CHECK(life.record.containers[0].restarts == 5);
    life.on(event::InstanceSeen{instance});
    CHECK(life.record.containers[0].restarts == 5);
  }
  SECTION("it was restarted and has ended again") {
    instance = test::exited(1, crashed + 15s, 5s);
    Life life(test::a_pod(), observed);
    life.join(instance);
    CHECK(life.record.containers[0].restarts == 5);
  }
  SECTION("it is still the old end") {
    instance = test::exited(1, crashed + 300ms, 1s);
    Life life(test::a_pod(), observed);
    life.join(instance);
    CHECK(life.record.containers[0].restarts == 4);
  }
  SECTION("it was counted before") {
    observed.status.containers[0].state.kind = model::ContainerStatusState::Kind::kRunning;
    instance.containers[0].started_at = crashed + 10s;
    Life life(test::a_pod(), observed);
    life.join(instance);
    CHECK(life.record.containers[0].restarts == 4);
  }
}

TEST_CASE("a listing from before our restart is not a new crash") {
  Life life;
  life.to_running();
  const model::Instance crash = test::exited(1, life.now.wall);
  life.on(event::InstanceSeen{crash});
  life.pass(10s);
  life.on(event::Tick{});
  life.on(event::ContainerStarted{"main"});
  life.on(event::InstanceSeen{crash});
  CHECK(life.record.containers[0].claim.state == model::ContainerState::kRunning);
  CHECK_FALSE(life.record.containers[0].restart_at.has_value());
}

TEST_CASE("an image that cannot be pulled: the instance is released, and it is tried again later") {
  Life life;
  life.to_create();
  life.on(event::Created{test::an_instance(InstanceState::kPending)});
  model::Instance failed = test::an_instance(InstanceState::kFailed);
  failed.image_error = true;
  failed.message = "manifest unknown";
  life.on(event::InstanceSeen{failed});
  CHECK(life.stage() == "stopping");
  life.on(event::TerminateAccepted{});
  life.on(event::InstanceGone{});
  REQUIRE(life.stage() == "waiting");
  CHECK(std::get<model::Waiting>(life.record.stage).why == model::WaitReason::kImagePull);
  CHECK(std::get<model::Waiting>(life.record.stage).message == "manifest unknown");
  life.pass(10s);
  life.on(event::Tick{});
  CHECK(life.does<action::Choose>());
}

TEST_CASE("an instance that does not run within the start deadline is given back") {
  Life life;
  life.to_create();
  life.on(event::Created{test::an_instance(InstanceState::kPending)});
  life.pass(20min);
  life.on(event::Tick{});
  CHECK(life.stage() == "stopping");
  life.on(event::TerminateAccepted{});
  life.on(event::InstanceGone{});
  CHECK(life.stage() == "choosing");
}

TEST_CASE("an instance over the price cap is ended, and another offer chosen") {
  Life life;
  life.join();
  life.on(event::Chosen{test::a_placement(), test::facts(), base::Money::from_micros(2'000'000)});
  life.on(event::IntentWritten{});
  model::Instance dear = test::an_instance(InstanceState::kRunning);
  dear.price_per_hour = base::Money::from_micros(2'000'001);
  life.on(event::Created{dear});
  CHECK(life.stage() == "stopping");
  CHECK_FALSE(life.record.ran);
  life.on(event::TerminateAccepted{});
  life.on(event::InstanceGone{});
  CHECK(life.stage() == "choosing");
}

TEST_CASE("the price cap holds for what a former daemon bought, until it has run") {
  for (const bool ran : {false, true}) {
    Life life(test::a_pod(), with_state(ran, "i-1"));
    event::Joined joined;
    joined.instance = test::an_instance(InstanceState::kRunning);
    joined.instance->price_per_hour = base::Money::from_micros(3);
    joined.provider = test::facts();
    joined.price_cap = base::Money::from_micros(2);
    life.on(joined);
    CHECK(life.stage() == (ran ? "running" : "stopping"));
  }
}

TEST_CASE("an old echo of the watch does not undo what we wrote") {
  Life life;
  life.to_running();
  event::StatusWritten written;
  written.resource_version = "105";
  written.status.phase = model::PodPhase::kRunning;
  life.on(written);
  life.on(event::PodSeen{test::seen_at("103")});
  CHECK(life.record.observed.status.phase == model::PodPhase::kRunning);
}

TEST_CASE("no event crashes any stage or buys for a pod that is gone") {
  // Every event in every stage, in a fixed but mixed order; the invariants of money hold throughout.
  std::uint64_t seed = 7;
  const auto random = [&](std::uint64_t n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % n;
  };
  for (int round = 0; round < 3000; ++round) {
    Life life;
    bool intent = false;
    bool gone_from_api = false;
    for (int i = 0; i < 40; ++i) {
      life.pass(std::chrono::milliseconds(random(20000)));
      const base::Error error(static_cast<ErrorKind>(random(16)), "x");
      switch (random(17)) {
        case 0: life.join(); break;
        case 1:
          if (life.stage() == "choosing") intent = false;
          life.choose(life.record.attempt + 1);
          break;
        case 2:
          life.on(event::IntentWritten{});
          intent = true;
          break;
        case 3: life.on(event::IntentFailed{error}); break;
        case 4: life.on(event::Created{test::an_instance(static_cast<InstanceState>(random(6)))}); break;
        case 5: life.on(event::CreateFailed{error}); break;
        case 6: life.on(event::InstanceSeen{test::an_instance(static_cast<InstanceState>(random(6)))}); break;
        case 7: life.on(event::InstanceMissing{life.now.steady}); break;
        case 8: life.on(event::InstanceGone{}); break;
        case 9: life.on(event::TerminateAccepted{}); break;
        case 10: life.on(event::TerminateFailed{error}); break;
        case 11: life.user_deletes(); break;
        case 12: life.publish(); break;
        case 13: life.on(event::EntryClosed{}); break;
        case 14:
          life.on(event::PodGone{});
          gone_from_api = true;
          break;
        case 15: life.on(event::Held{model::WaitReason::kNoCapacity, "m", life.now.steady + 15s}); break;
        default: life.on(event::Tick{}); break;
      }
      if (life.does<action::Create>()) {
        CHECK(intent);
        CHECK_FALSE(gone_from_api);
        CHECK_FALSE(life.record.deleting);
        CHECK_FALSE(life.record.ran);
      }
      if (life.does<action::DeletePod>()) CHECK(std::holds_alternative<model::Finished>(life.record.stage));
      if (life.does<action::Forget>()) break;
    }
  }
}
