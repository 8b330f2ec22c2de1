// One run of a case of the conformance suite: short names for what every case does.
//
// Owned by the case, over a harness that outlives it. Waits through the harness's timers only. Private to
// provider_conformance.cpp.
#pragma once

#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "test/support/provider_conformance.hpp"

namespace spillway::test {

class Probe {
 public:
  static constexpr std::string_view kPrefix = "spw-conf-";

  explicit Probe(ProviderHarness& harness) : harness_(harness), provider_(harness.provider()) {}

  provider::Provider& provider() { return provider_; }
  bool can(model::Capability c) const { return provider_.info().capabilities.has(c); }
  base::Deadline soon() const { return harness_.timers().now() + harness_.patience(); }
  boost::asio::awaitable<void> pause() { co_await harness_.timers().sleep_for(kPause); }

  async::Task<model::Placement> place(int attempt) {
    const auto offers = co_await provider_.list_offers(soon());
    if (!offers) co_return base::fail(offers.error());
    model::Placement placement;
    placement.pod = base::PodUid("6f1c9d1e-0b5a-4c47-9a57-2f1f6f6e0a01");
    placement.provider = provider_.info().name;
    placement.tag = base::InstanceTag(std::string(kPrefix) + std::to_string(attempt));
    placement.attempt = attempt;
    const model::Offer* best = nullptr;
    for (const model::Offer& o : *offers) {
      if (!o.available || !o.price_per_hour) continue;
      if (best == nullptr || *o.price_per_hour < *best->price_per_hour) best = &o;
    }
    if (best == nullptr) co_return base::fail(base::ErrorKind::kNoCapacity, "nothing is for sale");
    placement.offer = best->id;
    placement.region = best->region;
    placement.gpu_count = best->gpu_count;
    placement.capacity_type = best->capacity_type;
    placement.price_per_hour = *best->price_per_hour;
    co_return placement;
  }

  async::Task<model::Instance> buy(int attempt, model::ResolvedPod pod) {
    auto placement = co_await place(attempt);
    if (!placement) co_return base::fail(placement.error());
    co_return co_await provider_.create(std::move(*placement), std::move(pod), soon());
  }

  /// Asks until `done` holds, or the answer is an error, or patience ends.
  async::Task<model::Instance> get_until(model::InstanceRef ref, std::function<bool(const model::Instance&)> done) {
    const base::Deadline end = soon();
    for (;;) {
      auto instance = co_await provider_.get(ref, end);
      if (!instance || done(*instance) || harness_.timers().now() >= end) co_return instance;
      co_await pause();
    }
  }
  async::Task<model::Instance> get_running(model::InstanceRef ref) { return get_until(std::move(ref), &is_running); }
  async::Task<model::Instance> get_exited(model::InstanceRef ref) { return get_until(std::move(ref), &is_exited); }

  /// Terminates until the provider says that it is gone.
  boost::asio::awaitable<bool> end(model::InstanceRef ref) {
    const base::Deadline end = soon();
    while (harness_.timers().now() < end) {
      const auto asked = co_await provider_.terminate(ref, std::chrono::seconds(0), end);
      if (!asked && asked.error().kind != base::ErrorKind::kNotFound) co_return false;
      const auto left = co_await provider_.get(ref, end);
      if (!left) co_return left.error().kind == base::ErrorKind::kNotFound;
      co_await pause();
    }
    co_return false;
  }

  async::Task<std::vector<model::Instance>> owned(std::string prefix) {
    auto list = co_await provider_.list_owned(std::move(prefix), soon());
    if (!list) co_return base::fail(list.error());
    CHECK(list->complete);
    co_return std::move(list->instances);
  }

  static bool is_running(const model::Instance& i) {
    return i.state == model::InstanceState::kRunning && i.containers.size() == 1 &&
           i.containers[0].state == model::ContainerState::kRunning;
  }
  static bool is_exited(const model::Instance& i) {
    return i.containers.size() == 1 && i.containers[0].state == model::ContainerState::kExited;
  }

 private:
  static constexpr base::Duration kPause = std::chrono::milliseconds(20);

  ProviderHarness& harness_;
  provider::Provider& provider_;
};

}  // namespace spillway::test
