#include "vk-provider/provider/log_filter.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway;  // NOLINT(google-build-using-namespace)
using provider::LogChannel;
using provider::LogFilter;
using provider::LogOptions;
using provider::LogPiece;

namespace {

const base::WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29) + 12h;

struct Piece {
  std::string bytes;
  LogChannel channel = LogChannel::kStdout;
  base::Duration after{};  // noon
};

std::string shown(LogFilter filter, const std::vector<Piece>& pieces) {
  std::string out;
  for (const Piece& each : pieces) {
    const std::string time =
        provider::to_log_time(kNoon + std::chrono::duration_cast<std::chrono::microseconds>(each.after));
    LogPiece piece;
    piece.channel = each.channel;
    piece.time = time;
    piece.bytes = each.bytes;
    filter.take(piece, out);
  }
  return out;
}

}  // namespace

TEST_CASE("log filter: without options every byte is shown") {
  CHECK(shown(LogFilter(LogOptions()), {{"a\n"}, {std::string("\0\xff\n", 3)}, {"b"}}) ==
        std::string("a\n\0\xff\nb", 6));
}

TEST_CASE("log filter: a timestamp stands before each line, and not inside of one") {
  LogOptions options;
  options.timestamps = true;
  CHECK(shown(LogFilter(options), {{"long "}, {"line\n", LogChannel::kStdout, 1s}, {"next\n"}, {"torn"}}) ==
        "2026-11-29T12:00:00.000000000Z long line\n"
        "2026-11-29T12:00:00.000000000Z next\n"
        "2026-11-29T12:00:00.000000000Z torn");
  // The other output does not end the line of this one.
  CHECK(shown(LogFilter(options), {{"one "}, {"error\n", LogChannel::kStderr, 1500us}, {"line\n"}}) ==
        "2026-11-29T12:00:00.000000000Z one "
        "2026-11-29T12:00:00.001500000Z error\n"
        "line\n");
}

TEST_CASE("log filter: since counts by the beginning of a line") {
  LogOptions options;
  options.since = kNoon + 250ms;
  CHECK(shown(LogFilter(options), {{"old\n", LogChannel::kStdout, 249ms},
                                   {"long ", LogChannel::kStdout, 249ms},
                                   {"and old\n", LogChannel::kStdout, 251ms},
                                   {"new\n", LogChannel::kStdout, 250ms}}) == "new\n");
  std::string out;
  LogPiece timeless;
  timeless.bytes = "who knows\n";
  LogFilter(options).take(timeless, out);
  CHECK(out == "who knows\n");
}

TEST_CASE("log filter: one output alone") {
  LogOptions options;
  options.channel = LogChannel::kStderr;
  CHECK(shown(LogFilter(options), {{"out\n"}, {"err\n", LogChannel::kStderr}, {"out\n"}}) == "err\n");
}

TEST_CASE("log filter: lines that are skipped count before anything else is looked at") {
  LogOptions options;
  options.channel = LogChannel::kStdout;
  LogFilter filter(options);
  filter.skip_lines(2);
  CHECK(shown(filter, {{"one "}, {"line\n"}, {"two\n", LogChannel::kStderr}, {"three\n"}}) == "three\n");
}

TEST_CASE("log filter: a limit counts what is shown, timestamps too, and cuts") {
  LogOptions options;
  options.limit_bytes = 5;
  CHECK(shown(LogFilter(options), {{"one\n"}, {"two\n"}, {"three\n"}}) == "one\nt");
  options.timestamps = true;
  options.limit_bytes = 33;
  CHECK(shown(LogFilter(options), {{"one\n"}, {"two\n"}}) == "2026-11-29T12:00:00.000000000Z on");

  LogFilter filter(options);
  CHECK_FALSE(filter.full());
  std::string out;
  LogPiece piece;
  piece.bytes = "0123456789012345678901234567890123456789";
  filter.take(piece, out);
  CHECK(filter.full());
  options.limit_bytes = 0;
  CHECK(LogFilter(options).full());
}
