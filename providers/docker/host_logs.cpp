// What the containers of an instance write.
#include <algorithm>

#include "providers/docker/host.hpp"
#include "providers/docker/log_stream.hpp"
#include "providers/docker/run_book.hpp"
#include "providers/docker/tar.hpp"
#include "providers/docker/volume_codec.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;
using provider::LogOptions;

std::optional<base::WallTime> later(std::optional<base::WallTime> a, std::optional<base::WallTime> b) {
  if (!a || !b) return a ? a : b;
  return std::max(*a, *b);
}

bool is_named_in(const std::string& list, const std::string& name) {
  return ("," + list + ",").contains("," + name + ",");
}

/// Of what is asked: what the engine does, and in `rest` what remains for the filter.
LogQuery split(const LogOptions& options, const LogWindow& window, LogOptions& rest) {
  LogQuery query;
  query.follow = options.follow && !options.previous;
  query.until = window.end;
  rest = options;
  if (window.end && options.tail_lines) {
    // The engine's tail is that of the whole log, and so of the wrong run. It counts before it looks at times and
    // outputs, and so do we.
    query.times = options.timestamps || options.since;
    query.since = window.begin;
    return query;
  }
  query.times = options.timestamps;
  query.channel = options.channel;
  query.tail = options.tail_lines;
  query.since = later(window.begin, options.since);
  rest.channel.reset();
  rest.since.reset();
  return query;
}

}  // namespace

async::Task<async::ByteStreamPtr> Host::open_logs(std::string tag, LogOptions options, base::Deadline deadline) {
  const auto facts = co_await find_container(tag, options.container, deadline);
  if (!facts) co_return base::fail(facts.error());
  if (facts->never_started()) co_return base::fail(waits_to_start(tag, options.container));
  const auto earlier = co_await runs_before(tag, options.container, *facts, deadline);
  if (!earlier) co_return base::fail(earlier.error());
  const std::optional<LogWindow> window =
      options.previous ? previous_run(*facts, *earlier) : latest_run(*facts, *earlier);
  if (!window) {
    co_return base::fail(ErrorKind::kNotFound, "docker host " + config_.name + ": container " + options.container +
                                                   " of instance " + tag + " has no earlier run");
  }

  LogOptions rest;
  const LogQuery query = split(options, *window, rest);
  const LogReader reader(!facts->tty, query.times);
  provider::LogFilter filter(rest);
  if (query.until && options.tail_lines) {
    auto all = co_await client_.open_log(facts->id, query, deadline);
    if (!all) co_return base::fail(std::move(all.error()));
    const auto lines = co_await count_lines(std::move(*all), reader, deadline);
    if (!lines) co_return base::fail(lines.error());
    const auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(*options.tail_lines, 0));
    filter.skip_lines(*lines > wanted ? *lines - wanted : 0);
  }
  auto body = co_await client_.open_log(facts->id, query, deadline);
  if (!body) co_return base::fail(std::move(body.error()));
  co_return std::make_unique<LogStream>(std::move(*body), reader, filter);
}

/// kConflict for one that belongs to the instance and is still to be made.
async::Task<ContainerFacts> Host::find_container(std::string tag, std::string container, base::Deadline deadline) {
  auto facts = co_await client_.inspect(container_name(tag, container), deadline);
  if (facts && label(facts->labels, kLabelTag) == tag) co_return facts;
  if (!facts && facts.error().kind != ErrorKind::kNotFound) co_return base::fail(std::move(facts.error()));
  const auto sandbox = co_await client_.inspect(tag, deadline);
  if (!sandbox && sandbox.error().kind != ErrorKind::kNotFound) co_return base::fail(sandbox.error());
  if (!sandbox || label(sandbox->labels, kLabelTag) != tag) {
    co_return base::fail(ErrorKind::kNotFound, "docker host " + config_.name + " has no instance " + tag);
  }
  if (is_named_in(label(sandbox->labels, kLabelContainers), container)) {
    co_return base::fail(waits_to_start(tag, container));
  }
  co_return base::fail(ErrorKind::kNotFound,
                       "docker host " + config_.name + ": instance " + tag + " has no container " + container);
}

base::Error Host::waits_to_start(const std::string& tag, const std::string& container) const {
  return base::Error(ErrorKind::kConflict, "docker host " + config_.name + ": container " + container +
                                               " of instance " + tag + " is waiting to start");
}

/// Before the one that `facts` shows.
async::Task<RunBook> Host::runs_before(std::string tag, std::string container, ContainerFacts facts,
                                       base::Deadline deadline) {
  RunBook written;
  // One that runs and has never ended has no earlier run.
  if (facts.finished_at && facts.labels.contains(kLabelMessage)) {
    auto book = co_await read_run_book(std::move(tag), std::move(container), deadline);
    if (!book) co_return base::fail(std::move(book.error()));
    written = std::move(*book);
  }
  co_return earlier_runs(facts, std::move(written));
}

async::Task<RunBook> Host::read_run_book(std::string tag, std::string container, base::Deadline deadline) {
  const auto tar = co_await client_.download(keeper_name(tag), run_book_path(container), deadline);
  if (tar) co_return decode_run_book(first_file(*tar).value_or(""));
  if (tar.error().kind == ErrorKind::kNotFound || tar.error().kind == ErrorKind::kInvalid) co_return RunBook();
  co_return base::fail(tar.error());
}

}  // namespace spillway::providers::docker
