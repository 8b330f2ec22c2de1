#include "providers/docker/pull_auth.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "vk-provider/net/digest.hpp"

using namespace spillway;
using namespace spillway::providers::docker;

namespace {

model::PullAuth auth(const std::string& registry, const std::string& user = "u") {
  model::PullAuth out;
  out.registry = registry;
  out.username = user;
  out.password = base::Secret("canary-of-" + user);
  return out;
}

bool matches(const std::string& registry, const std::string& repository) {
  return matching_auth({auth(registry)}, repository).size() == 1;
}

}  // namespace

TEST_CASE("docker pull auth: the registry of a repository") {
  CHECK(registry_of("busybox") == "docker.io");
  CHECK(registry_of("team/app") == "docker.io");
  CHECK(registry_of("index.docker.io/team/app") == "docker.io");
  CHECK(registry_of("localhost/app") == "localhost");
  CHECK(registry_of("registry.example:5000/team/app") == "registry.example:5000");
}

TEST_CASE("docker pull auth: Docker's hub goes by several names") {
  for (const std::string hub : {"https://index.docker.io/v1/", "index.docker.io/v1/", "index.docker.io", "docker.io",
                                "registry-1.docker.io", "https://docker.io", "registry-1.docker.io/v2/"}) {
    for (const std::string image : {"busybox", "team/app", "docker.io/team/app", "index.docker.io/library/busybox"}) {
      INFO(hub << " for " << image);
      CHECK(matches(hub, image));
    }
    CHECK_FALSE(matches(hub, "quay.io/team/app"));
  }
  CHECK(matches("docker.io/team", "team/app"));
  CHECK_FALSE(matches("docker.io/team", "other/app"));
}

TEST_CASE("docker pull auth: host, port and path decide, and a star stands for a part of a name") {
  CHECK(matches("r.example", "r.example/a"));
  CHECK(matches("http://r.example/", "r.example/a"));
  CHECK(matches("r.example/v2/team", "r.example/team/a"));
  CHECK_FALSE(matches("r.example", "r.example:5000/a"));
  CHECK_FALSE(matches("r.example:5000", "r.example/a"));
  CHECK_FALSE(matches("example", "r.example/a"));
  CHECK(matches("r.example/team", "r.example/team"));
  CHECK(matches("r.example/team/", "r.example/team/a/b"));
  CHECK_FALSE(matches("r.example/team", "r.example/team2/a"));
  CHECK(matches("*.example", "r.example/a"));
  CHECK(matches("r-*.ecr.*.example:5000", "r-7.ecr.east.example:5000/a"));
  CHECK_FALSE(matches("*.example", "a.b.example/a"));
  CHECK_FALSE(matches("*", "r.example/a"));
  CHECK_FALSE(matches("", "r.example/a"));
}

TEST_CASE("docker pull auth: the longest path first, and what is equal in the order of the pod") {
  const std::vector<model::PullAuth> all = {auth("r.example", "one"), auth("other.example", "foreign"),
                                            auth("r.example/team", "two"), auth("https://r.example/v1/", "three"),
                                            auth("r.example/team/app", "four")};
  std::string order;
  for (const model::PullAuth& a : matching_auth(all, "r.example/team/app")) order += a.username + " ";
  CHECK(order == "four two one three ");
}

TEST_CASE("docker pull auth: the header is base64 for URLs of an object") {
  model::PullAuth odd = auth("r.example", "ünï?>~");
  odd.password = base::Secret("pa\"ss?>~\xc3\xbf");
  const std::string header = encode_registry_auth(odd, "r.example").reveal();
  CHECK(header.find_first_of("+/") == std::string::npos);
  std::string standard = header;
  for (char& c : standard) c = c == '-' ? '+' : c == '_' ? '/' : c;
  const auto text = net::base64_decode(standard);
  REQUIRE(text);
  const auto node = nlohmann::json::parse(*text);
  CHECK(node["username"] == "ünï?>~");
  CHECK(node["password"] == "pa\"ss?>~\xc3\xbf");
  CHECK(node["serveraddress"] == "r.example");
  odd.password = base::Secret("\xff");
  CHECK(encode_registry_auth(odd, "r.example").empty());
}

TEST_CASE("docker pull auth: a password that comes back is taken out") {
  CHECK(without_secret("denied for canary and canary", base::Secret("canary")) == "denied for *** and ***");
  CHECK(without_secret("denied", base::Secret("e")) == "denied");
  CHECK(without_secret("denied", base::Secret()) == "denied");
  CHECK(without_secret("a****b", base::Secret("****")) == "a***b");
}
