#include "providers/docker/stats_codec.hpp"

#include <catch2/catch.hpp>

using namespace spillway;                     // NOLINT(google-build-using-namespace)
using namespace spillway::providers::docker;  // NOLINT(google-build-using-namespace)

namespace {

ContainerStats decoded(const std::string& body) {
  const auto stats = decode_stats(body);
  REQUIRE(stats);
  return *stats;
}

}  // namespace

TEST_CASE("docker stats: CPU and working set, with both versions of cgroups") {
  const ContainerStats v1 = decoded(R"({"read": "2026-11-29T12:00:00.123456789Z",
      "cpu_stats": {"cpu_usage": {"total_usage": 18446744073709551615}},
      "memory_stats": {"usage": 5000, "stats": {"inactive_file": 100, "total_inactive_file": 1500}}})");
  CHECK(v1.read_at == base::from_rfc3339("2026-11-29T12:00:00.123456Z"));
  CHECK(v1.cpu_ns == 18446744073709551615U);
  CHECK(v1.working_set == 3500);
  const ContainerStats v2 = decoded(R"({"read": "2026-11-29T12:00:00Z",
      "cpu_stats": {"cpu_usage": {"total_usage": 7}},
      "memory_stats": {"usage": 5000, "stats": {"inactive_file": 0}}})");
  CHECK(v2.cpu_ns == 7);
  CHECK(v2.working_set == 5000);
}

TEST_CASE("docker stats: what is not known is left out, and never zero") {
  const ContainerStats stopped = decoded(R"({"read": "0001-01-01T00:00:00Z",
      "cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}})");
  CHECK_FALSE(stopped.read_at);
  for (const char* const body :
       {R"({"read": "2026-11-29T12:00:00Z"})",
        R"({"read": "2026-11-29T12:00:00Z", "cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}})",
        R"({"read": "2026-11-29T12:00:00Z", "cpu_stats": null, "memory_stats": {"usage": 5000}})",
        R"({"read": "2026-11-29T12:00:00Z", "cpu_stats": {"cpu_usage": {"total_usage": "7"}},
            "memory_stats": {"usage": 5000, "stats": {"total_inactive_file": 5000}}})",
        R"({"read": "2026-11-29T12:00:00Z", "cpu_stats": {"cpu_usage": {"total_usage": -7}},
            "memory_stats": {"usage": 0, "stats": {"total_inactive_file": 0}}})"}) {
    INFO(body);
    const ContainerStats stats = decoded(body);
    CHECK(stats.read_at);
    CHECK_FALSE(stats.cpu_ns);
    CHECK_FALSE(stats.working_set);
  }
  for (const char* const body : {"", "[]", "{", "null"}) CHECK_FALSE(decode_stats(body));
}
