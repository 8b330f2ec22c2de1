#include "vk-provider/core/offer_book.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

constexpr base::TimePoint kStart{1h};
const base::ProviderName kCloud("cloud");

model::Offer offer(const std::string& id, std::int64_t micros, int gpus = 1, const std::string& model = "H100") {
  model::Offer out;
  out.id = base::OfferId(id);
  out.region = "eu";
  out.gpu_count = gpus;
  out.gpu_model = gpus > 0 ? model : "";
  out.price_per_hour = base::Money::from_micros(micros);
  return out;
}

/// What becomes of one offer that stands alone.
std::string flaw_of(const model::Offer& o, bool own_machines = false) {
  const CheckedOffers checked = check_offers({o}, own_machines);
  CHECK(checked.sound.size() + checked.flawed.size() == 1);
  return checked.flawed.empty() ? "" : std::string(to_string(checked.flawed[0].flaw));
}

}  // namespace

TEST_CASE("offer check: what a cloud may get wrong, each with its reason") {
  const model::Offer good = offer("a", 2'000'000);
  CHECK(flaw_of(good).empty());
  model::Offer o = good;
  o.id = base::OfferId();
  CHECK(flaw_of(o) == "no_id");
  o = good;
  o.price_per_hour = base::Money::from_micros(-1);
  CHECK(flaw_of(o) == "negative_price");
  o = good;
  o.setup_price = base::Money::from_micros(-1);
  CHECK(flaw_of(o) == "negative_price");
  o = good;
  o.price_per_hour = base::Money();
  CHECK(flaw_of(o) == "free");
  CHECK(flaw_of(o, true).empty());
  o.capacity_type = model::CapacityType::kReserved;
  CHECK(flaw_of(o).empty());
  o = good;
  o.price_per_hour = base::Money::from_micros(10'000'000'001);
  CHECK(flaw_of(o) == "huge_price");
  o = good;
  o.price_per_hour.reset();
  o.price_unreadable = true;  // NaN, 1e30, "free"
  CHECK(flaw_of(o) == "unreadable_price");
  o = good;
  o.gpu_model = "Voodoo2";
  CHECK(flaw_of(o) == "unknown_gpu");
  CHECK(flaw_of(o, true).empty());
  o = good;
  o.gpu_model = "NVIDIA H100 80GB HBM3";  // an adapter that forgot to translate
  CHECK(flaw_of(o) == "unknown_gpu");
  for (int i = 0; i < 6; ++i) {
    o = good;
    if (i == 0) o.gpu_count = -1;
    if (i == 1) o.gpu_count = 100'000;
    if (i == 2) o.gpu_memory = -1;
    if (i == 3) o.memory = -1;
    if (i == 4) o.gpu_model = "";
    if (i == 5) o.billing_grain = 0s;
    CAPTURE(i);
    CHECK(flaw_of(o) == "impossible_size");
  }
}

TEST_CASE("offer check: no price is no flaw, and nothing to buy") {
  model::Offer o = offer("a", 1);
  o.price_per_hour.reset();
  CHECK(flaw_of(o).empty());
  OfferBook book;
  book.update(kCloud, {o}, kStart);
  CHECK(book.table().rows().empty());
  CHECK(book.find(kCloud, base::OfferId("a")) != nullptr);
}

TEST_CASE("offer check: one id twice is kept once if both say the same, and not at all if they do not") {
  CheckedOffers same = check_offers({offer("a", 1'000'000), offer("b", 2'000'000), offer("a", 1'000'000)}, false);
  CHECK(same.sound.size() == 2);
  CHECK(same.flawed.empty());
  CheckedOffers differ = check_offers({offer("a", 1'000'000), offer("b", 2'000'000), offer("a", 1'000'001)}, false);
  REQUIRE(differ.sound.size() == 1);
  CHECK(differ.sound[0].id == base::OfferId("b"));
  CHECK(differ.flawed.size() == 2);
  CHECK(differ.flawed[0].flaw == Flaw::kDuplicateId);
}

TEST_CASE("offer check: several GPUs for what one costs") {
  // Prices of one GPU on machines with more: 2.49 stands for each.
  CheckedOffers wrong = check_offers(
      {offer("x1", 2'490'000), offer("x2", 2'490'000, 2), offer("x4", 2'490'000, 4), offer("x8", 2'490'000, 8)}, false);
  REQUIRE(wrong.sound.size() == 1);
  CHECK(wrong.sound[0].id == base::OfferId("x1"));
  for (const FlawedOffer& f : wrong.flawed) CHECK(f.flaw == Flaw::kPricePerGpu);
  // A discount is none of it.
  CheckedOffers right = check_offers(
      {offer("x1", 2'490'000), offer("x2", 4'600'000, 2), offer("x4", 8'800'000, 4), offer("x8", 16'000'000, 8)},
      false);
  CHECK(right.sound.size() == 4);
  // Own machines are priced by their owner.
  CHECK(check_offers({offer("x1", 2'490'000), offer("x8", 2'490'000, 8)}, true).sound.size() == 2);
}

TEST_CASE("offer book: eight GPUs far below the market are kept apart, also without a machine with one") {
  OfferBook book;
  for (const char* name : {"a", "b", "c"}) {
    book.update(base::ProviderName(name), {offer("one", 2'400'000), offer("eight", 19'200'000, 8)}, kStart);
  }
  CHECK(book.table().rows().size() == 6);
  book.update(base::ProviderName("d"), {offer("eight", 2'400'000, 8)}, kStart);
  CHECK(book.table().rows().size() == 6);
  CHECK(book.find(base::ProviderName("d"), base::OfferId("eight")) == nullptr);
  CHECK(book.flaws().at(static_cast<size_t>(Flaw::kPricePerGpu)) == 1);
  REQUIRE(book.flawed().size() == 1);
  CHECK(book.flawed()[0]->offer.provider == base::ProviderName("d"));
  CHECK(book.entries(kStart).size() == 6);
}

TEST_CASE("offer book: a listing replaces the one before; what is not in it has vanished") {
  OfferBook book;
  CHECK_FALSE(book.knows(kCloud));
  CHECK_FALSE(book.listed_at(kCloud));
  book.update(kCloud, {offer("a", 1'000'000), offer("b", 2'000'000)}, kStart);
  CHECK(book.knows(kCloud));
  CHECK(book.listed_at(kCloud) == kStart);
  CHECK(book.find(kCloud, base::OfferId("a")) != nullptr);
  const std::uint64_t version = book.table().version();
  book.update(kCloud, {offer("b", 2'500'000)}, kStart + 1min);
  CHECK(book.find(kCloud, base::OfferId("a")) == nullptr);
  CHECK(book.find(kCloud, base::OfferId("b"))->price_per_hour == base::Money::from_micros(2'500'000));
  CHECK(book.table().version() > version);
  book.update(kCloud, {}, kStart + 2min);
  CHECK(book.table().rows().empty());
  CHECK(book.knows(kCloud));
}

TEST_CASE("offer book: an offer belongs to who lists it, whatever it says") {
  OfferBook book;
  model::Offer o = offer("a", 1'000'000);
  o.provider = base::ProviderName("somebody-else");
  book.update(kCloud, {o}, kStart);
  CHECK(book.find(kCloud, base::OfferId("a"))->provider == kCloud);
}

TEST_CASE("offer book: memory is told as sold") {
  OfferBook book;
  model::Offer driver = offer("driver", 1'000'000, 1, "RTX4090");
  driver.gpu_memory = 24564LL << 20;
  model::Offer other = offer("other", 1'000'000, 1, "RTX4090");
  other.gpu_memory = 48LL << 30;
  book.update(kCloud, {driver, other, offer("silent", 1'000'000, 1, "RTX4090")}, kStart);
  CHECK(book.find(kCloud, base::OfferId("driver"))->gpu_memory == 24LL << 30);
  CHECK(book.find(kCloud, base::OfferId("other"))->gpu_memory == 48LL << 30);
  CHECK(book.find(kCloud, base::OfferId("silent"))->gpu_memory == 24LL << 30);
}

TEST_CASE("offer table: by kind and price, whatever the order of the listing") {
  OfferBook one;
  OfferBook two;
  one.update(kCloud, {offer("a", 3'000'000), offer("b", 1'000'000), offer("c", 8'000'000, 8)}, kStart);
  two.update(kCloud, {offer("c", 8'000'000, 8), offer("b", 1'000'000), offer("a", 3'000'000)}, kStart);
  for (const OfferBook* book : {&one, &two}) {
    CHECK(book->table().kinds().size() == 2);
    for (const OfferKind& kind : book->table().kinds()) {
      for (std::uint32_t i = kind.begin; i + 1 < kind.end; ++i) {
        CHECK(book->table().rows()[i].price <= book->table().rows()[i + 1].price);
      }
    }
  }
}

}  // namespace spillway::core
