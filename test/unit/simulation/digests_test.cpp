#include "test/simulation/digests.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::simulation;

TEST_CASE("digests survive being written down") {
  const std::string text = to_text(Digest{1, 0xabc}) + to_text(Digest{2, 0xFEDCBA9876543210U});
  CHECK(text == "1 0000000000000abc\n2 fedcba9876543210\n");
  const auto read = parse_digests("# for people\n\n" + text);
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 2);
  CHECK((*read)[0].seed == 1);
  CHECK((*read)[0].trace == 0xabc);
  CHECK((*read)[1].seed == 2);
  CHECK((*read)[1].trace == 0xFEDCBA9876543210U);
}

TEST_CASE("what is no list of digests is refused with its line") {
  const auto fault_of = [](std::string_view text) { return parse_digests(text).error().message; };
  CHECK(fault_of("") == "no digest is in it");
  for (const char* line : {"1", "1 abc", "one 0000000000000abc", "1 0000000000000abg", "1 0000000000000abc ", "-1 0"}) {
    CAPTURE(line);
    CHECK(fault_of(std::string("# for people\n") + line + "\n") ==
          "line 2: expected a seed and the 16 hexadecimal digits of its trace");
  }
}
