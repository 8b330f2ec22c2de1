// Asks one provider for ever: what do you hold of ours, and what do you sell?
//
// One per provider, owned by the daemon; reactor thread only. One listing serves all pods of the provider, never a poll
// per pod; it is more frequent while something is on its way. Listings go to pod_controller and to the sweep.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/control/decision_log.hpp"
#include "vk-provider/core/offer_book.hpp"
#include "vk-provider/provider/throttled_provider.hpp"

namespace spillway::control {

class ProviderController {
 public:
  using OnListing = std::function<void(const base::ProviderName&, const provider::OwnedList&, base::TimePoint began)>;

  ProviderController(provider::ThrottledProvider& provider, std::string tag_prefix, core::OfferBook& offers,
                     async::Timers& timers, base::Random& random, base::Metrics& metrics, OnListing on_listing,
                     std::function<bool(const base::ProviderName&)> busy);

  /// Two loops; each runs until it is cancelled.
  async::Loop run_listings();
  async::Loop run_offers();

  /// List soon: somebody waits for an answer.
  void ask();
  /// Something of this provider may be on its way now: list as often as that needs.
  void stir();

  /// From now on offers are written there, too. It outlives this.
  void record_to(DecisionLog& log) { log_ = &log; }

  /// False while the last listing failed or was incomplete.
  bool reachable() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }
  const base::ProviderName& name() const { return provider_.info().name; }

 private:
  boost::asio::awaitable<std::string> list();
  boost::asio::awaitable<void> rest();
  void show_quarantined();

  provider::ThrottledProvider& provider_;
  std::string tag_prefix_;
  core::OfferBook& offers_;
  DecisionLog* log_ = nullptr;
  async::Timers& timers_;
  base::Random& random_;
  OnListing on_listing_;
  std::function<bool(const base::ProviderName&)> busy_;
  std::unique_ptr<async::Waiter> waiter_;
  std::string problem_;
  bool asked_ = false;
  base::Gauge& owned_;
  base::Gauge& offer_count_;
  std::array<base::Gauge*, static_cast<size_t>(core::Flaw::kCount)> quarantined_{};
  std::map<base::OfferId, core::Flaw> told_;  // flawed offers that stand in the log
};

}  // namespace spillway::control
