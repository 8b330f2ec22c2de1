#include "providers/docker/run_book.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway;                     // NOLINT(google-build-using-namespace)
using namespace spillway::providers::docker;  // NOLINT(google-build-using-namespace)

namespace {

base::WallTime at(base::Duration after_noon) {
  return std::chrono::sys_days(std::chrono::year(2026) / 11 / 29) + 12h +
         std::chrono::duration_cast<std::chrono::microseconds>(after_noon);
}

ContainerRun run(std::optional<base::WallTime> started, base::WallTime finished) {
  ContainerRun out;
  out.started_at = started;
  out.finished_at = finished;
  return out;
}

ContainerFacts ended(base::WallTime started, base::WallTime finished) {
  ContainerFacts facts;
  facts.state = "exited";
  facts.started_at = started;
  facts.finished_at = finished;
  return facts;
}

ContainerFacts running(base::WallTime started, std::optional<base::WallTime> finished = std::nullopt) {
  ContainerFacts facts;
  facts.state = "running";
  facts.started_at = started;
  facts.finished_at = finished;
  return facts;
}

}  // namespace

TEST_CASE("docker runs: a book is written and read, and what cannot be read is left out") {
  const RunBook book = {run(std::nullopt, at(1s)), run(at(2s), at(3s))};
  const std::string text = encode_run_book(book);
  CHECK(text == "- 2026-11-29T12:00:01.000000Z\n2026-11-29T12:00:02.000000Z 2026-11-29T12:00:03.000000Z\n");
  CHECK(decode_run_book(text) == book);
  CHECK(decode_run_book("") == RunBook());
  CHECK(decode_run_book("nonsense\n\n2026-11-29T12:00:02Z\n" + text + "2026-11-29T12:00:02Z ") == book);
}

TEST_CASE("docker runs: the last two are kept, each once") {
  RunBook book;
  note_run(book, ended(at(1s), at(2s)));
  note_run(book, ended(at(1s), at(2s)));
  CHECK(book == RunBook{run(at(1s), at(2s))});
  note_run(book, ended(at(3s), at(4s)));
  note_run(book, ended(at(5s), at(6s)));
  CHECK(book == RunBook{run(at(3s), at(4s)), run(at(5s), at(6s))});

  ContainerFacts failed = ended(at(7s), at(8s));
  failed.error = "no such file";
  note_run(book, failed);
  note_run(book, running(at(7s), at(6s)));
  note_run(book, ended(at(9s), at(6s)));
  CHECK(book.size() == 2);
  CHECK(book.back() == run(at(5s), at(6s)));
}

TEST_CASE("docker runs: what the engine still tells is added to what was written down") {
  const RunBook written = {run(at(1s), at(2s))};
  CHECK(earlier_runs(running(at(9s)), {}) == RunBook());
  CHECK(earlier_runs(running(at(9s), at(5s)), {}) == RunBook{run(std::nullopt, at(5s))});
  CHECK(earlier_runs(running(at(9s), at(2s)), written) == written);
  CHECK(earlier_runs(running(at(9s), at(5s)), written) == RunBook{run(at(1s), at(2s)), run(std::nullopt, at(5s))});
  CHECK(earlier_runs(ended(at(5s), at(6s)), written) == written);
  // Noted for a start that did not come about.
  CHECK(earlier_runs(ended(at(1s), at(2s)), written) == RunBook());
}

TEST_CASE("docker runs: the log of a run lies between its neighbours") {
  CHECK(latest_run(running(at(9s)), {}) == LogWindow());
  CHECK_FALSE(previous_run(running(at(9s)), {}));

  const RunBook one = {run(at(1s), at(2s))};
  CHECK(latest_run(running(at(12s)), one).begin == at(7s));
  CHECK_FALSE(latest_run(running(at(12s)), one).end);
  const auto first = previous_run(running(at(12s)), one);
  REQUIRE(first);
  CHECK_FALSE(first->begin);
  CHECK(first->end == at(7s));

  const RunBook two = {run(at(1s), at(2s)), run(at(12s), at(13s))};
  const auto second = previous_run(ended(at(14s), at(20s)), two);
  REQUIRE(second);
  CHECK(second->begin == at(7s));
  CHECK(second->end == at(13500ms));
  CHECK(latest_run(ended(at(14s), at(20s)), two).begin == at(13500ms));

  // Without the start, and by a clock that was set back, the end of the run before is the border.
  const RunBook unknown = {run(at(1s), at(2s)), run(std::nullopt, at(13s))};
  CHECK(previous_run(running(at(14s)), unknown)->begin == at(2s));
  CHECK(latest_run(running(at(11s)), two).begin == at(13s));
}
