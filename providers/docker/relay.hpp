// A connection to a port of a pod, through the relay that runs in its sandbox (sandbox_relay.c).
//
// RelayStream is owned by whoever dialled, and dies before its provider; reactor thread only. Its death ends the relay.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "providers/docker/exec_wire.hpp"

namespace spillway::providers::docker {

/// Frames as the relay takes them: a length of two bytes and so many bytes, as often as needed.
std::string relay_frames(std::string_view bytes);
/// The frame that ends a direction.
std::string relay_end();

/// Takes the relay's frames apart.
class RelayReader {
 public:
  /// The bytes in it.
  std::string feed(std::string_view chunk);
  /// The peer has ended its direction: what comes then is no longer of it.
  bool over() const { return over_; }

 private:
  int high_ = -1;    // the first byte of a header
  size_t left_ = 0;  // of the frame that has begun
  bool over_ = false;
};

/// What the relay's first byte, an errno, means to a user: "nothing listens on it".
std::string relay_failure(int error);

class RelayStream final : public async::ByteStream {
 public:
  /// `peer` is for messages; `first` are the bytes that came after the relay's status.
  RelayStream(ExecWirePtr wire, std::string peer, std::string_view first);
  ~RelayStream() override;
  RelayStream(const RelayStream&) = delete;
  RelayStream& operator=(const RelayStream&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override;
  async::Task<void> write(std::string bytes, base::Deadline deadline) override;
  async::Task<void> close_write(base::Deadline deadline) override;

 private:
  struct State;

  static async::Task<std::string> read_from(std::shared_ptr<State> state, base::Deadline deadline);

  std::shared_ptr<State> state_;
};

}  // namespace spillway::providers::docker
