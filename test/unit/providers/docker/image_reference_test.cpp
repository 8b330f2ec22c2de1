#include "providers/docker/image_reference.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using namespace spillway::providers::docker;

namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

void check(const std::string& name, const std::string& repository, const std::string& tag, const std::string& digest) {
  INFO(name);
  const auto reference = parse_image(name);
  REQUIRE(reference);
  CHECK(reference->repository == repository);
  CHECK(reference->tag == tag);
  CHECK(reference->digest == digest);
}

}  // namespace

TEST_CASE("image reference: a name without a version means latest, as everywhere in Kubernetes") {
  check("busybox", "busybox", "latest", "");
  check("registry.example:5000/team/app", "registry.example:5000/team/app", "latest", "");
}

TEST_CASE("image reference: tags and digests") {
  check("busybox:1.36", "busybox", "1.36", "");
  check("localhost:5000/a/b__c:V1_x.y-z", "localhost:5000/a/b__c", "V1_x.y-z", "");
  check("Registry.Example/a--b.c", "Registry.Example/a--b.c", "latest", "");
  check("[2001:db8::1]:5000/a", "[2001:db8::1]:5000/a", "latest", "");
  check("a@" + kDigest, "a", "", kDigest);
  check("a:1@" + kDigest, "a", "1", kDigest);
  CHECK(parse_image("a:1@" + kDigest)->version() == kDigest);
  CHECK(parse_image("a:1")->version() == "1");
}

TEST_CASE("image reference: malformed names are told from missing images") {
  for (const char* const bad : {"",
                                " ",
                                "UPPER",
                                "a b",
                                "a:",
                                ":tag",
                                "/a",
                                "a/",
                                "a//b",
                                "a..b",
                                "-a",
                                "a_",
                                "a___b",
                                "a:.x",
                                "a:x/y:z?",
                                "../../containers/x",
                                "a?b=c",
                                "a#b",
                                "host:port/a",
                                "a@sha256:xyz",
                                "a@",
                                "http://a/b",
                                "x%2f..",
                                "a.b_c.example/x:y:z",
                                "ex ample.com/a"}) {
    INFO(bad);
    const auto reference = parse_image(bad);
    REQUIRE_FALSE(reference);
    CHECK(reference.error().kind == base::ErrorKind::kImage);
    CHECK(reference.error().message.contains("invalid reference format"));
  }
  CHECK(parse_image("a/Upper").error().message ==
        "couldn't parse image name \"a/Upper\": invalid reference format: repository name must be lowercase");
  CHECK_FALSE(parse_image(std::string(256, 'a')));
  CHECK_FALSE(parse_image("a:" + std::string(129, 'a')));
}
