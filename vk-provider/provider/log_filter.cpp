#include "vk-provider/provider/log_filter.hpp"

#include <algorithm>
#include <limits>

namespace spillway::provider {

LogFilter::LogFilter(const LogOptions& options)
    : timestamps_(options.timestamps),
      channel_(options.channel),
      since_(options.since),
      left_(options.limit_bytes ? static_cast<std::uint64_t>(std::max<std::int64_t>(*options.limit_bytes, 0))
                                : std::numeric_limits<std::uint64_t>::max()) {}

bool LogFilter::is_wanted(const LogPiece& piece) {
  if (channel_ && piece.channel != *channel_) return false;
  if (!since_) return true;
  // Without a time nobody can say that it is too old.
  const auto time = base::from_rfc3339(piece.time);
  return !time || *time >= *since_;
}

void LogFilter::take(const LogPiece& piece, std::string& out) {
  if (piece.bytes.empty()) return;
  Line& line = lines_[static_cast<size_t>(piece.channel)];
  if (!line.open) {
    line.shown = skip_ == 0 && is_wanted(piece);
    if (skip_ > 0) --skip_;
    if (line.shown && timestamps_) {
      add(piece.time, out);
      add(" ", out);
    }
  }
  line.open = !piece.bytes.ends_with('\n');
  if (line.shown) add(piece.bytes, out);
}

void LogFilter::add(std::string_view bytes, std::string& out) {
  const size_t n = static_cast<size_t>(std::min<std::uint64_t>(bytes.size(), left_));
  out.append(bytes.substr(0, n));
  left_ -= n;
}

std::string to_log_time(base::WallTime t) {
  std::string text = base::to_rfc3339_micro(t);
  text.insert(text.size() - 1, "000");
  return text;
}

}  // namespace spillway::provider
