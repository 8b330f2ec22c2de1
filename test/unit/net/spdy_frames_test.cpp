#include "vk-provider/net/spdy_frames.hpp"

#include <catch2/catch.hpp>

#include "test/support/says.hpp"

using namespace spillway;
using namespace spillway::net::spdy;
using base::ErrorKind;
using test::says;

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

/// Each frame as a line; data of one frame that came in parts is joined.
std::string describe(const Frame& frame) {
  static constexpr const char* kNames[] = {"data", "open", "reply", "headers", "reset", "ping", "goaway"};
  std::string out = std::string(kNames[static_cast<int>(frame.type)]) + " " + std::to_string(frame.stream);
  if (frame.number != 0) out += " #" + std::to_string(frame.number);
  for (const auto& [name, value] : frame.headers) out += " " + name + "=" + value;
  if (!frame.data.empty()) out += " " + std::string(frame.data);
  if (frame.last) out += " last";
  return out;
}

/// Fed in pieces of so many bytes; ends with what went wrong, if something did.
std::vector<std::string> decode(const std::string& input, size_t piece) {
  FrameDecoder decoder;
  std::vector<std::string> out;
  for (size_t at = 0; at < input.size(); at += piece) {
    std::string_view rest = std::string_view(input).substr(at, piece);
    for (;;) {
      const auto frame = decoder.next(rest);
      if (!frame) {
        out.push_back(frame.error().message);
        return out;
      }
      if (!*frame) break;
      out.push_back(describe(**frame));
    }
    CHECK(rest.empty());
  }
  return out;
}

std::string refusal(const std::string& input) {
  const auto lines = decode(input, input.size());
  return lines.empty() ? "" : lines.back();
}

}  // namespace

TEST_CASE("SPDY frames: what is written is read again, in whatever pieces it comes") {
  FrameEncoder encoder;
  const std::string input = encoder.open(1, {{"streamType", "stdin"}}) + encoder.open(3, {}) +
                            FrameEncoder::data(1, "x", false) + FrameEncoder::ping(7) + encoder.reply(1, {}) +
                            FrameEncoder::reset(3, kCancel) + FrameEncoder::data(1, "", true) +
                            FrameEncoder::go_away(3);
  const std::vector<std::string> expected = {
      "open 1 streamtype=stdin", "open 3", "data 1 x", "ping 0 #7", "reply 1", "reset 3 #5", "data 1 last", "goaway 3"};
  for (const size_t piece : {input.size(), size_t{1}, size_t{7}}) CHECK(decode(input, piece) == expected);
}

TEST_CASE("SPDY frames: data is handed out as it comes, and the end with the last of it") {
  const std::string frame = FrameEncoder::data(5, "abcdef", true);
  CHECK(decode(frame, 10) == std::vector<std::string>{"data 5 ab", "data 5 cdef last"});
  CHECK(decode(FrameEncoder::data(5, "abcd", true) + FrameEncoder::data(7, "", false), 12) ==
        std::vector<std::string>{"data 5 abcd last"});
  FrameDecoder decoder;
  // A frame of 16 MiB is not waited for.
  std::string begin = bytes({0, 0, 0, 1, 0, 0xff, 0xff, 0xff}) + std::string(1000, 'x');
  std::string_view rest = begin;
  const auto part = decoder.next(rest);
  REQUIRE(part);
  REQUIRE(*part);
  CHECK((*part)->data.size() == 1000);
}

TEST_CASE("SPDY frames: the bytes are those of the protocol") {
  FrameEncoder encoder;
  CHECK(FrameEncoder::data(1, "hi", true) == bytes({0, 0, 0, 1, 1, 0, 0, 2, 'h', 'i'}));
  CHECK(FrameEncoder::ping(2) == bytes({0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2}));
  CHECK(FrameEncoder::reset(3, 5) == bytes({0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 5}));
  CHECK(FrameEncoder::go_away(9) == bytes({0x80, 3, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0}));
  CHECK(encoder.reply(1, {}).substr(0, 12) == bytes({0x80, 3, 0, 2, 0, 0, 0, 20, 0, 0, 0, 1}));
}

TEST_CASE("SPDY frames: settings, windows and what is unknown are skipped") {
  const std::string input = bytes({0x80, 3, 0, 4, 0, 0, 0, 12}) + std::string(12, 'x') +
                            bytes({0x80, 3, 0, 9, 0, 0, 0, 8}) + std::string(8, 'x') +
                            bytes({0x80, 3, 0x7f, 1, 0, 0, 0, 0}) + FrameEncoder::ping(1);
  for (const size_t piece : {input.size(), size_t{1}}) {
    CHECK(decode(input, piece) == std::vector<std::string>{"ping 0 #1"});
  }
}

TEST_CASE("SPDY frames: what breaks the rules is refused at its head") {
  CHECK(says(refusal(bytes({0x80, 2, 0, 6, 0, 0, 0, 4})), "version 2"));
  CHECK(says(refusal("GET / HTTP/1.1"), "data for stream") == false);  // the head of a data frame, by its bytes
  CHECK(says(refusal(bytes({0, 0, 0, 0, 0, 0, 0, 1, 'x'})), "stream 0"));
  CHECK(says(refusal(bytes({0x80, 3, 0, 6, 0, 0, 0, 5})), "type 6 with 5 bytes"));
  CHECK(says(refusal(bytes({0x80, 3, 0, 3, 0, 0, 0, 4})), "type 3 with 4 bytes"));
  CHECK(says(refusal(bytes({0x80, 3, 0, 1, 0, 0, 0, 9})), "type 1 with 9 bytes"));
  CHECK(says(refusal(bytes({0x80, 3, 0, 1, 0, 1, 0, 0})), "type 1 with 65536 bytes"));
  CHECK(says(refusal(bytes({0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1})), "stream 0"));
  CHECK(says(refusal(bytes({0x80, 3, 0, 1, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 'x', 'y'})), "SPDY headers"));
}
