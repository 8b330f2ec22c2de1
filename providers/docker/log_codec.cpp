#include "providers/docker/log_codec.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace spillway::providers::docker {
namespace {

using provider::LogChannel;
using provider::LogPiece;

// The longest record that an engine writes.
constexpr size_t kLongestRecord = 16 * 1024;
// 2026-11-29T21:11:53.123456789Z; with an offset in place of the Z a few more.
constexpr size_t kLongestTime = 40;
// A frame may claim to have 4 GiB.
constexpr size_t kLongestComplaint = 1024;

/// Seconds since 1970 with six digits after the point. Engines take no time before that.
std::string unix_time(base::WallTime t) {
  const auto micros = std::max<std::int64_t>(t.time_since_epoch().count(), 0);
  return fmt::format("{}.{:06}", micros / 1'000'000, micros % 1'000'000);
}

std::string_view word(bool yes) { return yes ? "1" : "0"; }

}  // namespace

std::string encode_log_query(const LogQuery& query) {
  std::string out = fmt::format("?follow={}&stdout={}&stderr={}", word(query.follow),
                                word(query.channel != LogChannel::kStderr), word(query.channel != LogChannel::kStdout));
  if (query.times) out += "&timestamps=1";
  if (query.tail) out += fmt::format("&tail={}", std::max<std::int64_t>(*query.tail, 0));
  if (query.since) out += "&since=" + unix_time(*query.since);
  if (query.until) out += "&until=" + unix_time(*query.until);
  return out;
}

bool is_unreadable_log(std::string_view message) { return message.contains("does not support reading"); }

base::Result<void> LogReader::feed(std::string_view bytes, const Sink& sink) {
  if (framed_) return feed_frames(bytes, sink);
  feed_records(bytes, sink);
  return {};
}

base::Result<void> LogReader::feed_frames(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    auto part = frames_.next(bytes);
    if (!part) return base::fail(std::move(part.error()));
    if (part->of_engine) {
      complaint_ += part->bytes.substr(0, kLongestComplaint - complaint_.size());
      if (!part->ends) continue;
      while (complaint_.ends_with('\n')) complaint_.pop_back();
      return base::fail(base::ErrorKind::kUnavailable, "the engine cannot read the log on: " + complaint_);
    }
    if (part->begins) {
      in_time_ = timed_;
      time_.clear();
      record_bytes_ = 0;
    }
    if (in_time_ && !take_time(part->bytes) && !part->ends) continue;
    record_bytes_ += part->bytes.size();
    LogPiece piece;
    piece.channel = part->channel == Channel::kErrors ? LogChannel::kStderr : LogChannel::kStdout;
    piece.time = time_;
    piece.bytes = part->bytes;
    if (!piece.bytes.empty()) sink(piece);
    if (!part->ends) continue;
    bool& goes_on = line_goes_on_.at(static_cast<size_t>(part->channel));
    const bool went_on = std::exchange(goes_on, record_bytes_ == kLongestRecord && !piece.bytes.ends_with('\n'));
    // The driver `local` forgets the end of a line that has several records.
    if (!went_on || goes_on || piece.bytes.ends_with('\n')) continue;
    piece.bytes = "\n";
    sink(piece);
  }
  return {};
}

/// A terminal has one output, and its records no beginning but the end of the one before.
void LogReader::feed_records(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (timed_ && record_bytes_ == 0 && in_time_ && !take_time(bytes)) return;
    const size_t end = bytes.substr(0, kLongestRecord - record_bytes_).find('\n');
    LogPiece piece;
    piece.time = time_;
    piece.bytes = bytes.substr(0, end == std::string_view::npos ? kLongestRecord - record_bytes_ : end + 1);
    bytes.remove_prefix(piece.bytes.size());
    record_bytes_ += piece.bytes.size();
    sink(piece);
    if (end == std::string_view::npos && record_bytes_ < kLongestRecord) continue;
    record_bytes_ = 0;
    in_time_ = true;
    time_.clear();
  }
}

bool LogReader::take_time(std::string_view& bytes) {
  const size_t blank = bytes.find(' ');
  const size_t n = std::min(blank, bytes.size());
  // Every record has one. An engine that leaves out the blank does not fill our memory.
  time_.append(bytes.substr(0, std::min(n, kLongestTime - time_.size())));
  bytes.remove_prefix(std::min(blank == std::string_view::npos ? n : n + 1, bytes.size()));
  in_time_ = blank == std::string_view::npos;
  return !in_time_;
}

}  // namespace spillway::providers::docker
