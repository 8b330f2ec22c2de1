// Messages of the channel.k8s.io sub-protocols: a channel's number, and bytes for it.
//
// Values. Pure; what the decoder is fed comes from anybody, and nothing of a message is collected but what base64
// needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"

namespace spillway::net {

struct ChannelFormat {
  ChannelFormat() = default;
  bool base64 = false;      // a digit and base64 in text messages, not a byte and bytes in binary ones
  bool half_close = false;  // v5: the message {255, n} ends what the client sends on channel n
};

/// What one part of a message brought.
struct ChannelEvent {
  ChannelEvent() = default;
  std::uint8_t channel = 0;
  bool end = false;  // nothing more will come on the channel
  std::string bytes;
};

class ChannelDecoder {
 public:
  explicit ChannelDecoder(ChannelFormat format) : format_(format) {}

  /// `last`: the message ends with this part. Empty if there is nothing in it. kInvalid is final.
  base::Result<std::optional<ChannelEvent>> feed(std::string_view part, bool last);

 private:
  base::Result<std::optional<ChannelEvent>> feed_end(std::string_view part, bool last);
  base::Result<std::string> decode(std::string_view part, bool last);

  ChannelFormat format_;
  std::optional<std::uint8_t> channel_;  // of the message that has begun
  std::string rest_;                     // of its base64, or of {255, n}
};

/// A message of channel n, which must be under 10 with base64.
std::string encode_channel(ChannelFormat format, std::uint8_t channel, std::string_view bytes);

}  // namespace spillway::net
