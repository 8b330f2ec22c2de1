#include "vk-provider/api/logs.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace spillway::api {
namespace {

constexpr int kBadRequest = 400;
constexpr int kUnprocessable = 422;

/// As the API server reads a parameter: there, also without a value, means yes, unless it says no.
bool flag(const net::Query& query, std::string_view name) {
  const auto value = query.find(name);
  return value && *value != "0" && !net::same_word(*value, "false");
}

Answer<std::optional<std::int64_t>> number(const net::Query& query, std::string_view name) {
  const auto text = query.find(name);
  if (!text || text->empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size()) return value;
  return refuse(kBadRequest, fmt::format("{}: found \"{}\"; allowed: a whole number", name, *text));
}

Answer<std::optional<std::int64_t>> tail_lines(const net::Query& query) {
  const auto old_name = query.find("tail");
  if (!old_name || old_name->empty()) return number(query, "tailLines");
  if (*old_name == "all") return std::nullopt;
  return number(query, "tail");
}

Answer<std::optional<base::WallTime>> since(const net::Query& query, base::WallTime now) {
  const auto seconds = number(query, "sinceSeconds");
  if (!seconds) return std::unexpected(seconds.error());
  const auto text = query.find("sinceTime");
  const bool has_time = text && !text->empty();
  if (*seconds && has_time) return refuse(kUnprocessable, "at most one of sinceTime and sinceSeconds may be given");
  if (has_time) {
    const auto time = base::from_rfc3339(*text);
    if (time) return *time;
    return refuse(kBadRequest, fmt::format("sinceTime: found \"{}\"; allowed: a time as in RFC 3339", *text));
  }
  if (!*seconds) return std::nullopt;
  if (**seconds < 1) return refuse(kUnprocessable, "sinceSeconds must be greater than 0");
  // More than there has been time for is all of it.
  const std::int64_t most = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  return now - std::chrono::seconds(std::min(**seconds, most));
}

}  // namespace

Answer<provider::LogOptions> parse_log_query(const net::Query& query, const std::string& container,
                                             base::WallTime now) {
  provider::LogOptions out;
  out.container = container;
  out.follow = flag(query, "follow");
  out.previous = flag(query, "previous");
  out.timestamps = flag(query, "timestamps");
  const auto tail = tail_lines(query);
  if (!tail) return std::unexpected(tail.error());
  const auto limit = number(query, "limitBytes");
  if (!limit) return std::unexpected(limit.error());
  const auto from = since(query, now);
  if (!from) return std::unexpected(from.error());
  if (*tail && **tail < 0) return refuse(kUnprocessable, "tailLines must not be negative");
  if (*limit && **limit < 1) return refuse(kUnprocessable, "limitBytes must be greater than 0");
  out.tail_lines = *tail;
  out.limit_bytes = *limit;
  out.since = *from;
  const std::string_view stream = query.find("stream").value_or("All");
  if (stream == "Stdout" || stream == "Stderr") {
    if (out.tail_lines) return refuse(kUnprocessable, "tailLines and a specific stream exclude each other");
    out.channel = stream == "Stdout" ? provider::LogChannel::kStdout : provider::LogChannel::kStderr;
  } else if (stream != "All" && !stream.empty()) {
    return refuse(kUnprocessable, fmt::format("stream: found \"{}\"; allowed: All, Stdout, Stderr", stream));
  }
  return out;
}

}  // namespace spillway::api
