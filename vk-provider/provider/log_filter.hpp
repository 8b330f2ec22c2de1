// What of a container's log a reader gets: the part of LogOptions that a cloud does not do by itself.
//
// Pure; owned by the stream that it belongs to. Fed with the log piece by piece, it gives the bytes to hand out. What a
// cloud has done already is not asked of it again: its caller clears that option.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/provider/provider.hpp"

namespace spillway::provider {

/// A line with its end, or a part of one that is too long for whoever keeps the log. Where neither timestamps nor since
/// nor skip_lines() are used, any bytes.
struct LogPiece {
  LogPiece() = default;
  LogChannel channel = LogChannel::kStdout;
  std::string_view time;  // RFC 3339, of the piece that begins a line; empty if it is not known
  std::string_view bytes;
};

class LogFilter {
 public:
  /// follow, previous and tail_lines are the caller's.
  explicit LogFilter(const LogOptions& options);

  /// Leaves out so many lines before anything else: what a tail leaves out of a log whose length is known.
  void skip_lines(std::uint64_t lines) { skip_ = lines; }
  /// Appends to `out` what of the piece is wanted.
  void take(const LogPiece& piece, std::string& out);
  /// limit_bytes is reached: nothing more will come.
  bool full() const { return left_ == 0; }

 private:
  struct Line {
    bool open = false;   // it has begun and not ended
    bool shown = false;  // it is wanted
  };
  bool is_wanted(const LogPiece& piece);
  void add(std::string_view bytes, std::string& out);

  bool timestamps_;
  std::optional<LogChannel> channel_;
  std::optional<base::WallTime> since_;
  std::uint64_t skip_ = 0;
  std::uint64_t left_;
  std::array<Line, 2> lines_{};  // by channel
};

/// The time of a line as LogPiece and readers have it: RFC 3339 in UTC with nine digits.
std::string to_log_time(base::WallTime t);

}  // namespace spillway::provider
