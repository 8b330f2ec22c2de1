// A connection as plain bytes: TCP of one's own, and what an HTTP connection is after an upgrade. Of net/ alone.
//
// Owned by the reader; closes its connection when it dies. Reactor thread only. It may outlive whoever made it.
#pragma once

#include <memory>
#include <string>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/net/connection.hpp"

namespace spillway::net {

/// What a failure on a stream means; `peer` is for the message.
base::Error stream_failure(const std::string& peer, const boost::system::error_code& ec, bool expired, bool cancelled);

class RawStream final : public async::ByteStream {
 public:
  /// Bytes that were read and not used, connection->input(), come first.
  RawStream(ConnectionPtr connection, std::string peer);
  ~RawStream() override;
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  async::Task<std::string> read(base::Deadline deadline) override;
  async::Task<void> write(std::string bytes, base::Deadline deadline) override;
  async::Task<void> close_write(base::Deadline deadline) override;

 private:
  static async::Task<std::string> read_from(ConnectionPtr connection, std::string peer, base::Deadline deadline);
  static async::Task<void> write_to(ConnectionPtr connection, std::string peer, std::string bytes,
                                    base::Deadline deadline);
  static async::Task<void> close_write_of(ConnectionPtr connection, std::string peer, base::Deadline deadline);

  ConnectionPtr connection_;
  std::string peer_;
};

}  // namespace spillway::net
