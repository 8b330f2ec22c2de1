// One pod, a clock, and core::advance: what a test of the state machine needs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "test/support/pod_builder.hpp"
#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::test {

using namespace std::chrono_literals;
using namespace spillway::core;
using model::InstanceState;

/// One pod and a clock; every step says what came of it.
class Life {
 public:
  explicit Life(model::PodSpec spec = a_pod(), model::ObservedPod observed = seen_at()) {
    record = admit(share(std::move(spec)), std::move(observed), now);
  }

  Actions on(Event event) {
    last = advance(record, event, now, policy);
    return last;
  }
  void pass(base::Duration d) {
    now.steady += d;
    now.wall += std::chrono::duration_cast<std::chrono::microseconds>(d);
  }
  std::string stage() const { return std::string(model::stage_name(record.stage)); }
  template <class T>
  const T* did() const {
    for (const Action& a : last) {
      if (const T* found = std::get_if<T>(&a)) return found;
    }
    return nullptr;
  }
  template <class T>
  bool does() const {
    return did<T>() != nullptr;
  }
  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const Action& a : last) {
      if (const T* one = std::get_if<T>(&a)) found.push_back(*one);
    }
    return found;
  }
  std::string told() const {
    const auto* tell = did<action::Tell>();
    return tell == nullptr ? "" : tell->reason;
  }

  void join(std::optional<model::Instance> instance = std::nullopt) {
    event::Joined joined;
    joined.instance = std::move(instance);
    joined.provider = facts();
    joined.intent_may_land_until = now.steady;
    on(joined);
  }
  void choose(int attempt = 1) { on(event::Chosen{a_placement(attempt), facts(), std::nullopt}); }
  void to_create() {
    join();
    choose();
    on(event::IntentWritten{});
  }
  void to_running() {
    to_create();
    on(event::Created{an_instance(InstanceState::kRunning)});
    REQUIRE(stage() == "running");
  }
  void fail_create(base::ErrorKind kind) { on(event::CreateFailed{base::Error(kind, "no")}); }
  void publish() {
    event::StatusWritten written;
    written.resource_version = "999";
    if (record.outcome) written.status.phase = record.outcome->phase;
    on(written);
  }
  void user_deletes(std::chrono::seconds grace = 30s) {
    model::ObservedPod observed = record.observed;
    observed.deletion_timestamp = now.wall + grace;
    observed.deletion_grace = grace;
    on(event::PodSeen{observed});
  }

  base::Now now{base::TimePoint(1h), base::WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 2))};
  PodPolicy policy;
  model::PodRecord record;
  Actions last;
};

inline model::ObservedPod with_state(bool ran, const std::string& instance) {
  model::ObservedPod observed = seen_at();
  model::StateRecord record;
  record.placement = a_placement();
  record.ran = ran;
  record.instance = base::InstanceId(instance);
  observed.state.kind = model::StateAnnotation::Kind::kRecord;
  observed.state.record = record;
  return observed;
}

}  // namespace spillway::test
