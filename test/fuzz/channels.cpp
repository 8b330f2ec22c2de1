// Messages of a WebSocket client on numbered channels, and sizes of its terminal. The first byte chooses the format,
// the second how the message is cut.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "vk-provider/api/remote_status_codec.hpp"
#include "vk-provider/net/channel_frames.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using spillway::net::ChannelDecoder;
  if (size < 2) return 0;
  spillway::net::ChannelFormat format;
  format.base64 = (data[0] & 1U) != 0;
  format.half_close = (data[0] & 2U) != 0;
  const std::size_t piece = 1 + data[1];
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  ChannelDecoder decoder(format);
  spillway::api::SizeDecoder sizes;
  bool sized = true;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, piece);
    rest.remove_prefix(part.size());
    const auto event = decoder.feed(part, rest.empty());
    if (!event) return 0;
    if (!*event) continue;
    if ((*event)->bytes.size() > part.size() + 3) std::abort();  // no more comes out than went in
    if (sized) sized = sizes.feed((*event)->bytes).has_value();
  }
  return 0;
}
