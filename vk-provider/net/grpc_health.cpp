#include "vk-provider/net/grpc_health.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace spillway::net {
namespace {

using base::ErrorKind;

enum FrameType : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kGoAway = 7 };
constexpr std::uint8_t kAck = 1;
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::uint8_t kPadded = 8;
constexpr size_t kFrameHead = 9;
constexpr size_t kLargestFrame = 16384;  // what we allow by saying nothing
constexpr std::uint32_t kStream = 1;

struct Frame {
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
};

void append_number(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xffU);
}

std::string encode_frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  std::string out;
  append_number(out, payload.size(), 3);
  append_number(out, type, 1);
  append_number(out, flags, 1);
  append_number(out, stream, 4);
  out += payload;
  return out;
}

/// A length of HPACK with a prefix of seven bits, or a varint of protobuf: both end with the first byte under 128.
void append_length(std::string& out, size_t length, bool hpack) {
  if (hpack && length < 127) {
    out += static_cast<char>(length);
    return;
  }
  if (hpack) {
    out += static_cast<char>(127);
    length -= 127;
  }
  for (; length >= 128; length >>= 7U) out += static_cast<char>((length & 127U) | 128U);
  out += static_cast<char>(length);
}

/// A literal field that is never indexed, without Huffman coding: RFC 7541, 6.2.2.
void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += '\0';
  append_length(out, name.size(), true);
  out += name;
  append_length(out, value.size(), true);
  out += value;
}

std::string request_bytes(const std::string& service) {
  std::string fields;
  append_field(fields, ":method", "POST");
  append_field(fields, ":scheme", "http");
  append_field(fields, ":path", "/grpc.health.v1.Health/Check");
  append_field(fields, ":authority", "localhost");
  append_field(fields, "content-type", "application/grpc");
  append_field(fields, "user-agent", "kube-probe/spillway");
  append_field(fields, "te", "trailers");
  std::string message;  // HealthCheckRequest{service = 1}
  if (!service.empty()) {
    message += '\x0a';
    append_length(message, service.size(), false);
    message += service;
  }
  std::string body(1, '\0');  // not compressed
  append_number(body, message.size(), 4);
  body += message;
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + encode_frame(kSettings, 0, 0, {}) +
         encode_frame(kHeaders, kEndHeaders, kStream, fields) + encode_frame(kData, kEndStream, kStream, body);
}

std::uint32_t number_at(std::string_view bytes, size_t at, size_t count) {
  std::uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = (value << 8U) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// The first frame of `input`, taken out; empty if it is not complete.
std::optional<Frame> take_frame(std::string& input) {
  if (input.size() < kFrameHead) return std::nullopt;
  const size_t length = number_at(input, 0, 3);
  if (length <= kLargestFrame && input.size() < kFrameHead + length) return std::nullopt;
  Frame frame;
  frame.type = static_cast<std::uint8_t>(input[3]);
  frame.flags = static_cast<std::uint8_t>(input[4]);
  frame.stream = number_at(input, 5, 4) & 0x7fffffffU;
  if (length > kLargestFrame) frame.type = kGoAway;  // no peer that keeps the rules sends it
  frame.payload = input.substr(kFrameHead, length);
  input.erase(0, kFrameHead + length);
  return frame;
}

std::string_view data_of(const Frame& frame) {
  std::string_view data = frame.payload;
  if ((frame.flags & kPadded) == 0 || data.empty()) return data;
  const size_t padding = static_cast<unsigned char>(data.front());
  data.remove_prefix(1);
  return data.substr(0, data.size() - std::min(padding, data.size()));
}

/// HealthCheckResponse{status = 1}: UNKNOWN 0, SERVING 1, NOT_SERVING 2, SERVICE_UNKNOWN 3.
bool is_serving(std::string_view message) {
  constexpr std::string_view kServing("\0\0\0\0\2\x08\1", 7);
  return message == kServing;
}

base::Error no_answer(const std::string& why) { return base::Error(ErrorKind::kInvalid, "gRPC health check: " + why); }

}  // namespace

async::Task<void> check_grpc_health(async::ByteStream& stream, std::string service, base::Deadline deadline) {
  auto sent = co_await stream.write(request_bytes(service), deadline);
  if (!sent) co_return base::fail(std::move(sent.error()));
  std::string input;
  std::string message;
  for (;;) {
    const std::optional<Frame> frame = take_frame(input);
    if (!frame) {
      auto more = co_await stream.read(deadline);
      if (!more) co_return base::fail(std::move(more.error()));
      if (more->empty()) co_return base::fail(no_answer("the peer closed the connection before it answered"));
      input += *more;
      continue;
    }
    const bool ack = (frame->flags & kAck) != 0;
    std::string reply;
    if (frame->type == kSettings && !ack) reply = encode_frame(kSettings, kAck, 0, {});
    if (frame->type == kPing && !ack) reply = encode_frame(kPing, kAck, 0, frame->payload);
    if (!reply.empty()) {
      sent = co_await stream.write(std::move(reply), deadline);
      if (!sent) co_return base::fail(std::move(sent.error()));
    }
    if (frame->type == kGoAway || (frame->type == kReset && frame->stream == kStream)) {
      co_return base::fail(no_answer("the peer does not answer it"));
    }
    if (frame->stream != kStream || (frame->type != kData && frame->type != kHeaders)) continue;
    if (frame->type == kData) message += data_of(*frame);
    if (is_serving(message)) co_return base::Result<void>();
    if ((frame->flags & kEndStream) != 0) {
      co_return base::fail(no_answer(message.empty() ? "it answered with an error" : "it is not SERVING"));
    }
  }
}

}  // namespace spillway::net
