// Asks the providers what containers use, as long as somebody wants to know.
//
// Owned by the daemon; reactor thread only; the single writer of the usage book. At rest it asks nothing. Whoever asks
// first waits for one round; from then on there is one every ten seconds, until five minutes after the last question.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/control/pod_store.hpp"
#include "vk-provider/control/provider_set.hpp"
#include "vk-provider/core/usage_book.hpp"

namespace spillway::control {

class SampleController {
 public:
  /// All outlive it. Providers that cannot measure are left out.
  SampleController(const ProviderSet& providers, const PodStore& pods, async::Timers& timers);
  SampleController(const SampleController&) = delete;
  SampleController& operator=(const SampleController&) = delete;

  /// One loop for each provider; each runs until it is cancelled.
  std::vector<async::Loop> loops();

  /// Somebody wants to know. Returns when the book holds the last rounds of all providers, or at the deadline.
  boost::asio::awaitable<void> refresh(base::Deadline deadline);

  const core::UsageBook& usage() const { return usage_; }
  /// True if the last round of some provider came to nothing.
  bool failing() const;

 private:
  struct Source {
    provider::ThrottledProvider* provider = nullptr;
    std::unique_ptr<async::Waiter> waiter;
    std::optional<base::TimePoint> ended;  // of the last round
    bool failing = false;
  };

  async::Loop run(Source& source);
  boost::asio::awaitable<void> measure(Source& source);
  void take(const base::ProviderName& provider, const std::vector<provider::Sample>& samples);
  bool all_ended_since(base::TimePoint when) const;

  const PodStore& pods_;
  async::Timers& timers_;
  core::UsageBook usage_;
  std::vector<std::unique_ptr<Source>> sources_;
  base::TimePoint wanted_until_{};
  std::set<async::Waiter*> askers_;
};

}  // namespace spillway::control
