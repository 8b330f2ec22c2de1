#include "vk-provider/base/money.hpp"

#include <catch2/catch.hpp>

using spillway::base::Money;

TEST_CASE("dollars are read exactly or not at all") {
  struct Row {
    const char* text;
    std::optional<std::int64_t> micros;
  };
  const Row rows[] = {{"2.39", 2'390'000},       {"0.000001", 1},
                      {"12", 12'000'000},        {"0", 0},
                      {"1.50000000", 1'500'000}, {"0.0000001", std::nullopt},
                      {"-1", std::nullopt},      {"1e3", std::nullopt},
                      {"", std::nullopt},        {".5", std::nullopt},
                      {"1.", std::nullopt},      {"1000000001", std::nullopt},
                      {" 1", std::nullopt}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto money = Money::from_dollars(row.text);
    CHECK((money ? std::optional(money->micros()) : std::nullopt) == row.micros);
  }
}

TEST_CASE("money is written with at least two and at most six digits") {
  CHECK(Money::from_micros(2'390'000).to_dollars() == "2.39");
  CHECK(Money::from_micros(125).to_dollars() == "0.000125");
  CHECK(Money::from_micros(12'000'000).to_dollars() == "12.00");
  CHECK(Money::from_micros(-500'000).to_dollars() == "-0.50");
}
