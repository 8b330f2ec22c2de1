#include "vk-provider/net/spdy_headers.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <zlib.h>

namespace spillway::net::spdy {
namespace {

using base::ErrorKind;

// What both sides have in their dictionary before the first header, as SPDY/3 lays it down: words with their lengths
// before them, and a text.
constexpr auto kWords = std::to_array<std::string_view>({
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
});
constexpr std::string_view kText =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Au"
    "thoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidd"
    "en404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr Ma"
    "y Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,imag"
    "e/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicpri"
    "vatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

std::unexpected<base::Error> malformed(const std::string& why) {
  return base::fail(ErrorKind::kInvalid, "SPDY headers: " + why);
}

void append_number(std::string& out, std::uint32_t value) {
  for (unsigned shift = 32; shift > 0; shift -= 8) out += static_cast<char>((value >> (shift - 8)) & 0xffU);
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

std::string make_dictionary() {
  std::string out;
  for (const std::string_view word : kWords) append_text(out, word);
  out += kText;
  return out;
}

/// Reads a header block that was decompressed.
class BlockReader {
 public:
  explicit BlockReader(std::string_view block) : rest_(block) {}

  bool number(std::uint32_t& value) {
    if (rest_.size() < 4) return false;
    value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = (value << 8U) | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(4);
    return true;
  }
  bool text(std::string_view& value) {
    std::uint32_t size = 0;
    if (!number(size) || size > rest_.size()) return false;
    value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// A header may have several values, with a zero between them.
void append_values(std::string_view name, std::string_view values, std::vector<Header>& out) {
  std::string lower_name(name);
  std::ranges::transform(lower_name, lower_name.begin(), lower);
  for (;;) {
    const std::size_t end = values.find('\0');
    out.emplace_back(lower_name, values.substr(0, end));
    if (end == std::string_view::npos) return;
    values.remove_prefix(end + 1);
  }
}

base::Result<std::vector<Header>> parse_block(std::string_view block) {
  BlockReader reader(block);
  std::uint32_t count = 0;
  if (!reader.number(count)) return malformed("the block is cut off");
  if (count > kMaxHeaders) return malformed("there are more than " + std::to_string(kMaxHeaders));
  std::vector<Header> headers;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::string_view name;
    std::string_view values;
    if (!reader.text(name) || !reader.text(values)) return malformed("the block is cut off");
    if (name.empty()) return malformed("one has no name");
    append_values(name, values, headers);
    if (headers.size() > kMaxHeaders) return malformed("there are more than " + std::to_string(kMaxHeaders));
  }
  if (!reader.empty()) return malformed("something follows the last one");
  return headers;
}

}  // namespace

const std::string& dictionary() {
  static const std::string bytes = make_dictionary();
  return bytes;
}

struct HeaderDecoder::Stream {
  Stream() { ok = inflateInit(&z) == Z_OK; }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  z_stream z{};
  bool ok = false;
};

HeaderDecoder::HeaderDecoder() = default;
HeaderDecoder::~HeaderDecoder() = default;

base::Result<std::vector<Header>> HeaderDecoder::decode(std::string_view compressed) {
  if (!stream_) stream_ = std::make_unique<Stream>();
  if (!stream_->ok) return base::fail(ErrorKind::kInternal, "zlib cannot be started");
  z_stream& z = stream_->z;
  std::string block;
  std::array<unsigned char, 4096> piece{};
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));  // zlib only reads it
  z.avail_in = static_cast<uInt>(compressed.size());
  for (;;) {
    z.next_out = piece.data();
    z.avail_out = static_cast<uInt>(piece.size());
    const int result = inflate(&z, Z_SYNC_FLUSH);
    block.append(reinterpret_cast<const char*>(piece.data()), piece.size() - z.avail_out);
    if (block.size() > kMaxBlock) {
      return malformed("they have more than " + std::to_string(kMaxBlock) + " bytes");
    }
    if (result == Z_NEED_DICT) {
      const auto* const known = reinterpret_cast<const Bytef*>(dictionary().data());
      if (inflateSetDictionary(&z, known, static_cast<uInt>(dictionary().size())) == Z_OK) continue;
      return malformed("they are compressed with another dictionary");
    }
    if (result == Z_BUF_ERROR) break;  // nothing to take, or nothing more to give: not an error at the end of a block
    if (result != Z_OK) return malformed("they are not compressed as they should be");
    if (z.avail_in == 0 && z.avail_out > 0) break;
  }
  if (z.avail_in > 0) return malformed("they are not compressed as they should be");
  return parse_block(block);
}

std::string HeaderEncoder::encode(const std::vector<Header>& headers) {
  std::string block;
  append_number(block, static_cast<std::uint32_t>(headers.size()));
  for (const auto& [name, value] : headers) {
    std::string lower_name = name;
    std::ranges::transform(lower_name, lower_name.begin(), lower);
    append_text(block, lower_name);
    append_text(block, value);
  }
  std::string out;
  if (!begun_) out = "\x78\x01";  // a zlib stream that refers to no dictionary
  begun_ = true;
  const auto append_stored = [&out](std::string_view bytes) {
    const auto size = static_cast<std::uint16_t>(bytes.size());
    const auto inverse = static_cast<std::uint16_t>(~size);
    out += '\0';
    for (const std::uint16_t number : {size, inverse}) {
      out += static_cast<char>(number & 0xffU);
      out += static_cast<char>(number >> 8U);
    }
    out += bytes;
  };
  for (std::string_view rest = block; !rest.empty();) {
    const std::string_view part = rest.substr(0, std::numeric_limits<std::uint16_t>::max());
    append_stored(part);
    rest.remove_prefix(part.size());
  }
  append_stored({});  // makes the reader hand out what it has
  return out;
}

}  // namespace spillway::net::spdy
