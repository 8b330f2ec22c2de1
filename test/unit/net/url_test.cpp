#include <catch2/catch.hpp>

#include "vk-provider/net/url.hpp"

namespace net = spillway::net;
using Scheme = net::Endpoint::Scheme;

TEST_CASE("what goes into a path or query is encoded") {
  CHECK(net::encode_path_segment("a-b_c.d~9") == "a-b_c.d~9");
  CHECK(net::encode_path_segment("a/b c%") == "a%2Fb%20c%25");
  CHECK(net::encode_query_value("spec.nodeName=x&y") == "spec.nodeName%3Dx%26y");
  CHECK(net::encode_query_value("\xC3\xA9") == "%C3%A9");
}

TEST_CASE("URLs are taken apart") {
  struct Case {
    const char* text;
    Scheme scheme;
    const char* host;
    std::uint16_t port;
    const char* path;
  };
  const std::vector<Case> cases = {
      {"https://api.example.com", Scheme::kHttps, "api.example.com", 443, ""},
      {"https://api.example.com/", Scheme::kHttps, "api.example.com", 443, ""},
      {"http://10.0.0.1:8080/a/b/", Scheme::kHttp, "10.0.0.1", 8080, "/a/b"},
      {"http://localhost", Scheme::kHttp, "localhost", 80, ""},
      {"https://[fd00::1]:6443", Scheme::kHttps, "fd00::1", 6443, ""},
      {"https://[::1]/k8s/clusters/c-1", Scheme::kHttps, "::1", 443, "/k8s/clusters/c-1"},
      {"https://h?x=1", Scheme::kHttps, "h", 443, "?x=1"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto url = net::parse_url(c.text);
    REQUIRE(url);
    CHECK(url->endpoint.scheme == c.scheme);
    CHECK(url->endpoint.host == c.host);
    CHECK(url->endpoint.port == c.port);
    CHECK(url->path == c.path);
  }
}

TEST_CASE("URLs that cannot be used are refused with a reason") {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"api.example.com:6443", "must begin with https://"},
      {"ftp://h", "must begin with https://"},
      {"https://", "host is missing"},
      {"https://:6443", "host is missing"},
      {"https://h:", "port"},
      {"https://h:0", "port"},
      {"https://h:65536", "port"},
      {"https://h:6x", "port"},
      {"https://::1:6443", "brackets"},
      {"https://[::1", "bracket"},
      {"https://[::1]x", "between"},
      {"https://[name]", "IPv6"},
      {"https://h/a b", "space"},
      {"https://h/#top", "fragment"},
  };
  for (const auto& [text, reason] : cases) {
    CAPTURE(text);
    const auto url = net::parse_url(text);
    REQUIRE_FALSE(url);
    CHECK(url.error().kind == spillway::base::ErrorKind::kInvalid);
    CHECK_THAT(url.error().message, Catch::Contains(reason));
  }
}

TEST_CASE("a password in a URL is refused and not repeated") {
  const auto url = net::parse_url("https://admin:hunter2@h");
  REQUIRE_FALSE(url);
  CHECK_THAT(url.error().message, Catch::Contains("user information"));
  CHECK_THAT(url.error().message, !Catch::Contains("hunter2"));
}

TEST_CASE("the Host header has brackets and a port where they are needed") {
  CHECK(net::host_header(net::parse_url("https://h:443")->endpoint) == "h");
  CHECK(net::host_header(net::parse_url("https://h:6443")->endpoint) == "h:6443");
  CHECK(net::host_header(net::parse_url("http://[::1]:80")->endpoint) == "[::1]");
  CHECK(net::host_header(net::parse_url("http://[::1]:81")->endpoint) == "[::1]:81");
  net::Endpoint local;
  local.scheme = Scheme::kUnix;
  CHECK(net::host_header(local) == "localhost");
}

TEST_CASE("a query is taken apart and decoded") {
  const net::Query query("command=ls&command=-l+%2Ftmp%zz&tty&empty=&a%3Db=c&&=x");
  CHECK(query.all("command") == std::vector<std::string>{"ls", "-l /tmp%zz"});
  CHECK(query.find("command") == "ls");
  CHECK(query.find("tty") == "");
  CHECK(query.find("empty") == "");
  CHECK(query.find("a=b") == "c");
  CHECK(query.find("") == "x");
  CHECK_FALSE(query.find("none"));
  CHECK(net::Query("").all("").empty());
}

TEST_CASE("a segment of a path is decoded, and a plus in it is a plus") {
  CHECK(net::decode_path_segment("a%2Fb+c%20d%") == "a/b+c d%");
  CHECK(net::decode_path_segment(net::encode_path_segment("ä/ b")) == "ä/ b");
}
