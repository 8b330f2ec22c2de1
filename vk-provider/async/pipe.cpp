#include "vk-provider/async/pipe.hpp"

#include <utility>

namespace spillway::async {

void Pipe::put(std::string_view bytes) {
  if (closed_ || ended() || bytes.empty()) return;
  bytes_ += bytes;
  reader_.wake();
}

boost::asio::awaitable<bool> Pipe::wait_for_room(std::shared_ptr<Pipe> pipe, base::Deadline deadline) {
  while (!pipe->has_room()) {
    const bool in_time = co_await pipe->writer_.wait(pipe->timers_, deadline);
    if (!in_time) co_return pipe->has_room();
  }
  co_return true;
}

void Pipe::end() {
  if (ended()) return;
  ended_ = true;
  reader_.wake();
}

void Pipe::fail(base::Error error) {
  if (ended()) return;
  failed_ = std::move(error);
  reader_.wake();
}

Task<std::string> Pipe::read(std::shared_ptr<Pipe> pipe, base::Deadline deadline) {
  for (;;) {
    if (!pipe->bytes_.empty()) {
      pipe->writer_.wake();
      co_return std::exchange(pipe->bytes_, std::string());
    }
    if (pipe->ended_ || pipe->closed_) co_return std::string();
    if (pipe->failed_) co_return base::fail(*pipe->failed_);
    const bool in_time = co_await pipe->reader_.wait(pipe->timers_, deadline);
    if (!in_time && pipe->bytes_.empty() && !pipe->ended()) {
      co_return base::fail(base::ErrorKind::kDeadline, "nothing came in time");
    }
  }
}

void Pipe::close_reader() {
  closed_ = true;
  bytes_ = std::string();
  writer_.wake();
  reader_.wake();
}

}  // namespace spillway::async
