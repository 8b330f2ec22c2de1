#include "vk-provider/net/channel_frames.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using base::ErrorKind;
using net::ChannelDecoder;
using net::ChannelFormat;

namespace {

ChannelFormat format(bool base64, bool half_close = false) {
  ChannelFormat out;
  out.base64 = base64;
  out.half_close = half_close;
  return out;
}

/// One message in pieces of so many bytes: the channel and its bytes, or what went wrong.
std::string decode(ChannelDecoder& decoder, const std::string& message, size_t piece) {
  std::string out;
  for (size_t at = 0; at < message.size(); at += piece) {
    const auto event = decoder.feed(message.substr(at, piece), at + piece >= message.size());
    if (!event) return event.error().message;
    if (!*event) continue;
    if (out.empty()) out = std::to_string((*event)->channel) + ((*event)->end ? " ends" : ":");
    out += (*event)->bytes;
  }
  return out;
}

}  // namespace

TEST_CASE("channels: a byte says whose bytes they are") {
  ChannelDecoder decoder(format(false));
  for (const size_t piece : {size_t{100}, size_t{1}, size_t{2}}) {
    CHECK(decode(decoder, std::string("\0hello", 6), piece) == "0:hello");
    CHECK(decode(decoder, "\x04{}", piece) == "4:{}");
    CHECK(decode(decoder, "\x01", piece) == "");
    CHECK(decode(decoder, "\xff\x01", piece) == "255:\x01");
  }
  CHECK(decoder.feed("", true)->has_value() == false);
  CHECK(net::encode_channel(format(false), 1, "out") == "\x01out");
  CHECK(net::encode_channel(format(false), 2, "") == "\x02");
}

TEST_CASE("channels: a digit and base64, in whatever pieces they come") {
  ChannelDecoder decoder(format(true));
  for (const size_t piece : {size_t{100}, size_t{1}, size_t{2}, size_t{3}, size_t{5}}) {
    CHECK(decode(decoder, "0aGVsbG8=", piece) == "0:hello");
    CHECK(decode(decoder, "4e30=", piece) == "4:{}");
    CHECK(decode(decoder, "1", piece) == "");
  }
  CHECK(net::encode_channel(format(true), 1, "hello") == "1aGVsbG8=");
  CHECK(net::encode_channel(format(true), 3, "") == "3");
  CHECK(decode(decoder, "0aGVsbG8", 100) == "a message is not the base64 that its sub-protocol asks for");
}

TEST_CASE("channels: in v5 a message ends a channel") {
  ChannelDecoder decoder(format(false, true));
  for (const size_t piece : {size_t{100}, size_t{1}}) {
    CHECK(decode(decoder, std::string("\xff\0", 2), piece) == "0 ends");
    CHECK(decode(decoder, std::string("\0x", 2), piece) == "0:x");
    CHECK(decode(decoder, "\xff\x04", piece) == "4 ends");
  }
  const std::string refusal = "the end of a channel must name one channel, in one byte";
  CHECK(decode(decoder, "\xff", 1) == refusal);
  ChannelDecoder second(format(false, true));
  CHECK(decode(second, std::string("\xff\0\0", 3), 100) == refusal);
  ChannelDecoder third(format(false, true));
  CHECK(decode(third, std::string("\xff\0\0", 3), 1) == refusal);
}
