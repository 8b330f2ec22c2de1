#include "providers/docker/run_book.hpp"

#include <algorithm>
#include <iterator>

namespace spillway::providers::docker {
namespace {

constexpr std::ptrdiff_t kKept = 2;
constexpr std::string_view kUnknown = "-";

std::string to_text(const std::optional<base::WallTime>& t) {
  return t ? base::to_rfc3339_micro(*t) : std::string(kUnknown);
}

/// Between two runs. What a container wrote last is noted a moment after its end, and what it writes first a moment
/// before its start is: so the border is in the middle.
base::WallTime border(base::WallTime finished, const std::optional<base::WallTime>& started) {
  if (!started || *started <= finished) return finished;
  return finished + (*started - finished) / 2;
}

}  // namespace

std::string encode_run_book(const RunBook& book) {
  std::string out;
  for (const ContainerRun& run : book) {
    out += to_text(run.started_at) + " " + base::to_rfc3339_micro(run.finished_at) + "\n";
  }
  return out;
}

RunBook decode_run_book(std::string_view text) {
  RunBook book;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t blank = std::min(line.find(' '), line.size());
    const auto finished = base::from_rfc3339(line.substr(std::min(blank + 1, line.size())));
    if (!finished) continue;
    ContainerRun& run = book.emplace_back();
    run.started_at = base::from_rfc3339(line.substr(0, blank));
    run.finished_at = *finished;
  }
  return book;
}

void note_run(RunBook& book, const ContainerFacts& ended) {
  if (ended.running() || ended.start_failed() || !ended.finished_at) return;
  if (ended.started_at > ended.finished_at) return;  // the end of the run before, as it stood while this one ran
  ContainerRun run;
  run.started_at = ended.started_at;
  run.finished_at = *ended.finished_at;
  // A start that failed after the book was written is repeated.
  if (!book.empty() && book.back() == run) return;
  book.push_back(run);
  if (std::ssize(book) > kKept) book.erase(book.begin(), book.end() - kKept);
}

RunBook earlier_runs(const ContainerFacts& facts, RunBook written) {
  if (!facts.finished_at) return written;
  if (facts.running()) {
    // The engine's FinishedAt is that of the run before, which somebody else may have started anew.
    if (written.empty() || written.back().finished_at < *facts.finished_at) {
      written.emplace_back().finished_at = *facts.finished_at;
    }
    return written;
  }
  // Written down for a start that did not come about: that run is still the latest one.
  if (!written.empty() && written.back().finished_at >= *facts.finished_at) written.pop_back();
  return written;
}

LogWindow latest_run(const ContainerFacts& facts, const RunBook& earlier) {
  LogWindow window;
  if (!earlier.empty()) window.begin = border(earlier.back().finished_at, facts.started_at);
  return window;
}

std::optional<LogWindow> previous_run(const ContainerFacts& facts, const RunBook& earlier) {
  if (earlier.empty()) return std::nullopt;
  LogWindow window;
  window.end = border(earlier.back().finished_at, facts.started_at);
  if (earlier.size() > 1) window.begin = border(earlier[earlier.size() - 2].finished_at, earlier.back().started_at);
  return window;
}

}  // namespace spillway::providers::docker
