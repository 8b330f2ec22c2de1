#include <catch2/catch.hpp>

#include "vk-provider/net/digest.hpp"

namespace net = spillway::net;

TEST_CASE("SHA-256 gives the digests of FIPS 180-2") {
  const auto empty = net::sha256("");
  CHECK(empty[0] == 0xe3);
  CHECK(empty[31] == 0x55);
  const auto abc = net::sha256("abc");
  CHECK(abc[0] == 0xba);
  CHECK(abc[1] == 0x78);
  CHECK(abc[31] == 0xad);
}

TEST_CASE("base64 gives the vectors of RFC 4648") {
  const std::vector<std::pair<std::string, std::string>> vectors = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {std::string("\xff\x00\xfe", 3), "/wD+"},
  };
  for (const auto& [plain, encoded] : vectors) {
    CAPTURE(encoded);
    CHECK(net::base64_encode(plain) == encoded);
    CHECK(net::base64_decode(encoded) == plain);
  }
}

TEST_CASE("base64 that is not exact is refused") {
  for (const char* text :
       {"Zg", "Zg=", "Z===", "====", "=", "Zg==\n", "Zm9v Zm9v", "Zm9-", "Zh==", "Zm9=", "Zg==Zg=="}) {
    CAPTURE(text);
    CHECK_FALSE(net::base64_decode(text));
  }
}
