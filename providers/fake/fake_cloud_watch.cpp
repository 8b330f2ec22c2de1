// What instances of the fake cloud write and use: all of it follows from their names, orders and times.
#include <algorithm>

#include <fmt/format.h>

#include "providers/fake/fake_cloud_impl.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;
using base::TimePoint;
using base::WallTime;
using model::ContainerState;

constexpr std::uint64_t kPageLines = 1000;
constexpr size_t kPageBytes = size_t{64} * 1024;
constexpr std::uint64_t kMiB = 1024 * 1024;

/// One run of a container, as its log shows it.
struct Run {
  int number = 1;
  WallTime started_at;
  std::optional<WallTime> finished_at;
};

/// The second, the fourth, ... go to standard error.
provider::LogChannel channel_of(std::uint64_t index) {
  return index % 2 == 0 ? provider::LogChannel::kStdout : provider::LogChannel::kStderr;
}

/// How many lines are written by `now`.
std::uint64_t lines_by(const PodOrders& orders, const Run& run, WallTime now) {
  if (!orders.start_error.empty()) return 0;
  const auto all = static_cast<std::uint64_t>(orders.log_lines);
  if (orders.log_every <= base::Duration{0}) return all;
  const base::Duration age = run.finished_at.value_or(now) - run.started_at;
  if (age < base::Duration{0}) return 0;
  return std::min(all, static_cast<std::uint64_t>(age / orders.log_every) + 1);
}

}  // namespace

Reply<LogPage> FakeCloud::read_log(const std::string& id, const LogRequest& request, TimePoint now) {
  advance(now);
  const Machine* m = find(id);
  CallFacts facts;
  facts.call = Call::kReadLog;
  if (m != nullptr) facts.tag = m->view.tag.str();
  const Verdict verdict = judge(facts, now);
  return answer<LogPage>(verdict, [&]() -> base::Result<LogPage> {
    if (m == nullptr) return base::fail(no_such_instance(id));
    return lines_of(*m, request, now);
  });
}

base::Result<LogPage> FakeCloud::lines_of(const Machine& m, const LogRequest& request, TimePoint now) const {
  const std::string who = "container " + request.container + " of instance " + m.view.ref.id.str();
  const auto c = std::ranges::find(m.view.containers, request.container,
                                   [](const auto& each) -> const std::string& { return each.name.str(); });
  if (c == m.view.containers.end()) return base::fail(ErrorKind::kNotFound, "there is no " + who);
  if (c->state == ContainerState::kWaiting || !c->started_at) {
    return base::fail(ErrorKind::kConflict, who + " is waiting to start");
  }
  const auto index = static_cast<size_t>(c - m.view.containers.begin());
  Run run;
  run.number = m.lives[index].runs;
  run.started_at = *c->started_at;
  run.finished_at = c->finished_at;
  if (request.previous) {
    if (!m.past || !m.past->contains(index)) return base::fail(ErrorKind::kNotFound, who + " has no earlier run");
    const PastRun& past = m.past->at(index);
    --run.number;
    run.started_at = past.started_at;
    run.finished_at = past.finished_at;
  }

  const std::uint64_t count = lines_by(*m.orders, run, wall(now));
  const std::string& pod = m.pod.empty() ? m.view.tag.str() : m.pod.str();
  LogPage page;
  page.ended = run.finished_at.has_value();
  page.next = request.tail ? count - std::min(*request.tail, count) : std::min(request.from, count);
  size_t bytes = 0;
  for (; page.next < count && page.lines.size() < kPageLines && bytes < kPageBytes; ++page.next) {
    LogLine& line = page.lines.emplace_back();
    const auto since_start = m.orders->log_every * static_cast<std::int64_t>(page.next);
    line.at = run.started_at + std::chrono::duration_cast<std::chrono::microseconds>(since_start);
    line.channel = channel_of(page.next);
    line.text = fmt::format("{} {} run {}: line {} of {}", pod, request.container, run.number, page.next + 1,
                            m.orders->log_lines);
    const auto width = static_cast<size_t>(m.orders->log_width);
    if (line.text.size() < width) line.text.append(width - line.text.size(), '.');
    bytes += line.text.size();
  }
  return page;
}

/// A tenth of a CPU, and memory that grows from 16 to 64 MiB within its first 48 seconds.
Reply<std::vector<provider::Sample>> FakeCloud::samples(TimePoint now) {
  CallFacts facts;
  facts.call = Call::kSamples;
  const Verdict verdict = judge(facts, now);
  return answer<std::vector<provider::Sample>>(verdict, [&] {
    std::vector<provider::Sample> out;
    for (const auto& [tag, serial] : by_tag_) {
      const Machine& m = *machines_.at(serial);
      if (m.foreign) continue;
      for (const model::InstanceContainer& c : m.view.containers) {
        if (c.state != ContainerState::kRunning) continue;
        provider::Sample& sample = out.emplace_back();
        sample.instance.id = m.view.ref.id;
        sample.container = c.name.str();
        sample.at = wall(now);
        const auto age = static_cast<std::uint64_t>((sample.at - *c.started_at).count());  // in microseconds
        sample.cpu_ns = 1'000'000 + age * 100;
        sample.working_set = (16 + std::min<std::uint64_t>(age / 1'000'000, 48)) * kMiB;
      }
    }
    return base::Result<std::vector<provider::Sample>>(std::move(out));
  });
}

}  // namespace spillway::providers::fake
