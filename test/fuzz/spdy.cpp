// Bytes of a SPDY client: whatever they are, frames or an error come out, and the same however they are cut.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "vk-provider/net/spdy_frames.hpp"

namespace {

using spillway::net::spdy::FrameDecoder;
using spillway::net::spdy::FrameType;

/// What was read: everything but how data was cut.
std::string read_all(std::string_view input, std::size_t piece) {
  FrameDecoder decoder;
  std::string out;
  while (!input.empty()) {
    std::string_view rest = input.substr(0, piece);
    input.remove_prefix(rest.size());
    for (;;) {
      const auto frame = decoder.next(rest);
      if (!frame) return out + "!" + frame.error().message;
      if (!*frame) break;
      if ((*frame)->type != FrameType::kData) {
        out += std::to_string(static_cast<int>((*frame)->type)) + " " + std::to_string((*frame)->stream);
        for (const auto& [name, value] : (*frame)->headers) out += name + "=" + value + ";";
      }
      out += (*frame)->data;
    }
    if (!rest.empty()) std::abort();
  }
  return out;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (read_all(input, size + 1) != read_all(input, 7)) std::abort();
  return 0;
}
