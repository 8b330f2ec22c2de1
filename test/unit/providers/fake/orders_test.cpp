#include "providers/fake/orders.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)

TEST_CASE("fake orders: every key is read, others are left alone") {
  const auto orders = parse_orders({{"fake.spillway.dev/boot-time", "2s"},
                                    {"fake.spillway.dev/run-for", "1m30s"},
                                    {"fake.spillway.dev/exit-code", "1,2,0"},
                                    {"fake.spillway.dev/start-error", "no such file"},
                                    {"fake.spillway.dev/image-error", "denied"},
                                    {"fake.spillway.dev/fail-boot", "host died"},
                                    {"fake.spillway.dev/fail-create", "no_capacity"},
                                    {"fake.spillway.dev/stop-time", "250ms"},
                                    {"fake.spillway.dev/preempt-after", "1h"},
                                    {"spillway.dev/public-ports", "80"},
                                    {"other/exit-code", "x"}});
  REQUIRE(orders.has_value());
  CHECK(orders->boot_time == 2s);
  CHECK(orders->run_for == 90s);
  CHECK(orders->start_error == "no such file");
  CHECK(orders->image_error == "denied");
  CHECK(orders->fail_boot == "host died");
  CHECK(orders->fail_create == base::ErrorKind::kNoCapacity);
  CHECK(orders->stop_time == 250ms);
  CHECK(orders->preempt_after == 1h);
  CHECK(orders->exit_code_of_run("main", 1) == 1);
  CHECK(orders->exit_code_of_run("main", 3) == 0);
  CHECK(orders->exit_code_of_run("main", 9) == 0);
}

TEST_CASE("fake orders: without any the container runs on and would end well") {
  const auto orders = parse_orders({});
  REQUIRE(orders.has_value());
  CHECK_FALSE(orders->run_for.has_value());
  CHECK(orders->exit_code_of_run("main", 1) == 0);
}

TEST_CASE("fake orders: all faults come in one message that names key, value and remedy") {
  const auto orders = parse_orders({{"fake.spillway.dev/exit-code", "256"},
                                    {"fake.spillway.dev/oom", "yes"},
                                    {"fake.spillway.dev/run-for", "10"},
                                    {"fake.spillway.dev/boottime", "1s"},
                                    {"fake.spillway.dev/fail-create", "sold-out"}});
  REQUIRE_FALSE(orders.has_value());
  CHECK(orders.error().kind == base::ErrorKind::kInvalid);
  const std::string& m = orders.error().message;
  CHECK(m.find("fake.spillway.dev/exit-code: found \"256\"") != std::string::npos);
  CHECK(m.find("fake.spillway.dev/oom: found \"yes\", expected true or false") != std::string::npos);
  CHECK(m.find("fake.spillway.dev/run-for: found \"10\", expected a duration") != std::string::npos);
  CHECK(m.find("fake.spillway.dev/fail-create: found \"sold-out\"") != std::string::npos);
  CHECK(
      m.find("fake.spillway.dev/boottime is not known to the fake cloud; did you mean fake.spillway.dev/boot-time?") !=
      std::string::npos);
}

TEST_CASE("fake orders: durations") {
  CHECK(parse_duration("0") == base::Duration(0));
  CHECK(parse_duration("0s") == base::Duration(0));
  CHECK(parse_duration("1500ms") == 1500ms);
  CHECK(parse_duration("1h2m3s4ms") == 1h + 2min + 3s + 4ms);
  for (const char* bad :
       {"", "s", "1", "-1s", "1.5s", "1d", "1s ", " 1s", "99999999999999999999s", "87601h", "9h99999999h"}) {
    INFO(bad);
    CHECK_FALSE(parse_duration(bad).has_value());
  }
  CHECK(format_duration(0s) == "0s");
  CHECK(format_duration(90s) == "90s");
  CHECK(format_duration(2h) == "2h");
  CHECK(format_duration(250ms) == "250ms");
}

TEST_CASE("fake orders: every error kind has a word that is read back") {
  for (const auto kind : {base::ErrorKind::kInvalid, base::ErrorKind::kGone, base::ErrorKind::kInternal}) {
    CHECK(parse_error_kind(base::to_string(kind)) == kind);
  }
  CHECK_FALSE(parse_error_kind("").has_value());
}
