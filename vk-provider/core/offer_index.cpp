#include "vk-provider/core/offer_index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vk-provider/core/decay.hpp"

namespace spillway::core {
namespace {

constexpr double kImageBytesPerHour = 100e6 * 3600;  // 100 MB/s

/// Hours of work that an interruption costs: half of what lies between two savings, on average.
double rework_hours(const Worth& worth, double hazard, base::Duration has_run) {
  if (worth.checkpoint && worth.checkpoint->count() == 0) return 0;
  const double between_interruptions = hazard > 0 ? 1 / hazard : std::numeric_limits<double>::max();
  const double unsaved = worth.checkpoint ? hours(*worth.checkpoint) : hours(has_run) + hours(worth.runtime);
  return std::min(unsaved, between_interruptions) / 2;
}

/// What does not depend on chance and wait.
struct Basics {
  double price = 0;  // per hour
  double value = 0;  // of an hour
  double start = 0;  // hours from accepted to Running
  IndexParts parts;  // rent, start, loss; of tries only what is lost on machines that never start
  double per_try = 0;
};

Basics basics_of(const IndexInput& in) {
  const Traits& t = *in.traits;
  const Worth& worth = in.shape->worth;
  const model::Offer& offer = *in.offer;
  Basics b;
  b.price = static_cast<double>(offer.price_per_hour ? offer.price_per_hour->micros() : 0) * in.price_factor;
  b.value = static_cast<double>(worth.value_of_time.micros());
  b.start = t.start_hours + static_cast<double>(in.shape->pod.image_size) / kImageBytesPerHour;
  const double boot_price = offer.boot_billed ? b.price : 0;
  const double run = rest_hours(worth, in.has_run);
  const double minimum = hours(offer.billing_minimum);
  const double billed = std::max(run + (offer.boot_billed ? b.start : 0), minimum);
  // Rounding up costs half a step on average.
  b.parts.rent = b.price * (billed + hours(offer.billing_grain) / 2) + static_cast<double>(offer.setup_price.micros());
  b.parts.start = b.value * b.start;
  const double again = rework_hours(worth, t.hazard, in.has_run) + b.start + t.answer_hours;
  b.parts.loss = t.hazard * run * again * (b.price + b.value);
  b.parts.tries = (1 - t.readiness) / t.readiness * hours(t.give_up) * (boot_price + b.value);
  b.per_try = (b.value * t.answer_hours + kCallMicros) / t.readiness;
  return b;
}

}  // namespace

double rest_hours(const Worth& worth, base::Duration has_run) {
  constexpr double kLongest = 24;
  const double expected = hours(worth.runtime);
  return std::max(expected, std::min(hours(has_run), kLongest));
}

Score score_of(const IndexInput& in) {
  const Basics b = basics_of(in);
  return {b.parts.sum(), b.per_try, b.value / in.traits->readiness};
}

IndexParts parts_of(const IndexInput& in, double chance, double wait_hours) {
  const Basics b = basics_of(in);
  IndexParts parts = b.parts;
  parts.tries += b.per_try / chance;
  parts.wait = b.value / in.traits->readiness * wait_hours / chance;
  return parts;
}

std::int64_t whole_micros(double micros) {
  constexpr double kEnd = 9e18;
  return static_cast<std::int64_t>(std::clamp(micros, -kEnd, kEnd));
}

}  // namespace spillway::core
