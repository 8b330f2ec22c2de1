#include "vk-provider/net/spdy_frames.hpp"

#include <algorithm>
#include <utility>

namespace spillway::net::spdy {
namespace {

using base::ErrorKind;

constexpr std::size_t kHead = 8;
constexpr std::uint32_t kControlBit = 0x80000000U;
constexpr std::uint32_t kVersion = 3;
constexpr std::uint8_t kFin = 1;

enum ControlType : std::uint16_t {
  kSynStream = 1,
  kSynReply = 2,
  kRstStream = 3,
  kPingType = 6,
  kGoAwayType = 7,
  kHeadersType = 8
};

std::unexpected<base::Error> malformed(const std::string& why) {
  return base::fail(ErrorKind::kInvalid, "SPDY: " + why);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8U) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::uint32_t stream_at(std::string_view bytes, std::size_t at) { return number_at(bytes, at) & ~kControlBit; }

void append_number(std::string& out, std::uint32_t value) {
  for (unsigned shift = 32; shift > 0; shift -= 8) out += static_cast<char>((value >> (shift - 8)) & 0xffU);
}

std::string begin_control(ControlType type, std::size_t length) {
  std::string out;
  out.reserve(kHead + length);
  append_number(out, kControlBit | (kVersion << 16U) | type);
  append_number(out, static_cast<std::uint32_t>(length));
  return out;
}

/// How long a control frame of a type may be; both the same if it has one length only. Empty: it is skipped.
struct Lengths {
  std::size_t least;
  std::size_t most;
};
std::optional<Lengths> lengths_of(std::uint16_t type) {
  switch (type) {
    case kSynStream: return Lengths{10, kMaxControl};
    case kSynReply:
    case kHeadersType: return Lengths{4, kMaxControl};
    case kRstStream:
    case kGoAwayType: return Lengths{8, 8};
    case kPingType: return Lengths{4, 4};
    default: return std::nullopt;
  }
}

}  // namespace

base::Result<std::optional<Frame>> FrameDecoder::next(std::string_view& input) {
  for (;;) {
    if (!frame_) {
      const std::size_t n = std::min(kHead - head_.size(), input.size());
      head_ += input.substr(0, n);
      input.remove_prefix(n);
      if (head_.size() < kHead) return std::optional<Frame>();
      auto begun = begin();
      if (!begun) return base::fail(std::move(begun.error()));
    }
    if (!frame_->control) {
      auto data = take_data(input);
      if (data || input.empty()) return data;
      continue;
    }
    const std::size_t n = std::min(frame_->left, input.size());
    if (!frame_->skipped) payload_ += input.substr(0, n);
    input.remove_prefix(n);
    frame_->left -= n;
    if (frame_->left > 0) return std::optional<Frame>();
    if (!frame_->skipped) return read_control();
    frame_.reset();
  }
}

base::Result<void> FrameDecoder::begin() {
  const std::uint32_t first = number_at(head_, 0);
  const std::uint32_t second = number_at(head_, 4);
  head_.clear();
  Begun begun;
  begun.flags = static_cast<std::uint8_t>(second >> 24U);
  begun.left = second & 0xffffffU;
  begun.control = (first & kControlBit) != 0;
  if (!begun.control) {
    begun.stream = first;
    if (first == 0) return malformed("data for stream 0");
    frame_ = begun;
    return {};
  }
  const std::uint32_t version = (first & ~kControlBit) >> 16U;
  if (version != kVersion) return malformed("version " + std::to_string(version) + " is not spoken here");
  begun.type = static_cast<std::uint16_t>(first & 0xffffU);
  const std::optional<Lengths> lengths = lengths_of(begun.type);
  begun.skipped = !lengths;
  if (lengths && (begun.left < lengths->least || begun.left > lengths->most)) {
    return malformed("a frame of type " + std::to_string(begun.type) + " with " + std::to_string(begun.left) +
                     " bytes");
  }
  frame_ = begun;
  return {};
}

/// Empty frames that end nothing are skipped.
std::optional<Frame> FrameDecoder::take_data(std::string_view& input) {
  Frame frame;
  frame.stream = frame_->stream;
  frame.data = input.substr(0, std::min(frame_->left, input.size()));
  input.remove_prefix(frame.data.size());
  frame_->left -= frame.data.size();
  const bool over = frame_->left == 0;
  frame.last = over && (frame_->flags & kFin) != 0;
  if (over) frame_.reset();
  if (frame.data.empty() && !frame.last) return std::nullopt;
  return frame;
}

base::Result<std::optional<Frame>> FrameDecoder::read_control() {
  const Begun begun = *std::exchange(frame_, std::nullopt);
  const std::string payload = std::exchange(payload_, std::string());
  Frame frame;
  frame.last = (begun.flags & kFin) != 0;
  std::size_t headers_at = 0;
  switch (begun.type) {
    case kSynStream:
      frame.type = FrameType::kOpen;
      headers_at = 10;  // after the stream, the stream that it belongs to, priority and slot
      break;
    case kSynReply:
      frame.type = FrameType::kReply;
      headers_at = 4;
      break;
    case kHeadersType:
      frame.type = FrameType::kHeaders;
      headers_at = 4;
      break;
    case kRstStream: frame.type = FrameType::kReset; break;
    case kGoAwayType: frame.type = FrameType::kGoAway; break;
    default: frame.type = FrameType::kPing; break;
  }
  if (frame.type == FrameType::kPing) {
    frame.number = number_at(payload, 0);
    return frame;
  }
  frame.stream = stream_at(payload, 0);
  if (frame.type == FrameType::kReset || frame.type == FrameType::kGoAway) frame.number = number_at(payload, 4);
  if (frame.stream == 0 && frame.type != FrameType::kGoAway) return malformed("a frame for stream 0");
  if (headers_at > 0) {
    auto headers = headers_.decode(std::string_view(payload).substr(headers_at));
    if (!headers) return base::fail(std::move(headers.error()));
    frame.headers = std::move(*headers);
  }
  return frame;
}

std::string FrameEncoder::open(std::uint32_t stream, const std::vector<Header>& headers) {
  const std::string block = headers_.encode(headers);
  std::string out = begin_control(kSynStream, 10 + block.size());
  append_number(out, stream);
  append_number(out, 0);
  out.append(2, '\0');
  return out + block;
}

std::string FrameEncoder::reply(std::uint32_t stream, const std::vector<Header>& headers) {
  const std::string block = headers_.encode(headers);
  std::string out = begin_control(kSynReply, 4 + block.size());
  append_number(out, stream);
  return out + block;
}

std::string FrameEncoder::data(std::uint32_t stream, std::string_view bytes, bool last) {
  std::string out;
  out.reserve(kHead + bytes.size());
  append_number(out, stream);
  append_number(out, (last ? static_cast<std::uint32_t>(kFin) << 24U : 0U) | static_cast<std::uint32_t>(bytes.size()));
  out += bytes;
  return out;
}

std::string FrameEncoder::reset(std::uint32_t stream, std::uint32_t status) {
  std::string out = begin_control(kRstStream, 8);
  append_number(out, stream);
  append_number(out, status);
  return out;
}

std::string FrameEncoder::ping(std::uint32_t id) {
  std::string out = begin_control(kPingType, 4);
  append_number(out, id);
  return out;
}

std::string FrameEncoder::go_away(std::uint32_t last_stream) {
  std::string out = begin_control(kGoAwayType, 8);
  append_number(out, last_stream);
  append_number(out, 0);
  return out;
}

}  // namespace spillway::net::spdy
