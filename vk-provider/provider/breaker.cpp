#include "vk-provider/provider/breaker.hpp"

#include <algorithm>

namespace spillway::provider {
namespace {

/// True if the error says that the provider could not be asked, as against an answer that we do not like.
bool is_outage(base::ErrorKind kind) {
  switch (kind) {
    case base::ErrorKind::kUnavailable:
    case base::ErrorKind::kDeadline:
    case base::ErrorKind::kUnauthenticated: return true;
    default: return false;
  }
}

/// True if the error says nothing about the provider's health.
bool is_neutral(base::ErrorKind kind) {
  return kind == base::ErrorKind::kCancelled || kind == base::ErrorKind::kUnknownOutcome ||
         kind == base::ErrorKind::kInternal;
}

}  // namespace

Breaker::Admission Breaker::admit(Urgency urgency, base::TimePoint now) {
  Admission admission;
  if (now < paused_until_) {
    admission.kind = Admission::Kind::kPaused;
    admission.until = paused_until_;
    return admission;
  }
  if (!open_) return admission;
  const bool due = now >= next_probe_ || urgency == Urgency::kBilling;
  if (due && !probing_) {
    probing_ = true;
    admission.kind = Admission::Kind::kProbe;
    return admission;
  }
  admission.kind = Admission::Kind::kOpen;
  // While a probe is on its way its outcome decides; a moment later is soon enough to ask again. Whoever could have
  // been the probe must not wait for the next one: what a pod costs would go on for minutes after the provider is back.
  const base::TimePoint soon = now + std::chrono::seconds(1);
  admission.until = due ? soon : std::max(next_probe_, soon);
  return admission;
}

void Breaker::answered(base::TimePoint now) {
  failures_ = 0;
  if (!open_) return;
  open_ = false;
  probes_ = 0;
  why_.clear();
  since_ = now;
}

void Breaker::succeeded(bool probe, base::TimePoint now) {
  if (probe) probing_ = false;
  answered(now);
}

void Breaker::abandoned(bool probe) {
  if (probe) probing_ = false;
}

void Breaker::failed(bool probe, const base::Error& error, base::TimePoint now) {
  if (probe) probing_ = false;
  if (is_neutral(error.kind)) return;
  if (error.kind == base::ErrorKind::kRateLimited) {
    const base::Duration asked = error.retry_after ? base::Duration(*error.retry_after) : policy_.default_pause;
    paused_until_ = std::max(paused_until_, now + std::clamp(asked, base::Duration{}, policy_.longest_pause));
  }
  if (!is_outage(error.kind)) {
    answered(now);
    return;
  }
  if (open_) {
    why_ = error.message;
    // Calls that were under way when it opened end now, too; only a probe lengthens the wait.
    if (probe) next_probe_ = now + base::backoff_delay(policy_.probe, ++probes_ + 1);
    return;
  }
  if (++failures_ < policy_.failures_to_open) return;
  open_ = true;
  since_ = now;
  why_ = error.message;
  next_probe_ = now + base::backoff_delay(policy_.probe, 1);
}

}  // namespace spillway::provider
