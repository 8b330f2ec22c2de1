// The numbers of docs/placement.md, "A number to check", and what the parts depend on.
#include "vk-provider/core/offer_index.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "test/unit/core/market.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using test_market::a_shape;
using test_market::an_offer;

Traits traits() {
  Traits t;
  t.readiness = 0.95;
  t.start_hours = 150.0 / 3600;
  t.answer_hours = 3.0 / 3600;
  t.give_up = 600s;
  return t;
}

struct Input {
  model::Offer offer;
  Traits t = traits();
  Shape shape = a_shape();
  explicit Input(std::int64_t price) : offer(an_offer("a", "x", price)) {}
  IndexInput get() const {
    IndexInput in;
    in.offer = &offer;
    in.traits = &t;
    in.shape = &shape;
    return in;
  }
};

double dollars(double micros) { return micros / 1e6; }

}  // namespace

TEST_CASE("index: the example of the documentation") {
  const Input first(2'000'000);
  const IndexParts a = parts_of(first.get(), 0.5, 0);
  CHECK(dollars(a.rent) == Approx(4.0836).margin(0.00005));
  CHECK(dollars(a.start) == Approx(0.0417).margin(0.00005));
  CHECK(a.loss == 0);
  CHECK(dollars(a.tries) == Approx(0.0123 + 0.0263).margin(0.0001));
  CHECK(a.wait == 0);
  CHECK(dollars(a.sum()) == Approx(4.1639).margin(0.00005));
  const Input second(1'900'000);
  const IndexParts b = parts_of(second.get(), 0.1, 0);
  CHECK(dollars(b.rent) == Approx(3.8794).margin(0.00005));
  CHECK(dollars(b.tries) == Approx(0.0614 + 0.0254).margin(0.0001));
  CHECK(dollars(b.sum()) == Approx(4.0079).margin(0.00005));
  const IndexParts cooled = parts_of(second.get(), 0.1, 2.0 / 60);
  CHECK(dollars(cooled.wait) == Approx(0.3509).margin(0.00005));
  CHECK(cooled.sum() > a.sum());
}

TEST_CASE("index: what is billed while it boots, at least, in steps and once") {
  Input in(1'000'000);
  const double usual = parts_of(in.get(), 1, 0).rent;
  in.offer.boot_billed = false;
  CHECK(parts_of(in.get(), 1, 0).rent == Approx(usual - 1e6 * 150 / 3600));
  in.offer.boot_billed = true;
  in.offer.billing_minimum = 10h;
  CHECK(parts_of(in.get(), 1, 0).rent == Approx(10e6 + 1e6 / 7200.0));
  in.offer.billing_minimum = 0s;
  in.offer.billing_grain = 3600s;
  CHECK(parts_of(in.get(), 1, 0).rent == Approx(usual - 1e6 / 7200.0 + 0.5e6));
  in.offer.billing_grain = 1s;
  in.offer.setup_price = base::Money::from_micros(250'000);
  CHECK(parts_of(in.get(), 1, 0).rent == Approx(usual + 250'000));
  in.offer.setup_price = {};
  in.shape.pod.image_size = 36'000'000'000;  // six minutes at 100 MB/s
  CHECK(parts_of(in.get(), 1, 0).start == Approx(1e6 * (150.0 / 3600 + 0.1)));
}

TEST_CASE("index: what an interruption costs depends on what is saved") {
  Input in(1'000'000);
  in.t.hazard = 0.15;
  in.shape.worth.checkpoint = base::Duration(0);
  const double nothing = parts_of(in.get(), 1, 0).loss;
  CHECK(nothing == Approx(0.15 * 2 * (153.0 / 3600) * 2e6));
  in.shape.worth.checkpoint = 30min;
  CHECK(parts_of(in.get(), 1, 0).loss == Approx(nothing + 0.15 * 2 * 0.25 * 2e6));
  in.shape.worth.checkpoint.reset();
  CHECK(parts_of(in.get(), 1, 0).loss == Approx(nothing + 0.15 * 2 * 1.0 * 2e6));
  IndexInput old = in.get();
  old.has_run = 20h;
  // As long again, and never more than half the time between two interruptions to do again.
  CHECK(rest_hours(in.shape.worth, 20h) == 20);
  CHECK(rest_hours(in.shape.worth, 200h) == 24);
  CHECK(parts_of(old, 1, 0).loss == Approx(0.15 * 20 * (153.0 / 3600 + 1 / 0.15 / 2) * 2e6));
}

TEST_CASE("index: whole micro-dollars, and an end of the scale") {
  CHECK(whole_micros(1.9) == 1);
  CHECK(whole_micros(1e30) == 9'000'000'000'000'000'000);
  CHECK(whole_micros(-1e30) == -9'000'000'000'000'000'000);
}

}  // namespace spillway::core
