#include "vk-provider/control/provider_controller.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {
constexpr base::Duration kListDeadline = std::chrono::seconds(20);
constexpr base::Duration kAskedGap = std::chrono::milliseconds(100);
constexpr base::BackoffPolicy kFirstOffers{std::chrono::seconds(1), std::chrono::seconds(30)};
constexpr double kJitter = 0.1;
}  // namespace

ProviderController::ProviderController(provider::ThrottledProvider& provider, std::string tag_prefix,
                                       core::OfferBook& offers, async::Timers& timers, base::Random& random,
                                       base::Metrics& metrics, OnListing on_listing,
                                       std::function<bool(const base::ProviderName&)> busy)
    : provider_(provider),
      tag_prefix_(std::move(tag_prefix)),
      offers_(offers),
      timers_(timers),
      random_(random),
      on_listing_(std::move(on_listing)),
      busy_(std::move(busy)),
      waiter_(timers.make_waiter()),
      owned_(metrics.gauge("spillway_instances", "Instances that carry our tag, as the provider last listed them.",
                           {{"provider", provider.info().name.str()}})),
      offer_count_(metrics.gauge("spillway_offers", "Offers that can be bought now, as the provider last listed them.",
                                 {{"provider", provider.info().name.str()}})) {
  for (size_t i = 0; i < quarantined_.size(); ++i) {
    quarantined_.at(i) = &metrics.gauge(
        "spillway_offers_quarantined", "Offers that cannot be what they say, and are never bought.",
        {{"provider", provider.info().name.str()}, {"reason", std::string(to_string(static_cast<core::Flaw>(i)))}});
  }
}

void ProviderController::ask() {
  asked_ = true;
  waiter_->wake();
}

void ProviderController::stir() { waiter_->wake(); }

/// Waits for the next listing. What happens meanwhile may bring it forward.
boost::asio::awaitable<void> ProviderController::rest() {
  const provider::ProviderInfo& info = provider_.info();
  const base::TimePoint listed = timers_.now();
  const base::Duration idle = random_.jittered(info.list_idle_every, kJitter);
  for (;;) {
    base::TimePoint due = listed + idle;
    if (problem_.empty() && busy_(info.name)) due = std::min(due, listed + info.list_busy_every);
    // Many may ask at once: one listing serves them all. A provider in trouble is not asked more often for that.
    if (asked_) due = std::min(due, listed + (problem_.empty() ? kAskedGap : info.list_busy_every));
    if (timers_.now() >= due || co_await waiter_->wait_until(due)) break;
  }
  asked_ = false;
}

/// One listing, which is gone before the next rest: it may hold thousands of instances. Returns what was wrong with it.
boost::asio::awaitable<std::string> ProviderController::list() {
  const provider::ProviderInfo& info = provider_.info();
  const base::TimePoint began = timers_.now();
  const auto list = co_await provider_.list_owned(tag_prefix_, began + kListDeadline);
  if (!list) co_return list.error().message;
  owned_.set(static_cast<double>(list->instances.size()));
  on_listing_(info.name, *list, began);
  co_return list->complete ? std::string() : list->incomplete_why;
}

async::Loop ProviderController::run_listings() {
  const provider::ProviderInfo& info = provider_.info();
  for (;;) {
    std::string problem = co_await list();
    if (problem.empty() != problem_.empty()) {
      if (problem.empty()) {
        log::info("provider answers again", {{"provider", info.name}});
      } else {
        log::warn("provider cannot be listed; its pods keep their last status",
                  {{"provider", info.name}, {"error", problem}});
      }
    }
    problem_ = std::move(problem);
    co_await rest();
  }
}

/// Each flawed offer is logged once, as long as it keeps its flaw.
void ProviderController::show_quarantined() {
  std::array<int, static_cast<size_t>(core::Flaw::kCount)> counts{};
  std::map<base::OfferId, core::Flaw> seen;
  for (const core::FlawedOffer* const flawed : offers_.flawed()) {
    if (flawed->offer.provider != provider_.info().name) continue;
    ++counts.at(static_cast<size_t>(flawed->flaw));
    seen.emplace(flawed->offer.id, flawed->flaw);
    const auto known = told_.find(flawed->offer.id);
    if (known != told_.end() && known->second == flawed->flaw) continue;
    log::warn("an offer cannot be what it says, and is left alone",
              {{"provider", provider_.info().name}, {"offer", flawed->offer.id}, {"reason", to_string(flawed->flaw)}});
  }
  for (size_t i = 0; i < counts.size(); ++i) quarantined_.at(i)->set(counts.at(i));
  told_ = std::move(seen);
}

async::Loop ProviderController::run_offers() {
  int failures = 0;
  for (;;) {
    auto offers = co_await provider_.list_offers(timers_.now() + kListDeadline);
    base::Duration wait = provider_.info().offers_every;
    if (offers) {
      failures = 0;
      const base::TimePoint now = timers_.now();
      offer_count_.set(static_cast<double>(
          std::count_if(offers->begin(), offers->end(), [](const auto& o) { return o.available; })));
      if (log_ != nullptr) log_->listed(provider_.info().name, *offers, now, provider_.info().own_machines);
      offers_.update(provider_.info().name, std::move(*offers), now, provider_.info().own_machines);
      show_quarantined();
    } else {
      if (failures++ == 0)
        log::warn("offers cannot be listed", {{"provider", provider_.info().name}, {"error", offers.error()}});
      wait = std::min(wait, base::backoff_delay(kFirstOffers, failures));
    }
    co_await timers_.sleep_for(random_.jittered(wait, kJitter));
  }
}

}  // namespace spillway::control
