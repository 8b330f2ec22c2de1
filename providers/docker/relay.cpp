#include "providers/docker/relay.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace spillway::providers::docker {
namespace {

constexpr size_t kLargestFrame = 0xffff;

void append_header(std::string& out, size_t size) {
  out += static_cast<char>(size >> 8U);
  out += static_cast<char>(size & 0xffU);
}

}  // namespace

std::string relay_frames(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + 2 * (bytes.size() / kLargestFrame + 1));
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kLargestFrame);
    append_header(out, piece.size());
    out += piece;
    bytes.remove_prefix(piece.size());
  }
  return out;
}

std::string relay_end() { return std::string(2, '\0'); }

std::string RelayReader::feed(std::string_view chunk) {
  std::string out;
  while (!chunk.empty() && !over_) {
    if (left_ > 0) {
      const size_t n = std::min(left_, chunk.size());
      out += chunk.substr(0, n);
      chunk.remove_prefix(n);
      left_ -= n;
      continue;
    }
    const auto byte = static_cast<unsigned char>(chunk.front());
    chunk.remove_prefix(1);
    if (high_ < 0) {
      high_ = byte;
      continue;
    }
    left_ = static_cast<size_t>(high_) * 256 + byte;
    high_ = -1;
    over_ = left_ == 0;
  }
  return out;
}

std::string relay_failure(int error) {
  // A connect that its time limit ended says EINPROGRESS.
  if (error == EINPROGRESS || error == EAGAIN) return "what listens on it accepts no connection";
  if (error == ECONNREFUSED) return "nothing listens on it";
  return std::generic_category().message(error);
}

struct RelayStream::State {
  ExecWirePtr wire;
  std::string peer;
  RelayReader reader;
  std::string bytes;
};

RelayStream::RelayStream(ExecWirePtr wire, std::string peer, std::string_view first)
    : state_(std::make_shared<State>()) {
  state_->wire = std::move(wire);
  state_->peer = std::move(peer);
  state_->bytes = state_->reader.feed(first);
}

RelayStream::~RelayStream() { state_->wire->close(); }

async::Task<std::string> RelayStream::read(base::Deadline deadline) { return read_from(state_, deadline); }

async::Task<std::string> RelayStream::read_from(std::shared_ptr<State> state, base::Deadline deadline) {
  for (;;) {
    if (!state->bytes.empty() || state->reader.over()) co_return std::exchange(state->bytes, std::string());
    auto chunk = co_await ExecWire::read(state->wire, Channel::kOutput, deadline);
    if (!chunk) co_return base::fail(std::move(chunk.error()));
    // The relay ended before the peer did: a reset, or the end of the sandbox.
    if (chunk->empty())
      co_return base::fail(base::ErrorKind::kUnavailable, "the connection to " + state->peer + " broke off");
    state->bytes = state->reader.feed(*chunk);
  }
}

async::Task<void> RelayStream::write(std::string bytes, base::Deadline deadline) {
  if (bytes.empty()) co_return base::Result<void>();  // its frame would be the end
  co_return co_await ExecWire::write(state_->wire, relay_frames(bytes), deadline);
}

async::Task<void> RelayStream::close_write(base::Deadline deadline) {
  return ExecWire::write(state_->wire, relay_end(), deadline);
}

}  // namespace spillway::providers::docker
