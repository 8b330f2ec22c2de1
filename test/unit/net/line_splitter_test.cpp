#include <catch2/catch.hpp>

#include "vk-provider/net/line_splitter.hpp"

using spillway::net::LineSplitter;

namespace {

std::vector<std::string> drain(LineSplitter& splitter) {
  std::vector<std::string> lines;
  while (const auto line = splitter.next()) lines.emplace_back(*line);
  return lines;
}

}  // namespace

TEST_CASE("lines are the same however the bytes are cut") {
  const std::string text = "one\n\n{\"k\":\"\xC3\xA9\"}\r\nlast \xE2\x82\xAC\nrest";
  const std::vector<std::string> expected = {"one", "", "{\"k\":\"\xC3\xA9\"}\r", "last \xE2\x82\xAC"};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    CAPTURE(piece);
    LineSplitter splitter(100);
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size(); at += piece) {
      REQUIRE(splitter.feed(std::string_view(text).substr(at, piece)));
      for (std::string& line : drain(splitter)) lines.push_back(std::move(line));
    }
    CHECK(lines == expected);
    CHECK(splitter.rest() == "rest");
  }
}

TEST_CASE("lines may be left for later") {
  LineSplitter splitter(100);
  REQUIRE(splitter.feed("a\nb\nc"));
  CHECK(splitter.next() == "a");
  REQUIRE(splitter.feed("d\ne\n"));
  CHECK(drain(splitter) == std::vector<std::string>{"b", "cd", "e"});
  CHECK(splitter.rest().empty());
}

TEST_CASE("a line that is too long is an error, whether it has ended or not") {
  LineSplitter exact(4);
  CHECK(exact.feed("abcd\nabcd"));
  const auto longer = exact.feed("e");
  REQUIRE_FALSE(longer);
  CHECK(longer.error().kind == spillway::base::ErrorKind::kInvalid);
  CHECK_THAT(longer.error().message, Catch::Contains("4 bytes"));

  LineSplitter ended(4);
  CHECK_FALSE(ended.feed("ok\nabcde\n"));
}
