// The log of a container as an engine keeps and sends it.
//
// Pure. An engine writes one record per line, and several for a line of more than 16 KiB: all but the last are exactly
// so long and end no line. It sends each as a frame of its own, or from a container with a terminal just one after the
// other. A record that is sent with its time has it before its bytes, with a blank between, also in the middle of a
// line. One log holds all runs of a container; run_book.hpp says where each begins.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "providers/docker/frames.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/provider/log_filter.hpp"

namespace spillway::providers::docker {

/// What is asked of GET /containers/{id}/logs.
struct LogQuery {
  LogQuery() = default;
  bool follow = false;
  bool times = false;
  std::optional<provider::LogChannel> channel;
  std::optional<std::int64_t> tail;  // records; the engine counts them before it looks at their times
  std::optional<base::WallTime> since;
  std::optional<base::WallTime> until;
};
/// `?follow=...`
std::string encode_log_query(const LogQuery& query);

/// True if the engine's words say that the container's logs cannot be read: they go elsewhere, or nowhere.
bool is_unreadable_log(std::string_view message);

/// Takes what an engine sends apart into records, or parts of them.
class LogReader {
 public:
  using Sink = std::function<void(const provider::LogPiece&)>;

  /// `framed`: the container has no terminal. `timed`: the query asked for times.
  LogReader(bool framed, bool timed) : framed_(framed), timed_(timed) {}

  /// kUnavailable if these are no frames, or if the engine says that it cannot read on.
  base::Result<void> feed(std::string_view bytes, const Sink& sink);
  /// False in the middle of a frame.
  bool at_boundary() const { return !framed_ || frames_.at_boundary(); }

 private:
  base::Result<void> feed_frames(std::string_view bytes, const Sink& sink);
  void feed_records(std::string_view bytes, const Sink& sink);
  /// Takes the time off the front of a record; false if more bytes are needed.
  bool take_time(std::string_view& bytes);

  bool framed_;
  bool timed_;
  FrameSplitter frames_;
  std::string complaint_;               // of the engine
  bool in_time_ = true;                 // the next byte belongs to the time of a record
  std::string time_;                    // as much of it as has come
  size_t record_bytes_ = 0;             // of the record that has begun; without frames they tell where it ends
  std::array<bool, 2> line_goes_on_{};  // by Channel: the last record was as long as one can be, and ended no line
};

}  // namespace spillway::providers::docker
