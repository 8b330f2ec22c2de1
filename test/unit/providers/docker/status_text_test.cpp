#include "providers/docker/status_text.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::providers::docker;
using namespace std::chrono_literals;

namespace {

struct Age {
  const char* words;
  base::Duration at_least;
  base::Duration less_than;
};

const base::WallTime kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29) + 12h;

}  // namespace

TEST_CASE("status text: every wording of an age") {
  const Age ages[] = {
      {"Less than a second", 0s, 1s},
      {"1 second", 1s, 2s},
      {"59 seconds", 59s, 60s},
      {"About a minute", 1min, 2min},
      {"2 minutes", 2min, 3min},
      {"About an hour", 59min, 2h},
      {"2 hours", 1h, 3h},
      {"47 hours", 46h, 48h},
      {"2 days", 47h, 73h},
      {"2 weeks", 335h, 505h},
      {"3 months", 2159h, 2881h},
      {"2 years", 17519h, 26281h},
  };
  for (const Age& age : ages) {
    INFO(age.words);
    const auto up = parse_status("Up " + std::string(age.words));
    REQUIRE(up);
    CHECK(up->running);
    CHECK_FALSE(up->exit_code);
    CHECK(up->at_least == age.at_least);
    CHECK(up->less_than == age.less_than);
    const auto exited = parse_status("Exited (137) " + std::string(age.words) + " ago");
    REQUIRE(exited);
    CHECK_FALSE(exited->running);
    CHECK(exited->exit_code == 137);
    CHECK(exited->at_least == age.at_least);
  }
  CHECK(parse_status("Up 5 minutes (Paused)"));
  CHECK(parse_status("Up 5 minutes (health: starting)"));
}

TEST_CASE("status text: other words say nothing") {
  for (const char* const text : {"", "Created", "Dead", "Removal In Progress", "Up", "Up ", "Up soon", "Up 5 parsecs",
                                 "Exited (x) 5 seconds ago", "Exited (0)", "Exited (0) 5 seconds",
                                 "Exited (0 5 days ago", "Restarting (1) 5 seconds ago", "Up -5 seconds"}) {
    INFO(text);
    CHECK_FALSE(parse_status(text));
  }
}

TEST_CASE("status text: a container that was started again contradicts the time that we know") {
  const auto up = parse_status("Up 5 seconds");
  REQUIRE(up);
  CHECK(agrees(*up, kNow - 5s, kNow));
  CHECK(agrees(*up, kNow - 7s, kNow));  // the answer's clock has whole seconds
  CHECK(agrees(*up, kNow - 3s, kNow));
  CHECK_FALSE(agrees(*up, kNow - 9s, kNow));
  CHECK_FALSE(agrees(*up, kNow - 2s, kNow));
  const auto hours = parse_status("Exited (0) 3 hours ago");
  REQUIRE(hours);
  CHECK(agrees(*hours, kNow - 2h - 30min, kNow));
  CHECK_FALSE(agrees(*hours, kNow - 10s, kNow));
}

TEST_CASE("status text: the Date header") {
  CHECK(parse_http_date("Sun, 29 Nov 2026 12:00:00 GMT") == kNow);
  for (const char* const bad :
       {"", "Sun, 29 Nov 2026 12:00:00 UTC", "Sun, 29 Foo 2026 12:00:00 GMT", "Sun, 31 Feb 2026 12:00:00 GMT",
        "Sun, xx Nov 2026 12:00:00 GMT", "Sunday, 29-Nov-26 12:00:00 GMT"}) {
    INFO(bad);
    CHECK_FALSE(parse_http_date(bad));
  }
}
