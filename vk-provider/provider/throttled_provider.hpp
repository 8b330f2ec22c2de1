// Keeps a provider within its rate limit, and leaves it alone while it is broken.
//
// Decorator; owns the provider inside (a metered_provider, as a rule). Reactor thread only. The decisions are
// breaker's. Repeats nothing: a call that may not be made is kUnavailable or kRateLimited with retry_after, and nothing
// was sent.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/token_bucket.hpp"
#include "vk-provider/provider/breaker.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::provider {

struct ThrottleConfig {
  ThrottleConfig() = default;
  double calls_per_second = 0;  // 0: no limit
  double burst = 10;
  BreakerPolicy breaker;
};

class ThrottledProvider final : public Provider {
 public:
  ThrottledProvider(std::unique_ptr<Provider> inner, ThrottleConfig config, async::Timers& timers,
                    base::Metrics& metrics);

  const ProviderInfo& info() const override { return inner_->info(); }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override;
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override;
  async::Task<OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override;
  async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> open_logs(model::InstanceRef ref, LogOptions options,
                                              base::Deadline deadline) override;
  async::Task<ExecSessionPtr> open_exec(model::InstanceRef ref, ExecOptions options, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> dial(model::InstanceRef ref, int port, base::Deadline deadline) override;
  async::Task<std::vector<Sample>> samples(base::Deadline deadline) override;
  async::Task<void> control_container(model::InstanceRef ref, std::string container, ContainerAction action,
                                      std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<void> put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                              base::Deadline deadline) override;
  boost::asio::awaitable<void> stop() override { return inner_->stop(); }

  /// False while the breaker is open.
  bool reachable() const { return breaker_.reachable(); }
  /// When reachable() last changed.
  base::TimePoint since() const { return breaker_.since(); }
  /// The error that opened the breaker, for people; empty if it is closed.
  const std::string& why() const { return breaker_.why(); }

 private:
  /// The right to make one call. One that dies unused (its call was cancelled) lets the next probe through.
  class Ticket {
   public:
    Ticket(Breaker& breaker, bool probe) : breaker_(&breaker), probe_(probe) {}
    Ticket(Ticket&& other) noexcept : breaker_(std::exchange(other.breaker_, nullptr)), probe_(other.probe_) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (breaker_ != nullptr) breaker_->abandoned(probe_);
    }
    /// Says whether it was a probe; the outcome is now reported by the caller.
    bool take() {
      breaker_ = nullptr;
      return probe_;
    }

   private:
    Breaker* breaker_;
    bool probe_;
  };

  /// Waits for a token and for the end of a pause, within the deadline.
  async::Task<Ticket> enter(Urgency urgency, base::Deadline deadline);
  void leave(Ticket ticket, const base::Error* error);
  template <class T>
  async::Task<T> finish(Ticket ticket, async::Task<T> call);

  std::unique_ptr<Provider> inner_;
  async::Timers& timers_;
  base::TokenBucket bucket_;
  Breaker breaker_;
  base::Gauge& reachable_gauge_;
};

}  // namespace spillway::provider
