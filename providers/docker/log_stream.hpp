// The log of a container on an engine, as a stream.
//
// Owned by whoever opened it, and dies before its provider; reactor thread only. Takes from the connection only what is
// read from it. Its death, and a limit that is reached, close the connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "providers/docker/log_codec.hpp"
#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/provider/log_filter.hpp"

namespace spillway::providers::docker {

class LogStream final : public async::ByteStream {
 public:
  LogStream(async::ByteStreamPtr body, LogReader reader, provider::LogFilter filter);
  ~LogStream() override;
  LogStream(const LogStream&) = delete;
  LogStream& operator=(const LogStream&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override;
  async::Task<void> write(std::string bytes, base::Deadline deadline) override;
  async::Task<void> close_write(base::Deadline deadline) override;

 private:
  /// What a coroutine needs that still waits when the stream dies.
  struct State;

  static async::Task<std::string> read_from(std::shared_ptr<State> state, base::Deadline deadline);

  std::shared_ptr<State> state_;
};

/// Reads to the end, and keeps nothing. A last line without its end counts.
async::Task<std::uint64_t> count_lines(async::ByteStreamPtr body, LogReader reader, base::Deadline deadline);

}  // namespace spillway::providers::docker
