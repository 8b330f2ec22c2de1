// Header blocks of SPDY/3: lists of names and values, compressed with a dictionary that both sides know beforehand.
//
// Values, one of each per connection, since a block is compressed with what went before. Pure; what the decoder is fed
// comes from anybody, and its memory is bounded: 40 KiB for the decompressor, kMaxBlock for the block.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net::spdy {

// Bytes, decompressed. A client says some hundred; each of its streams keeps what it says.
constexpr std::size_t kMaxBlock = 16 * 1024;
constexpr std::size_t kMaxHeaders = 128;

/// The dictionary of SPDY/3, 1423 bytes.
const std::string& dictionary();

class HeaderDecoder {
 public:
  HeaderDecoder();
  ~HeaderDecoder();
  HeaderDecoder(const HeaderDecoder&) = delete;
  HeaderDecoder& operator=(const HeaderDecoder&) = delete;

  /// One block. Names come in lower case; one with several values comes several times. kInvalid is final.
  base::Result<std::vector<Header>> decode(std::string_view compressed);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;  // from the first block on
};

/// Writes blocks that any decompressor can read, and that are not compressed: what we say fits into a packet, and a
/// compressor would cost each connection more memory than it could ever save.
class HeaderEncoder {
 public:
  std::string encode(const std::vector<Header>& headers);

 private:
  bool begun_ = false;
};

}  // namespace spillway::net::spdy
