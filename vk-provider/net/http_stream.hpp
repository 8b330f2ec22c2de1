// The body of an answer as a stream. Of net/ alone.
//
// Owned by the reader; closes its connection when it dies. Reactor thread only. It may outlive the client.
#pragma once

#include <memory>
#include <string>

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/net/connection.hpp"

namespace spillway::net {

using BodyParser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;

class HttpBodyStream final : public async::ByteStream {
 public:
  /// `parser` has the head.
  HttpBodyStream(ConnectionPtr connection, std::unique_ptr<BodyParser> parser, std::string peer);
  ~HttpBodyStream() override;

  async::Task<std::string> read(base::Deadline deadline) override;
  async::Task<void> write(std::string bytes, base::Deadline deadline) override;
  async::Task<void> close_write(base::Deadline deadline) override;

 private:
  /// What a coroutine needs that still waits when the stream dies.
  struct State;

  static async::Task<std::string> read_body(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace spillway::net
