#include "vk-provider/core/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "vk-provider/core/decay.hpp"

namespace spillway::core {
namespace {

constexpr base::Duration kWeek = std::chrono::hours(24 * 7);
constexpr double kPriorMeasurements = 5;
constexpr double kLeastSeconds = 1;  // what is faster is as good
// A measurement far from what was believed before says that this was wrong, not that everything can happen: without a
// bound one start within a second would make a pool slower than none, for its mean grows with the square of sigma.
constexpr double kMostSigma = 0.8;
constexpr double kZ95 = 1.6448536269514722;

double tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }
double seconds(base::Duration d) { return static_cast<double>(d.count()) / 1e9; }

}  // namespace

void Evidence::add(bool yes, double weight, base::TimePoint now, base::Duration half_life) {
  const double kept = halved(now - at_, half_life);
  yes_ = yes_ * kept + (yes ? weight : 0);
  no_ = no_ * kept + (yes ? 0 : weight);
  at_ = std::max(at_, now);
}

double Evidence::share(double prior, double prior_weight, base::TimePoint now, base::Duration half_life) const {
  return at(now, half_life).share(prior, prior_weight);
}

Evidence::Counts Evidence::at(base::TimePoint now, base::Duration half_life) const {
  if (yes_ == 0 && no_ == 0) return {};
  const double kept = halved(now - at_, half_life);
  return {yes_ * kept, no_ * kept};
}

double Evidence::Counts::share(double prior, double prior_weight) const {
  // Of a difference rounding may leave something below nothing.
  const double all = std::max(yes, 0.0) + std::max(no, 0.0);
  return (prior * prior_weight + std::max(yes, 0.0)) / (prior_weight + all);
}

double TimeBelief::mean_hours() const { return std::exp(mu + sigma * sigma / 2) / 3600; }

base::Duration TimeBelief::quantile95() const { return from_hours(std::exp(mu + kZ95 * sigma) / 3600); }

double TimeBelief::chance_longer(base::Duration waited) const {
  if (waited.count() <= 0) return 1;
  return tail((std::log(seconds(waited)) - mu) / sigma);
}

double TimeBelief::mean_rest_hours(base::Duration waited) const {
  if (waited.count() <= 0) return mean_hours();
  const double z = (std::log(seconds(waited)) - mu) / sigma;
  const double longer = tail(z);
  // So far out nothing is known but that it has not come: as long again.
  if (longer < 1e-9) return hours(waited);
  return std::max(0.0, mean_hours() * tail(z - sigma) / longer - hours(waited));
}

void Measurements::add(base::Duration took, base::TimePoint now) {
  const double kept = halved(now - at_, kWeek);
  count_ *= kept;
  squares_ *= kept;
  at_ = std::max(at_, now);
  const double x = std::log(std::max(seconds(took), kLeastSeconds));
  count_ += 1;
  const double from_old = x - mean_;
  mean_ += from_old / count_;
  squares_ += from_old * (x - mean_);
}

TimeBelief Measurements::belief(const TimeBelief& prior, base::TimePoint now) const {
  const double n = count_ * halved(now - at_, kWeek);
  if (n <= 0) return prior;
  const double squares = squares_ * n / count_;
  const double all = kPriorMeasurements + n;
  const double apart = mean_ - prior.mu;
  TimeBelief out;
  out.mu = (kPriorMeasurements * prior.mu + n * mean_) / all;
  const double sum =
      kPriorMeasurements * prior.sigma * prior.sigma + squares + n * kPriorMeasurements / all * apart * apart;
  out.sigma = std::min(std::sqrt(sum / all), kMostSigma);
  return out;
}

Interruptions::Fade Interruptions::since(base::TimePoint now) const {
  const double passed = std::max(0.0, hours(now - at_));
  const double factor = halved(now - at_, kWeek);
  // The integral of what fades while it is being watched.
  const double mean_life = hours(kWeek) / std::numbers::ln2;
  return {factor, running_ == 0 ? 0 : running_ * mean_life * (1 - std::exp(-passed / mean_life))};
}

void Interruptions::settle(base::TimePoint now) {
  const Fade fade = since(now);
  count_ *= fade.factor;
  hours_ = hours_ * fade.factor + fade.watched;
  at_ = std::max(at_, now);
}

void Interruptions::running(int change, base::TimePoint now) {
  settle(now);
  running_ = std::max(0, running_ + change);
}

void Interruptions::interrupted(base::TimePoint now) {
  settle(now);
  count_ += 1;
}

double Interruptions::rate(double prior_count, double prior_hours, base::TimePoint now) const {
  const Fade fade = since(now);
  return (prior_count + count_ * fade.factor) / (prior_hours + hours_ * fade.factor + fade.watched);
}

}  // namespace spillway::core
