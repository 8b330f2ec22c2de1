#include "vk-provider/provider/throttled_provider.hpp"

#include <utility>

#include "vk-provider/base/log.hpp"

namespace spillway::provider {
namespace {

using base::ErrorKind;
using Kind = Breaker::Admission::Kind;

std::chrono::milliseconds rounded_up(base::Duration d) { return std::chrono::ceil<std::chrono::milliseconds>(d); }

std::unexpected<base::Error> not_now(ErrorKind kind, std::string message, base::Duration wait) {
  base::Error error(kind, std::move(message));
  error.retry_after = rounded_up(wait);
  return base::fail(std::move(error));
}

}  // namespace

ThrottledProvider::ThrottledProvider(std::unique_ptr<Provider> inner, ThrottleConfig config, async::Timers& timers,
                                     base::Metrics& metrics)
    : inner_(std::move(inner)),
      timers_(timers),
      bucket_(config.calls_per_second, config.burst),
      breaker_(config.breaker, timers.now()),
      reachable_gauge_(metrics.gauge("spillway_provider_reachable", "0 while a provider is left alone.",
                                     {{"provider", info().name.str()}})) {
  reachable_gauge_.set(1);
}

async::Task<ThrottledProvider::Ticket> ThrottledProvider::enter(Urgency urgency, base::Deadline deadline) {
  const std::string who = "provider " + info().name.str();
  const base::TimePoint begun = timers_.now();
  const base::TimePoint token_at = bucket_.next(begun);
  if (token_at > deadline) {
    co_return not_now(ErrorKind::kRateLimited, who + ": too many calls are waiting for its rate limit",
                      token_at - begun);
  }
  bucket_.reserve(begun);
  if (token_at > begun) co_await timers_.sleep_until(token_at);
  for (;;) {
    const base::TimePoint now = timers_.now();
    const Breaker::Admission admission = breaker_.admit(urgency, now);
    switch (admission.kind) {
      case Kind::kGo: co_return Ticket(breaker_, false);
      case Kind::kProbe: co_return Ticket(breaker_, true);
      case Kind::kOpen:
        co_return not_now(ErrorKind::kUnavailable, who + " is left alone until it recovers: " + breaker_.why(),
                          admission.until - now);
      case Kind::kPaused:
        if (admission.until >= deadline) {
          co_return not_now(ErrorKind::kRateLimited, who + " asked us to wait", admission.until - now);
        }
        co_await timers_.sleep_until(admission.until);
    }
  }
}

void ThrottledProvider::leave(Ticket ticket, const base::Error* error) {
  const bool probe = ticket.take();
  const bool before = breaker_.reachable();
  if (error == nullptr) {
    breaker_.succeeded(probe, timers_.now());
  } else {
    breaker_.failed(probe, *error, timers_.now());
  }
  if (before == breaker_.reachable()) return;
  reachable_gauge_.set(breaker_.reachable() ? 1 : 0);
  if (breaker_.reachable()) {
    base::log::info("provider can be reached again", {{"provider", info().name}});
  } else {
    base::log::warn("provider cannot be reached; it is left alone for a while",
                    {{"provider", info().name}, {"error", breaker_.why()}});
  }
}

template <class T>
async::Task<T> ThrottledProvider::finish(Ticket ticket, async::Task<T> call) {
  base::Result<T> result = co_await std::move(call);
  leave(std::move(ticket), result ? nullptr : &result.error());
  co_return result;
}

async::Task<std::vector<model::Offer>> ThrottledProvider::list_offers(base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->list_offers(deadline));
}

async::Task<model::Instance> ThrottledProvider::create(model::Placement placement, model::ResolvedPod pod,
                                                       base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->create(std::move(placement), std::move(pod), deadline));
}

async::Task<model::Instance> ThrottledProvider::get(model::InstanceRef ref, base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kBilling, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->get(std::move(ref), deadline));
}

async::Task<OwnedList> ThrottledProvider::list_owned(std::string tag_prefix, base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kBilling, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->list_owned(std::move(tag_prefix), deadline));
}

async::Task<void> ThrottledProvider::terminate(model::InstanceRef ref, std::chrono::seconds grace,
                                               base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kBilling, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->terminate(std::move(ref), grace, deadline));
}

async::Task<async::ByteStreamPtr> ThrottledProvider::open_logs(model::InstanceRef ref, LogOptions options,
                                                               base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->open_logs(std::move(ref), std::move(options), deadline));
}

async::Task<ExecSessionPtr> ThrottledProvider::open_exec(model::InstanceRef ref, ExecOptions options,
                                                         base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  // What a container does with it says nothing about the provider: the ticket is given back unused.
  co_return co_await inner_->open_exec(std::move(ref), std::move(options), deadline);
}

async::Task<async::ByteStreamPtr> ThrottledProvider::dial(model::InstanceRef ref, int port, base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  // A port at which nobody listens says nothing about the provider.
  co_return co_await inner_->dial(std::move(ref), port, deadline);
}

async::Task<std::vector<Sample>> ThrottledProvider::samples(base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->samples(deadline));
}

async::Task<void> ThrottledProvider::control_container(model::InstanceRef ref, std::string container,
                                                       ContainerAction action, std::chrono::seconds grace,
                                                       base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket),
                            inner_->control_container(std::move(ref), std::move(container), action, grace, deadline));
}

async::Task<void> ThrottledProvider::put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                                               base::Deadline deadline) {
  auto ticket = co_await enter(Urgency::kNormal, deadline);
  if (!ticket) co_return base::fail(std::move(ticket.error()));
  co_return co_await finish(std::move(*ticket), inner_->put_files(std::move(ref), std::move(files), deadline));
}

}  // namespace spillway::provider
