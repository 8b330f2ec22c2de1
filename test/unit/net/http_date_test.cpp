#include "vk-provider/net/http_date.hpp"

#include <catch2/catch.hpp>

using spillway::base::to_rfc3339;
using spillway::net::parse_http_date;

TEST_CASE("a Date header is read") {
  CHECK(to_rfc3339(parse_http_date("Tue, 01 Dec 2026 09:42:28 GMT").value()) == "2026-12-01T09:42:28Z");
  CHECK(to_rfc3339(parse_http_date("Sat, 29 Feb 2020 23:59:59 GMT").value()) == "2020-02-29T23:59:59Z");
}

TEST_CASE("what is no Date header is not taken for one") {
  for (const char* text :
       {"", "now", "Tue, 01 Dec 2026 09:42:28 UTC", "Tue, 01 Dez 2026 09:42:28 GMT", "Tue, 31 Feb 2026 09:42:28 GMT",
        "Tue, xx Dec 2026 09:42:28 GMT", "Tuesday, 01-Dec-26 09:42:28 GMT", "Tue,001 Dec 2026 09:42:28 GMT"}) {
    INFO(text);
    CHECK_FALSE(parse_http_date(text).has_value());
  }
}
