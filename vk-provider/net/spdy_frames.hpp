// Frames of SPDY/3.1, as far as Kubernetes speaks it: bytes -> frames, frames -> bytes.
//
// Values, one of each per connection. Pure; what the decoder is fed comes from anybody. Data is handed out as it comes,
// however long its frame is, so that only headers are ever collected. Knows no streams: who may say what, and when, is
// the session's affair. draft-mbelshe-httpbis-spdy-00, and what moby/spdystream makes of it: no windows, no settings,
// no priorities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/net/spdy_headers.hpp"

namespace spillway::net::spdy {

enum class FrameType : std::uint8_t { kData, kOpen, kReply, kHeaders, kReset, kPing, kGoAway };

/// Of RST_STREAM.
constexpr std::uint32_t kProtocolError = 1;
constexpr std::uint32_t kRefusedStream = 3;
constexpr std::uint32_t kCancel = 5;

constexpr std::size_t kMaxControl = 16 * 1024;  // bytes of a frame with headers, compressed

struct Frame {
  Frame() = default;
  FrameType type = FrameType::kData;
  std::uint32_t stream = 0;     // 0 for kPing; of kGoAway the last one that was served
  bool last = false;            // kData, kOpen, kReply, kHeaders: nothing of this direction follows
  std::uint32_t number = 0;     // of kPing its id, of kReset and kGoAway the status
  std::vector<Header> headers;  // kOpen, kReply, kHeaders
  std::string_view data;        // kData: a part of what was fed; valid as long as that is
};

class FrameDecoder {
 public:
  /// Takes from the front of `input` until a frame, or a part of a data frame, is there; empty if all was taken and
  /// more is needed. Frames that say nothing to us are skipped. kInvalid is final.
  base::Result<std::optional<Frame>> next(std::string_view& input);

 private:
  struct Begun {
    bool control = false;
    std::uint16_t type = 0;
    std::uint32_t stream = 0;
    std::uint8_t flags = 0;
    std::size_t left = 0;  // bytes that are still to come
    bool skipped = false;
  };

  base::Result<void> begin();
  std::optional<Frame> take_data(std::string_view& input);
  base::Result<std::optional<Frame>> read_control();

  std::string head_;  // as much of the eight bytes as has come
  std::optional<Begun> frame_;
  std::string payload_;  // of a control frame
  HeaderDecoder headers_;
};

class FrameEncoder {
 public:
  std::string open(std::uint32_t stream, const std::vector<Header>& headers);
  std::string reply(std::uint32_t stream, const std::vector<Header>& headers);
  /// At most 16 MiB.
  static std::string data(std::uint32_t stream, std::string_view bytes, bool last);
  static std::string reset(std::uint32_t stream, std::uint32_t status);
  static std::string ping(std::uint32_t id);
  static std::string go_away(std::uint32_t last_stream);

 private:
  HeaderEncoder headers_;
};

}  // namespace spillway::net::spdy
