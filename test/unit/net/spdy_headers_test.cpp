#include "vk-provider/net/spdy_headers.hpp"

#include <catch2/catch.hpp>

#include <zlib.h>

#include "test/support/says.hpp"

using namespace spillway;
using base::ErrorKind;
using net::Header;
using net::spdy::HeaderDecoder;
using net::spdy::HeaderEncoder;
using test::says;
using Headers = std::vector<Header>;

namespace {

std::string from_hex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

std::string number(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
  return out;
}

std::string text(const std::string& value) { return number(static_cast<std::uint32_t>(value.size())) + value; }

/// As a client of one's own would do it: zlib, with the dictionary or another one.
std::string compress(const std::string& block, const std::string& dictionary = net::spdy::dictionary()) {
  z_stream z{};
  REQUIRE(deflateInit(&z, 9) == Z_OK);
  REQUIRE(deflateSetDictionary(&z, reinterpret_cast<const Bytef*>(dictionary.data()),
                               static_cast<uInt>(dictionary.size())) == Z_OK);
  std::string out(block.size() + 1000, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(block.data()));
  z.avail_in = static_cast<uInt>(block.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_SYNC_FLUSH) == Z_OK);
  out.resize(out.size() - z.avail_out);
  deflateEnd(&z);
  return out;
}

}  // namespace

TEST_CASE("SPDY headers: the dictionary is that of the protocol") {
  const std::string& dictionary = net::spdy::dictionary();
  CHECK(dictionary.size() == 1423);
  CHECK(adler32(1, reinterpret_cast<const Bytef*>(dictionary.data()), static_cast<uInt>(dictionary.size())) ==
        0xe3c6a7c2);
}

TEST_CASE("SPDY headers: blocks of another implementation, each compressed with the ones before") {
  HeaderDecoder decoder;
  const auto first = decoder.decode(from_hex("78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff"));
  REQUIRE(first);
  CHECK(*first == Headers{{"streamtype", "error"}});
  const auto second = decoder.decode(from_hex("02651c4ca9e212607601650a600c833345224312000000ffff"));
  REQUIRE(second);
  CHECK(*second == Headers{{"streamtype", "stdin"}, {"many", "a"}, {"many", "b"}});
}

TEST_CASE("SPDY headers: what we write is read again") {
  HeaderEncoder encoder;
  HeaderDecoder decoder;
  const std::string empty = encoder.encode({});
  CHECK(empty.size() == 16);
  CHECK(decoder.decode(empty)->empty());
  const Headers some = {{"streamType", "data"}, {"port", "80"}, {"long", std::string(10'000, 'x')}};
  const auto read = decoder.decode(encoder.encode(some));
  REQUIRE(read);
  CHECK(*read == Headers{{"streamtype", "data"}, {"port", "80"}, {"long", std::string(10'000, 'x')}});
  CHECK(decoder.decode(encoder.encode({{"a", ""}}))->size() == 1);
}

TEST_CASE("SPDY headers: a bomb goes off in a bounded room") {
  const std::string block = number(1) + text("a") + text(std::string(1 << 20, 'x'));
  const std::string bomb = compress(block);
  REQUIRE(bomb.size() < 2000);
  const auto read = HeaderDecoder().decode(bomb);
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == ErrorKind::kInvalid);
  CHECK(says(read.error().message, "more than 16384 bytes"));
  std::string many = number(129);
  for (int i = 0; i < 129; ++i) many += text("n") + text("");
  CHECK(says(HeaderDecoder().decode(compress(many)).error().message, "more than 128"));
  const std::string values = number(1) + text("n") + text(std::string(200, '\0'));
  CHECK(says(HeaderDecoder().decode(compress(values)).error().message, "more than 128"));
}

TEST_CASE("SPDY headers: what is malformed is refused") {
  const auto refused = [](const std::string& bytes) {
    const auto read = HeaderDecoder().decode(bytes);
    return !read && read.error().kind == ErrorKind::kInvalid;
  };
  CHECK(refused(""));
  CHECK(refused("\x78"));
  CHECK(refused("rubbish"));
  CHECK(refused(compress(number(0), "another dictionary")));
  CHECK(refused(compress(number(1))));
  CHECK(refused(compress(number(1) + number(0xffffffff) + "a")));
  CHECK(refused(compress(number(1) + text("a") + number(5) + "b")));
  CHECK(refused(compress(number(1) + text("") + text("b"))));
  CHECK(refused(compress(number(0) + "more")));
  CHECK(refused(compress(number(0xffffffff))));
}
