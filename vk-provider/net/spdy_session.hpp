// The server's side of a SPDY/3.1 connection: streams that the client opens, as byte streams.
//
// Owned by the coroutine that serves the connection; reactor thread only. Nothing moves unless run() does. SPDY as it
// is spoken here has no flow control: when a stream has stream_buffer bytes that nobody reads, the connection is not
// read any more, and all of its streams wait. A client that disappears meanwhile is found out by asking it for a sign.
// Streams may outlive the session; they then only fail.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::net::spdy {

struct Limits {
  Limits() = default;
  std::size_t streams = 1024;             // open at once; more are refused
  std::size_t stream_buffer = 64 * 1024;  // bytes
  /// The connection ends when so long nothing came from the client and nothing was written for it.
  base::Duration idle_time{std::chrono::hours(4)};
  /// For one frame to be taken by the client.
  base::Duration stall_time{std::chrono::hours(4)};
};

class Session;

/// Resets the stream when it dies before both directions were ended. A read fails once the client has reset the stream
/// or the connection has ended; an end of what the client sends is an end.
class Stream final : public async::ByteStream {
 public:
  struct State;

  explicit Stream(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Odd, and growing by two as a client opens them.
  std::uint32_t id() const;
  /// As the client opened the stream. Names in lower case.
  const std::vector<Header>& headers() const;
  /// Tells the client that the stream is taken. Before that nothing may be written.
  void reply();
  /// What the client sends is dropped from now on: a stream that nobody reads would hold up the others.
  void drop_input();
  /// Ends both directions at once. What the client still sends is dropped.
  void reset();

  async::Task<std::string> read(base::Deadline deadline) override;
  async::Task<void> write(std::string bytes, base::Deadline deadline) override;
  async::Task<void> close_write(base::Deadline deadline) override;

 private:
  std::shared_ptr<State> state_;
};
using StreamPtr = std::unique_ptr<Stream>;

class Session {
 public:
  struct State;

  /// `connection` is what an HTTP connection is after its upgrade.
  Session(async::ByteStreamPtr connection, async::Timers& timers, Limits limits);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Moves the frames until the client leaves. kInvalid if it breaks the rules, kDeadline if it was idle for too long,
  /// kUnavailable if the connection broke.
  async::Task<void> run();
  /// The next stream that the client has opened; null when the connection has ended.
  async::Task<StreamPtr> accept(base::Deadline deadline);

 private:
  std::shared_ptr<State> state_;
};

}  // namespace spillway::net::spdy
