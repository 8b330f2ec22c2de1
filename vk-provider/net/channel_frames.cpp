#include "vk-provider/net/channel_frames.hpp"

#include <utility>

#include "vk-provider/net/digest.hpp"

namespace spillway::net {
namespace {

using base::ErrorKind;

constexpr std::uint8_t kEnd = 255;

}  // namespace

base::Result<std::optional<ChannelEvent>> ChannelDecoder::feed(std::string_view part, bool last) {
  if (!channel_) {
    if (part.empty()) return std::optional<ChannelEvent>();
    const auto first = static_cast<std::uint8_t>(part.front());
    channel_ = format_.base64 ? static_cast<std::uint8_t>(first - '0') : first;
    part.remove_prefix(1);
  }
  if (format_.half_close && *channel_ == kEnd) return feed_end(part, last);
  ChannelEvent event;
  event.channel = *channel_;
  if (last) channel_.reset();
  auto bytes = decode(part, last);
  if (!bytes) return base::fail(std::move(bytes.error()));
  if (bytes->empty()) return std::optional<ChannelEvent>();
  event.bytes = std::move(*bytes);
  return event;
}

base::Result<std::optional<ChannelEvent>> ChannelDecoder::feed_end(std::string_view part, bool last) {
  rest_ += part.substr(0, 2);
  const bool wrong = rest_.size() > 1 || part.size() > 1 || (last && rest_.empty());
  if (wrong) return base::fail(ErrorKind::kInvalid, "the end of a channel must name one channel, in one byte");
  if (!last) return std::optional<ChannelEvent>();
  ChannelEvent event;
  event.channel = static_cast<std::uint8_t>(rest_.front());
  event.end = true;
  rest_.clear();
  channel_.reset();
  return event;
}

base::Result<std::string> ChannelDecoder::decode(std::string_view part, bool last) {
  if (!format_.base64) return std::string(part);
  std::string text = std::exchange(rest_, std::string());
  text += part;
  // Four characters make three bytes; the padding can only stand at the end of the message.
  const size_t whole = last ? text.size() : text.size() - text.size() % 4;
  rest_ = text.substr(whole);
  text.resize(whole);
  if (text.empty()) return std::string();
  auto bytes = base64_decode(text);
  if (bytes) return std::move(*bytes);
  return base::fail(ErrorKind::kInvalid, "a message is not the base64 that its sub-protocol asks for");
}

std::string encode_channel(ChannelFormat format, std::uint8_t channel, std::string_view bytes) {
  std::string out(1, static_cast<char>(format.base64 ? channel + '0' : channel));
  if (format.base64) return out + base64_encode(bytes);
  out.reserve(1 + bytes.size());
  return out += bytes;
}

}  // namespace spillway::net
