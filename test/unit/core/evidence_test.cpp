// decay and evidence: how what was seen fades.
#include "vk-provider/core/evidence.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "vk-provider/core/decay.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

constexpr base::TimePoint kStart{100h};

TEST_CASE("correlation: the sum of its parts, everywhere, and falling") {
  CHECK(correlation(0s) == 1);
  CHECK(correlation(-5s) == 1);
  double last = 1;
  for (double h = 1e-4; h < 200; h *= 1.07) {
    double exact = 0;
    for (const CorrelationPart& part : kCorrelationParts) exact += part.share * std::exp(-h / hours(part.life));
    CAPTURE(h);
    const double here = correlation(from_hours(h));
    CHECK(std::abs(here - exact) < 0.0005);
    CHECK(here <= last);
    last = here;
  }
  CHECK(correlation(1h) == Approx(0.5495).margin(0.001));
  CHECK(correlation(24h * 365) == Approx(0).margin(1e-9));
}

TEST_CASE("halved and youth") {
  CHECK(halved(0h, 24h) == 1);
  CHECK(halved(24h, 24h) == 0.5);
  CHECK(halved(72h, 24h) == 0.125);
  CHECK(youth(1h) == Approx(1));
  CHECK(youth(0s) == 3);
  CHECK(youth(1000h) == 0.3);
}

TEST_CASE("evidence: counts beside the prior, and is forgotten by halves") {
  Evidence e;
  CHECK(e.share(0.7, 1, kStart, 24h) == 0.7);
  e.add(true, 1, kStart, 24h);
  e.add(false, 1, kStart, 24h);
  CHECK(e.share(0.7, 1, kStart, 24h) == Approx(1.7 / 3));
  CHECK(e.share(0.7, 1, kStart + 24h, 24h) == Approx(1.2 / 2));
  CHECK(e.share(0.7, 1, kStart + 24h * 100, 24h) == Approx(0.7));
}

TEST_CASE("times: the mean, the quantile and what is left of a log-normal") {
  const TimeBelief belief{std::log(120.0), 0.5};
  CHECK(belief.mean_hours() * 3600 == Approx(120 * std::exp(0.125)));
  CHECK(hours(belief.quantile95()) * 3600 == Approx(120 * std::exp(1.6448536 * 0.5)));
  CHECK(belief.chance_longer(0s) == 1);
  CHECK(belief.chance_longer(120s) == Approx(0.5));
  CHECK(belief.chance_longer(belief.quantile95()) == Approx(0.05).margin(1e-6));
  CHECK(belief.mean_rest_hours(0s) == belief.mean_hours());
  // From one integral over the density, by hand: E[S - 120 | S > 120].
  CHECK(belief.mean_rest_hours(120s) * 3600 == Approx(2 * 120 * std::exp(0.125) * 0.691462 - 120).margin(0.01));
  CHECK(belief.mean_rest_hours(24h) == Approx(24));
}

TEST_CASE("times: measurements move the prior, which counts like five") {
  const TimeBelief prior{std::log(120.0), 0.5};
  Measurements m;
  CHECK(m.belief(prior, kStart).mu == prior.mu);
  for (int i = 0; i < 5; ++i) m.add(30s, kStart);
  const TimeBelief half = m.belief(prior, kStart);
  CHECK(half.mu == Approx((std::log(120.0) + std::log(30.0)) / 2));
  CHECK(half.sigma > 0.5);
  for (int i = 0; i < 1000; ++i) m.add(30s, kStart);
  CHECK(m.belief(prior, kStart).mu == Approx(std::log(30.0)).margin(0.01));
  CHECK(m.belief(prior, kStart).sigma < 0.15);
  CHECK(m.belief(prior, kStart + 24h * 7 * 20).mu == Approx(prior.mu).margin(0.01));
}

TEST_CASE("measurements: what starts sooner than was thought is never believed to be slower") {
  const TimeBelief prior{std::log(120.0), 0.5};
  for (const base::Duration took : {0ns, 1000000ns, 1000000000ns, 20000000000ns}) {
    Measurements m;
    double before = prior.mean_hours();
    for (int i = 0; i < 20; ++i) {
      m.add(took, kStart);
      const double mean = m.belief(prior, kStart).mean_hours();
      CAPTURE(took.count(), i);
      CHECK(mean < before);
      before = mean;
    }
  }
}

TEST_CASE("interruptions: so many over the time that was watched") {
  Interruptions i;
  CHECK(i.rate(0.6, 4, kStart) == Approx(0.15));
  i.running(2, kStart);
  CHECK(i.rate(0.6, 4, kStart + 2h) == Approx(0.6 / 8).epsilon(0.01));
  i.interrupted(kStart + 2h);
  i.running(-1, kStart + 2h);
  CHECK(i.rate(0.6, 4, kStart + 2h) == Approx(1.6 / 8).epsilon(0.01));
  i.running(-1, kStart + 2h);
  CHECK(i.rate(0.6, 4, kStart + 24h * 70) == Approx(0.15).epsilon(0.01));
}

}  // namespace
}  // namespace spillway::core
