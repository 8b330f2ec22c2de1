#include "providers/docker/gpu_slots.hpp"

#include <catch2/catch.hpp>

using namespace spillway::providers::docker;
using Indices = std::vector<int>;

TEST_CASE("gpu slots: the lowest free indices are given") {
  CHECK(choose_gpus(4, {}, 2) == Indices{0, 1});
  CHECK(choose_gpus(4, {0, 2}, 2) == Indices{1, 3});
  CHECK(choose_gpus(4, {0, 1, 2, 3}, 0) == Indices{});
  CHECK(choose_gpus(0, {}, 0) == Indices{});
}

TEST_CASE("gpu slots: too few are none") {
  CHECK(choose_gpus(4, {0, 1, 2}, 2) == std::nullopt);
  CHECK(choose_gpus(0, {}, 1) == std::nullopt);
  // An index that the configuration no longer has is held, and helps nobody.
  CHECK(choose_gpus(2, {7}, 3) == std::nullopt);
}

TEST_CASE("gpu slots: labels go there and back") {
  for (const Indices& gpus : {Indices{}, Indices{0}, Indices{1, 3, 12}}) {
    CHECK(from_gpu_label(to_gpu_label(gpus)) == gpus);
  }
  for (const char* const bad : {"x", "1,", ",1", "1,,2", "-1", "1;2", "1 ", "99999999999"}) {
    INFO(bad);
    CHECK(from_gpu_label(bad) == std::nullopt);
  }
}
