#include "vk-provider/api/container_access.hpp"

#include <catch2/catch.hpp>

#include "test/support/pod_builder.hpp"
#include "vk-provider/control/pod_store.hpp"
#include "vk-provider/core/container_fsm.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::api;

namespace {

const base::Now kNow{base::TimePoint(1h), std::chrono::sys_days(std::chrono::year(2026) / 11 / 29)};

model::PodRecord a_record(model::Stage stage) {
  model::PodRecord record;
  record.spec = test::share(test::a_pod());
  record.containers = core::make_container_records(*record.spec, {});
  record.stage = std::move(stage);
  return record;
}

model::PodRecord running() {
  model::Instance instance = test::an_instance(model::InstanceState::kRunning);
  instance.containers[0].started_at = kNow.wall - 10s;
  model::PodRecord record = a_record(model::Running{instance});
  record.containers[0].claim = instance.containers[0];
  return record;
}

model::PodRecord ended(std::optional<model::InstanceRef> kept) {
  model::Finished finished;
  finished.kept = std::move(kept);
  model::PodRecord record = a_record(finished);
  record.ran = true;
  record.containers[0].claim = test::exited(1, kNow.wall).containers[0];
  record.outcome = model::Outcome();
  return record;
}

const model::InstanceRef kRef(base::ProviderName("cloud"), base::InstanceId("i-1"));

std::string text(const Answer<model::InstanceRef>& answer) {
  return answer ? "found " + answer->id.str() : std::to_string(answer.error().status) + " " + answer.error().text;
}

}  // namespace

TEST_CASE("a pod is found by its names on its node, and by its uid if one is given") {
  control::PodStore store;
  control::PodEntry entry;
  entry.record = running();
  store.insert(base::PodUid(test::kUid), std::move(entry));
  PodName name;
  name.ns = "team-a";
  name.pod = "web-0";
  CHECK(find_pod(store, "burst", name).has_value());
  CHECK(find_pod(store, "other", name).error().text == "pod \"web-0\" does not exist");
  name.uid = test::kUid;
  CHECK(find_pod(store, "burst", name).has_value());
  name.uid = "u-2";
  CHECK(find_pod(store, "burst", name).error().status == 404);
  name.uid.clear();
  name.ns = "team-b";
  CHECK(find_pod(store, "burst", name).error().status == 404);
}

TEST_CASE("of two pods of one name the living one is found") {
  control::PodStore store;
  for (const char* uid : {"u-1", "u-2"}) {
    control::PodEntry entry;
    entry.record = running();
    model::PodSpec spec = test::a_pod();
    spec.key.uid = base::PodUid(uid);
    entry.record.spec = test::share(spec);
    entry.record.api_gone = std::string(uid) == "u-1";
    store.insert(base::PodUid(uid), std::move(entry));
  }
  PodName name;
  name.ns = "team-a";
  name.pod = "web-0";
  REQUIRE(find_pod(store, "burst", name).has_value());
  CHECK((*find_pod(store, "burst", name))->key().uid.str() == "u-2");
}

TEST_CASE("a container that runs has a log, a shell and ports") {
  const model::PodRecord pod = running();
  CHECK(text(find_log(pod, "main", false, kNow)) == "found i-1");
  CHECK(text(find_running(pod, "main", kNow)) == "found i-1");
  CHECK(text(find_ports(pod)) == "found i-1");
  CHECK(text(find_log(pod, "main", true, kNow)) ==
        "400 previous terminated container \"main\" in pod \"web-0\" not found");
  CHECK(text(find_log(pod, "side", false, kNow)) == "404 container \"side\" not found in pod \"web-0\"");
  CHECK(text(find_running(pod, "side", kNow)) == "404 container not found (\"side\")");
}

TEST_CASE("a container that kubectl debug added says that it will not be started") {
  model::PodRecord pod = running();
  pod.observed.debug_containers = "debugger-1,debugger-2";
  const std::string why =
      " in pod \"web-0\" was not started: ephemeral containers are not supported: a debug container cannot be added to "
      "a "
      "rented instance";
  CHECK(text(find_log(pod, "debugger-1", false, kNow)) == "400 container \"debugger-1\"" + why);
  CHECK(text(find_running(pod, "debugger-2", kNow)) == "400 container \"debugger-2\"" + why);
  CHECK(text(find_log(pod, "debugger", false, kNow)) == "404 container \"debugger\" not found in pod \"web-0\"");
}

TEST_CASE("a container that was not started yet has nothing, and says what it waits for") {
  SECTION("nothing is bought") {
    model::Waiting waiting;
    waiting.why = model::WaitReason::kNoCapacity;
    const model::PodRecord pod = a_record(waiting);
    const std::string why = std::string(model::to_string(model::WaitReason::kNoCapacity));
    CHECK(text(find_log(pod, "main", false, kNow)) ==
          "400 container \"main\" in pod \"web-0\" is waiting to start: " + why);
    CHECK(text(find_running(pod, "main", kNow)) ==
          "400 container \"main\" in pod \"web-0\" is waiting to start: " + why);
    CHECK(text(find_ports(pod)) == "400 nothing of pod \"web-0\" is running");
  }
  SECTION("it boots") {
    model::Booting booting;
    booting.instance = test::an_instance(model::InstanceState::kPending);
    model::PodRecord pod = a_record(booting);
    CHECK(text(find_log(pod, "main", false, kNow)) ==
          "400 container \"main\" in pod \"web-0\" is waiting to start: ContainerCreating");
    pod.containers[0].claim.reason = "ErrImagePull";
    CHECK(text(find_log(pod, "main", false, kNow)) ==
          "400 container \"main\" in pod \"web-0\" is waiting to start: image can't be pulled");
  }
}

TEST_CASE("a container that ended keeps its log as long as its instance is kept") {
  CHECK(text(find_log(ended(kRef), "main", false, kNow)) == "found i-1");
  CHECK(text(find_running(ended(kRef), "main", kNow)) == "400 container \"main\" in pod \"web-0\" is not running");
  CHECK(text(find_ports(ended(kRef))) == "400 nothing of pod \"web-0\" is running");
  CHECK(text(find_log(ended({}), "main", false, kNow)) ==
        "400 container \"main\" in pod \"web-0\" is terminated, and its log is gone with its instance");
}

TEST_CASE("a container that waits to be started again shows its last run, and the one before") {
  model::PodRecord pod = running();
  pod.containers[0].claim = test::exited(1, kNow.wall).containers[0];
  pod.containers[0].restart_at = kNow.steady + 10s;
  model::ContainerStatusState last;
  last.kind = model::ContainerStatusState::Kind::kTerminated;
  pod.containers[0].last_state = last;
  CHECK(text(find_log(pod, "main", false, kNow)) == "found i-1");
  CHECK(text(find_log(pod, "main", true, kNow)) == "found i-1");
  CHECK(text(find_running(pod, "main", kNow)) ==
        "400 container \"main\" in pod \"web-0\" is waiting to start: CrashLoopBackOff");
}

TEST_CASE("a pod that is being ended can be looked at until it is gone") {
  model::Stopping stopping;
  stopping.ref = kRef;
  stopping.why = model::StopReason::kDeleted;
  model::PodRecord pod = running();
  pod.stage = stopping;
  CHECK(text(find_log(pod, "main", false, kNow)) == "found i-1");
  CHECK(text(find_running(pod, "main", kNow)) == "found i-1");
  CHECK(text(find_ports(pod)) == "found i-1");
}

TEST_CASE("a pod that is only shown as running says so") {
  model::PodRecord pod = running();
  pod.placeholder = true;
  for (const auto& answer : {find_log(pod, "main", false, kNow), find_running(pod, "main", kNow), find_ports(pod)}) {
    REQUIRE_FALSE(answer.has_value());
    CHECK(answer.error().status == 400);
    CHECK(answer.error().text.find("nothing runs for it") != std::string::npos);
  }
}

TEST_CASE("what a provider cannot do is told apart from what it does not find") {
  using base::Error;
  using base::ErrorKind;
  CHECK(refusal_of(Error(ErrorKind::kUnsupported, "x")).status == 501);
  CHECK(refusal_of(Error(ErrorKind::kNotFound, "x")).status == 404);
  CHECK(refusal_of(Error(ErrorKind::kConflict, "x")).status == 409);
  CHECK(refusal_of(Error(ErrorKind::kInvalid, "x")).status == 400);
  CHECK(refusal_of(Error(ErrorKind::kUnavailable, "x")).status == 503);
  CHECK(refusal_of(Error(ErrorKind::kDeadline, "x")).status == 503);
  CHECK(refusal_of(Error(ErrorKind::kInternal, "words")).text == "words");
}
