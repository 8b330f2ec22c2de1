#include "vk-provider/api/logs.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::api;

namespace {

const base::WallTime kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29) + 12h;

Answer<provider::LogOptions> parse(const std::string& query) {
  return parse_log_query(net::Query(query), "main", kNow);
}

}  // namespace

TEST_CASE("a log without parameters is all of it, as it is now") {
  const auto options = parse("");
  REQUIRE(options.has_value());
  CHECK(options->container == "main");
  CHECK_FALSE(options->follow);
  CHECK_FALSE(options->previous);
  CHECK_FALSE(options->timestamps);
  CHECK_FALSE(options->tail_lines.has_value());
  CHECK_FALSE(options->limit_bytes.has_value());
  CHECK_FALSE(options->since.has_value());
  CHECK_FALSE(options->channel.has_value());
}

TEST_CASE("every parameter of a log is read") {
  const auto options = parse("follow=true&previous=1&timestamps&tailLines=0&limitBytes=100&sinceSeconds=60");
  REQUIRE(options.has_value());
  CHECK(options->follow);
  CHECK(options->previous);
  CHECK(options->timestamps);
  CHECK(options->tail_lines == 0);
  CHECK(options->limit_bytes == 100);
  CHECK(options->since == kNow - 60s);
  CHECK(parse("sinceTime=2026-11-29T10%3A00%3A00Z")->since == kNow - 2h);
  CHECK(parse("follow=false&previous=0")->follow == false);
  CHECK(parse("tail=20")->tail_lines == 20);
  CHECK_FALSE(parse("tail=all&tailLines=5")->tail_lines.has_value());
  CHECK(parse("stream=Stderr")->channel == provider::LogChannel::kStderr);
  CHECK_FALSE(parse("stream=All")->channel.has_value());
  CHECK(parse("sinceSeconds=9223372036854775807")->since == base::WallTime());
}

TEST_CASE("what cannot be read is 400, what makes no sense 422") {
  struct Row {
    const char* query;
    int status;
    const char* text;
  };
  const Row rows[] = {
      {"tailLines=many", 400, "tailLines: found \"many\"; allowed: a whole number"},
      {"tailLines=1.5", 400, "tailLines: found \"1.5\"; allowed: a whole number"},
      {"limitBytes=9223372036854775808", 400, "limitBytes: found \"9223372036854775808\"; allowed: a whole number"},
      {"sinceTime=yesterday", 400, "sinceTime: found \"yesterday\"; allowed: a time as in RFC 3339"},
      {"tailLines=-1", 422, "tailLines must not be negative"},
      {"limitBytes=0", 422, "limitBytes must be greater than 0"},
      {"sinceSeconds=0", 422, "sinceSeconds must be greater than 0"},
      {"sinceSeconds=1&sinceTime=2026-11-29T10:00:00Z", 422, "at most one of sinceTime and sinceSeconds may be given"},
      {"stream=Both", 422, "stream: found \"Both\"; allowed: All, Stdout, Stderr"},
      {"stream=Stdout&tailLines=1", 422, "tailLines and a specific stream exclude each other"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.query);
    const auto refused = parse(row.query);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().status == row.status);
    CHECK(refused.error().text == row.text);
  }
}
