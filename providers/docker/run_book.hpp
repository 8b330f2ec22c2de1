// The runs of a container, and which part of its log is of which run.
//
// Pure. An engine starts the same container again and keeps one log for all of its runs; of their times it keeps the
// last start and the last end. So what it is about to forget is written down in the keeper of volumes before each
// start: a book of the last runs, for each container that has a termination message (in a cluster all have one).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/docker/codec.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::providers::docker {

struct ContainerRun {
  ContainerRun() = default;
  std::optional<base::WallTime> started_at;  // empty: it is not known any more
  base::WallTime finished_at;

  bool operator==(const ContainerRun&) const = default;
};
/// Those before the latest one, the oldest first; the last two are kept.
using RunBook = std::vector<ContainerRun>;

/// A line for each run. What cannot be read is left out.
std::string encode_run_book(const RunBook& book);
RunBook decode_run_book(std::string_view text);

/// Adds the run that `ended` shows: a container that has ended and is about to be started again. One that could not be
/// started wrote nothing, and is no run.
void note_run(RunBook& book, const ContainerFacts& ended);
/// The runs before the one that `facts` shows, from what was written down and what the engine itself still tells.
RunBook earlier_runs(const ContainerFacts& facts, RunBook written);

/// The part of the log that one run wrote. Empty ends are those of the log.
struct LogWindow {
  LogWindow() = default;
  std::optional<base::WallTime> begin;
  std::optional<base::WallTime> end;

  bool operator==(const LogWindow&) const = default;
};
/// Of the latest run.
LogWindow latest_run(const ContainerFacts& facts, const RunBook& earlier);
/// Of the run before it; empty if there was none.
std::optional<LogWindow> previous_run(const ContainerFacts& facts, const RunBook& earlier);

}  // namespace spillway::providers::docker
