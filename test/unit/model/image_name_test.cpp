#include "vk-provider/model/image_name.hpp"

#include <catch2/catch.hpp>

namespace spillway::model {
namespace {

TEST_CASE("names that a registry client can parse") {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  for (const std::string& image :
       {std::string("a"), std::string("busybox:1.36"), std::string("library/busybox"),
        std::string("host.example:5000/team/app_x/b__c/d---e:V1.0_rc-1"), "app" + digest, "app:1" + digest,
        std::string("localhost/x"), std::string("REG.example/x"), std::string("HOST/x"), std::string("[::1]:5000/x"),
        std::string("10.0.0.1:80/x"), std::string("a:latest"), std::string("app:A")}) {
    CAPTURE(image);
    CHECK_FALSE(image_name_fault(image));
  }
}

TEST_CASE("names that none can parse are told with the reason") {
  const auto fault = [](const std::string& image) { return image_name_fault(image).value_or("(fine)"); };
  CHECK(fault("") == "no image is named");
  CHECK(fault("docker://app:1") ==
        "'docker://app:1' is no name of an image: leave out what stands before and with ://");
  CHECK_THAT(fault("App:1"), Catch::Contains("lower case"));
  CHECK_THAT(fault("team/App"), Catch::Contains("lower case"));
  CHECK_THAT(fault("my app"), Catch::Contains("white space"));
  CHECK_THAT(fault(" app"), Catch::Contains("white space"));
  CHECK_THAT(fault("app:"), Catch::Contains("no tag"));
  CHECK_THAT(fault("app:a b"), Catch::Contains("white space"));
  CHECK_THAT(fault("app:" + std::string(129, 'a')), Catch::Contains("no tag"));
  CHECK_THAT(fault("app@sha256:12"), Catch::Contains("no digest"));
  CHECK_THAT(fault("app@"), Catch::Contains("no digest"));
  CHECK_THAT(fault("host:port/app"), Catch::Contains("no host name"));
  CHECK_THAT(fault("-bad.example/app"), Catch::Contains("no host name"));
  for (const char* bad : {"a//b", "/a", "a/", "a..b", "a___b", "-a", "a.", "a$b", "$(image)"}) {
    CAPTURE(bad);
    CHECK_THAT(fault(bad), Catch::Contains("its parts are"));
  }
  CHECK_THAT(fault(std::string(256, 'a')), Catch::Contains("255"));
}

}  // namespace
}  // namespace spillway::model
