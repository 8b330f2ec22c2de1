// A client of SPDY/3.1 that says exactly what a test wants, over any stream.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/net/spdy_frames.hpp"

namespace spillway::test {

/// A frame that keeps its data.
struct SpdyFrame {
  net::spdy::FrameType type = net::spdy::FrameType::kData;
  std::uint32_t stream = 0;
  bool last = false;
  std::uint32_t number = 0;
  std::string data;
};

class SpdyClient {
 public:
  explicit SpdyClient(async::ByteStreamPtr connection) : connection_(std::move(connection)) {}

  /// Opens the next stream; does not wait for the answer.
  async::Task<std::uint32_t> open(std::vector<net::Header> headers) {
    const std::uint32_t id = next_id_;
    next_id_ += 2;
    auto sent = co_await send(encoder_.open(id, headers));
    if (!sent) co_return base::fail(sent.error());
    co_return id;
  }
  async::Task<void> data(std::uint32_t stream, std::string bytes, bool last = false) {
    return send(net::spdy::FrameEncoder::data(stream, bytes, last));
  }
  async::Task<void> reset(std::uint32_t stream) {
    return send(net::spdy::FrameEncoder::reset(stream, net::spdy::kCancel));
  }
  async::Task<void> ping(std::uint32_t id) { return send(net::spdy::FrameEncoder::ping(id)); }
  async::Task<void> go_away() { return send(net::spdy::FrameEncoder::go_away(0)); }
  async::Task<void> send(std::string bytes) { return connection_->write(std::move(bytes), base::Deadline::max()); }

  /// The next frame; kUnavailable at the end.
  async::Task<SpdyFrame> next(base::Deadline deadline = base::Deadline::max()) {
    for (;;) {
      std::string_view rest = input_;
      auto frame = decoder_.next(rest);
      if (!frame) co_return base::fail(frame.error());
      if (*frame) {
        SpdyFrame out{(*frame)->type, (*frame)->stream, (*frame)->last, (*frame)->number, std::string((*frame)->data)};
        input_.erase(0, input_.size() - rest.size());
        co_return out;
      }
      auto bytes = co_await connection_->read(deadline);
      if (!bytes) co_return base::fail(bytes.error());
      if (bytes->empty()) co_return base::fail(base::ErrorKind::kUnavailable, "the server has closed");
      input_ = std::move(*bytes);
    }
  }
  void close() { connection_.reset(); }

 private:
  async::ByteStreamPtr connection_;
  net::spdy::FrameEncoder encoder_;
  net::spdy::FrameDecoder decoder_;
  std::string input_;
  std::uint32_t next_id_ = 1;
};

}  // namespace spillway::test
