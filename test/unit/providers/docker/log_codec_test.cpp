#include "providers/docker/log_codec.hpp"

#include <catch2/catch.hpp>

#include "test/support/docker_engine_model.hpp"
#include "test/support/says.hpp"

using namespace std::chrono_literals;
using namespace spillway;                     // NOLINT(google-build-using-namespace)
using namespace spillway::providers::docker;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;
using provider::LogChannel;
using provider::LogPiece;
using test::DockerEngineModel;
using test::says;

namespace {

const base::WallTime kNoon = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29) + 12h;
const std::string kTime = "2026-11-29T12:00:00.000001789Z";

DockerEngineModel::LogRecord record(std::string bytes, bool errors = false) {
  DockerEngineModel::LogRecord out;
  out.at = kNoon + 1us;
  out.errors = errors;
  out.bytes = std::move(bytes);
  return out;
}

/// What a reader shows of these bytes, with a mark for each output and the time of each line.
std::string read(LogReader reader, const std::vector<std::string>& chunks) {
  std::string out;
  bool line_begins = true;
  for (const std::string& chunk : chunks) {
    const auto fed = reader.feed(chunk, [&](const LogPiece& piece) {
      if (piece.bytes.empty()) return;
      if (line_begins && !piece.time.empty()) out += std::string(piece.time) + "|";
      if (line_begins && piece.channel == LogChannel::kStderr) out += "!";
      out += piece.bytes;
      line_begins = piece.bytes.ends_with('\n');
    });
    if (!fed) return out + "(" + fed.error().message + ")";
  }
  return reader.at_boundary() ? out : out + "(torn)";
}

}  // namespace

TEST_CASE("docker logs: a long line ends, also if the engine has forgotten how") {
  // The driver `local` keeps no end of a line that took several records; `json-file` does.
  const std::string full(16 * 1024, 'x');
  const std::string end = GENERATE(std::string("rest"), std::string("rest\n"), std::string(), std::string("\n"));
  const std::string line = full + (end.ends_with('\n') ? end : end + "\n");
  const bool timed = GENERATE(false, true);
  std::string bytes;
  for (const std::string& text : {full, end, std::string("next\n")}) {
    bytes += DockerEngineModel::send(record(text), false, timed);
  }
  const std::string mark = timed ? kTime + "|" : "";
  CHECK(read(LogReader(true, timed), {bytes}) == mark + line + mark + "next\n");
}

TEST_CASE("docker logs: what is asked of the engine") {
  CHECK(encode_log_query(LogQuery()) == "?follow=0&stdout=1&stderr=1");
  LogQuery query;
  query.follow = true;
  query.times = true;
  query.channel = LogChannel::kStderr;
  query.tail = 0;
  query.since = kNoon + 250ms;
  query.until = kNoon + 1us;
  CHECK(encode_log_query(query) ==
        "?follow=1&stdout=0&stderr=1&timestamps=1&tail=0&since=1795953600.250000&until=1795953600.000001");
  query = LogQuery();
  query.channel = LogChannel::kStdout;
  query.tail = -1;
  query.since = base::WallTime(-5s);
  CHECK(encode_log_query(query) == "?follow=0&stdout=1&stderr=0&tail=0&since=0.000000");
}

TEST_CASE("docker logs: frames with and without times, however they were cut") {
  const bool times = GENERATE(false, true);
  std::string bytes;
  for (const auto& each : {record("one\n"), record("two\n", true), record(""), record("torn")}) {
    bytes += DockerEngineModel::send(each, false, times);
  }
  const std::string mark = times ? kTime + "|" : "";
  const std::string wanted = mark + "one\n" + mark + "!two\n" + mark + "torn";
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    INFO("cut at " << cut);
    const std::string shown = read(LogReader(true, times), {bytes.substr(0, cut), bytes.substr(cut)});
    CHECK(shown == wanted);
  }
  CHECK(read(LogReader(true, times), {bytes.substr(0, bytes.size() - 1)}) ==
        wanted.substr(0, wanted.size() - 1) + "(torn)");
}

TEST_CASE("docker logs: a long line is several records, and one line") {
  const std::string half(16 * 1024, 'x');
  for (const bool tty : {false, true}) {
    std::string bytes;
    for (const auto& each : {record(half), record(half), record("end\n"), record("next\n")}) {
      bytes += DockerEngineModel::send(each, tty, true);
    }
    for (const size_t cut :
         {size_t{1}, size_t{31}, half.size(), half.size() + 31, half.size() + 40, bytes.size() / 2}) {
      INFO("tty " << tty << ", cut at " << cut);
      const std::string shown = read(LogReader(!tty, true), {bytes.substr(0, cut), bytes.substr(cut)});
      // No REQUIRE on equality: Catch would print 32 KiB.
      const bool equal = shown == kTime + "|" + half + half + "end\n" + kTime + "|next\n";
      CHECK(equal);
    }
  }
}

TEST_CASE("docker logs: a terminal's bytes come as they are") {
  CHECK(read(LogReader(false, false), {"one\r\ntw", "o\r\n", std::string("\1\0\0\0", 4)}) ==
        std::string("one\r\ntwo\r\n\1\0\0\0", 14));
  // An engine that leaves out the blank after a time is no reason to hold all that it sends in memory.
  LogReader reader(false, true);
  const auto fed = reader.feed(std::string(1'000'000, 'x'), [](const LogPiece&) {});
  CHECK(fed);
}

TEST_CASE("docker logs: what the engine itself has to complain about is an error, not a line") {
  const std::string shown = read(
      LogReader(true, false), {DockerEngineModel::frame(1, "one\n") + DockerEngineModel::frame(3, "disk is gone\n")});
  CHECK(shown == "one\n(the engine cannot read the log on: disk is gone)");
  CHECK(says(read(LogReader(true, false), {"HTTP/1.1 200 OK"}), "not made of frames"));
  // Nor is it held in memory, however long it is.
  CHECK(read(LogReader(true, false), {DockerEngineModel::frame(3, std::string(1'000'000, 'x'))}).size() < 2000);
}

TEST_CASE("docker logs: a driver that does not keep them is told from an outage") {
  CHECK(is_unreadable_log("configured logging driver does not support reading"));
  CHECK_FALSE(is_unreadable_log("error from daemon in stream"));
}
