#include "vk-provider/model/quantity.hpp"

#include <catch2/catch.hpp>

#include "vk-provider/base/random.hpp"

namespace spillway::model {
namespace {

using Number = std::optional<std::int64_t>;

struct Case {
  const char* text;
  Number value;
  Number milli;
};

TEST_CASE("a quantity is told in the largest unit that leaves no rest") {
  CHECK(quantity_text(0) == "0");
  CHECK(quantity_text(1000) == "1000");
  CHECK(quantity_text(1024) == "1Ki");
  CHECK(quantity_text(3LL << 29) == "1536Mi");
  CHECK(quantity_text(7LL << 60) == "7Ei");
  CHECK(quantity_text(-2048) == "-2Ki");
}

TEST_CASE("every form of a quantity is read exactly or rounded up") {
  const Case cases[] = {
      {"0", 0, 0},
      {"1", 1, 1000},
      {"+1", 1, 1000},
      {"007", 7, 7000},
      {"1.", 1, 1000},
      {".5", 1, 500},
      {"0.5", 1, 500},
      {"0.1", 1, 100},
      {"1500m", 2, 1500},
      {"400m", 1, 400},
      {"1u", 1, 1},
      {"1n", 1, 1},
      {"1000000n", 1, 1},
      {"1000001n", 1, 2},
      {"0n", 0, 0},
      {"1k", 1000, 1000000},
      {"100k", 100000, 100000000},
      {"12G", 12000000000, 12000000000000},
      {"12e9", 12000000000, 12000000000000},
      {"1E10", 10000000000, 10000000000000},
      {"1E", 1000000000000000000, std::nullopt},
      {"9E", 9000000000000000000, std::nullopt},
      {"129e6", 129000000, 129000000000},
      {"1e+3", 1000, 1000000},
      {"1e-3", 1, 1},
      {"2e0", 2, 2000},
      {"1Ki", 1024, 1024000},
      {"0.5Gi", 536870912, 536870912000},
      {"2.1Gi", 2254857831, 2254857830400},
      {"2254857830400m", 2254857831, 2254857830400},
      {"128974848000m", 128974848, 128974848000},
      {"16106127360", 16106127360, 16106127360000},
      {"1Ti", 1099511627776, 1099511627776000},
      {"1Pi", 1125899906842624, 1125899906842624000},
      {"1Ei", 1152921504606846976, std::nullopt},
      {"7Ei", 8070450532247928832, std::nullopt},
      {"1.2345678901234567890123456789Ei", 1423359869420436338, std::nullopt},
      {"0.000000000000000000000000000000000000000000000000001", 1, 1},
      {"0.0000000000000000000000000000000000000000000000000000", 0, 0},
      {"0e999999", 0, 0},
      {"1e-999999", 1, 1},
      {"9223372036854775807", 9223372036854775807, std::nullopt},
      {"-1500m", -2, -1500},
      {"-0", 0, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(quantity_value(c.text) == c.value);
    CHECK(quantity_milli(c.text) == c.milli);
  }
}

TEST_CASE("what is no quantity, or does not fit, is refused") {
  for (const char* text : {"",
                           "m",
                           "Gi",
                           "+",
                           "-",
                           ".",
                           "1e-7Ti",
                           "1e",
                           "1e+",
                           "1E-",
                           "1e+-3",
                           "1E+-3",
                           "1.5.2",
                           "1 ",
                           " 1",
                           "1 Gi",
                           "1gi",
                           "1K",
                           "1M i",
                           "1mi",
                           "1x",
                           "1kk",
                           "0x10",
                           "1,5",
                           "--1",
                           "1e3Ki",
                           "9223372036854775808",
                           "10E",
                           "8Ei",
                           "1e19",
                           "1e60",
                           "1e61",
                           "1e999999",
                           "1e99999999999",
                           "99999999999999999999999999999999999999999",
                           "Infinity",
                           "NaN"}) {
    CAPTURE(text);
    CHECK(quantity_value(text) == std::nullopt);
    CHECK(quantity_milli(text) == std::nullopt);
  }
}

TEST_CASE("no text breaks the reader of quantities") {
  base::SeededRandom random(7);
  constexpr std::string_view kLetters = "0123456789.+-eEKMGTPikmun ";
  for (int i = 0; i < 200000; ++i) {
    std::string text;
    for (auto n = random.next() % 14; n > 0; --n) text += kLetters[random.next() % kLetters.size()];
    CAPTURE(text);
    const Number value = quantity_value(text);
    const Number milli = quantity_milli(text);
    if (milli) REQUIRE(value.has_value());
    if (milli && *milli > 0) REQUIRE(*value == (*milli + 999) / 1000);
  }
}

}  // namespace
}  // namespace spillway::model
