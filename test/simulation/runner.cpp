#include "test/simulation/runner.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace spillway::simulation {
namespace {

/// A worker and the pipe through which it reports: lines of words.
struct Worker {
  pid_t pid = -1;
  int pipe = -1;
  std::string unread;
  std::uint64_t seed = 0;  // that it is busy with
  bool open = true;
};

// Of real time. A run takes a second; what takes so long, also under a sanitizer, turns in a circle.
constexpr unsigned kPatienceSeconds = 240;

void write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) std::_Exit(3);
    if (n > 0) done += static_cast<size_t>(n);
  }
}

std::string report(const Outcome& outcome) {
  std::string line = "done " + std::to_string(outcome.lives) + " " + std::to_string(outcome.virtual_time.count());
  for (size_t i = 0; i < Coverage::kSize; ++i) line += " " + std::to_string(outcome.coverage[i]);
  line += "\n";
  if (outcome.violation) line += "bad " + outcome.violation->rule + "\t" + outcome.violation->what + "\n";
  return line;
}

Outcome run_plan(Plan plan, const Mutant* mutant) {
  ::alarm(kPatienceSeconds);
  Options options;
  options.mutant = mutant;
  World world(std::move(plan), options);
  return world.run();
}

/// Runs `work` in a child that can write to the pipe.
template <class Work>
Worker spawn(const Work& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  std::cout.flush();
  Worker worker;
  worker.pid = ::fork();
  if (worker.pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (worker.pid == 0) {
    ::close(ends[0]);
    work(ends[1]);
    std::_Exit(0);
  }
  ::close(ends[1]);
  worker.pipe = ends[0];
  return worker;
}

Worker spawn_worker(const Batch& batch, int index) {
  return spawn([&](int out) {
    for (std::uint64_t seed = batch.first + static_cast<std::uint64_t>(index); !batch.last || seed <= *batch.last;
         seed += static_cast<std::uint64_t>(batch.jobs)) {
      write_all(out, "seed " + std::to_string(seed) + "\n");
      const Outcome outcome = run_plan(plan_of(batch, seed), batch.mutant);
      write_all(out, report(outcome));
      if (outcome.violation && !batch.keep_going) return;
    }
    write_all(out, "end\n");
  });
}

void take_line(const std::string& line, Worker& worker, Tally& tally) {
  std::istringstream words(line);
  std::string what;
  words >> what;
  if (what == "seed") {
    words >> worker.seed;
  } else if (what == "done") {
    std::uint64_t lives = 0;
    std::int64_t time = 0;
    words >> lives >> time;
    tally.lives += lives;
    tally.virtual_time += base::Duration(time);
    ++tally.seeds;
    for (size_t i = 0; i < Coverage::kSize; ++i) {
      std::uint64_t count = 0;
      words >> count;
      tally.coverage.reach(static_cast<Counter>(i), count);
    }
  } else if (what == "bad") {
    const size_t tab = line.find('\t');
    tally.findings.push_back({worker.seed, Violation{line.substr(4, tab - 4), line.substr(tab + 1)}});
  } else if (what == "end") {
    worker.open = false;
  }
}

/// Takes what a worker has written; at its end says so, and what killed it if it did not end by itself.
void take(Worker& worker, Tally& tally) {
  std::array<char, 65536> buffer{};
  const ssize_t n = ::read(worker.pipe, buffer.data(), buffer.size());
  if (n > 0) worker.unread.append(buffer.data(), static_cast<size_t>(n));
  for (size_t end = worker.unread.find('\n'); end != std::string::npos; end = worker.unread.find('\n')) {
    take_line(worker.unread.substr(0, end), worker, tally);
    worker.unread.erase(0, end + 1);
  }
  if (n > 0 || (n < 0 && errno == EINTR)) return;
  worker.open = false;
  int status = 0;
  ::waitpid(worker.pid, &status, 0);
  ::close(worker.pipe);
  worker.pid = -1;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    tally.findings.push_back(
        {worker.seed, Violation{"a run comes to its end", fmt::format("not after {} s", kPatienceSeconds)}});
  } else if (WIFSIGNALED(status)) {
    tally.findings.push_back({worker.seed, Violation{"the daemon does not crash", ::strsignal(WTERMSIG(status))}});
  } else if (WEXITSTATUS(status) != 0) {
    tally.findings.push_back(
        {worker.seed, Violation{"the daemon does not crash", "exit code " + std::to_string(WEXITSTATUS(status))}});
  }
}

void end_all(std::vector<Worker>& workers) {
  for (Worker& worker : workers) {
    if (worker.pid < 0) continue;
    ::kill(worker.pid, SIGKILL);
    ::waitpid(worker.pid, nullptr, 0);
    ::close(worker.pipe);
  }
}

}  // namespace

Plan plan_of(const Batch& batch, std::uint64_t seed) {
  return batch.mutant == nullptr ? draw_plan(seed) : draw_thin_plan(seed);
}

Tally run_batch(const Batch& batch, const std::function<void(const Tally&)>& progress) {
  const auto begun = std::chrono::steady_clock::now();
  auto told = begun;
  std::vector<Worker> workers;
  for (int i = 0; i < batch.jobs; ++i) workers.push_back(spawn_worker(batch, i));
  Tally tally;
  for (;;) {
    std::vector<pollfd> waits;
    for (const Worker& worker : workers) {
      if (worker.pid > 0) waits.push_back({worker.pipe, POLLIN, 0});
    }
    if (waits.empty()) break;
    ::poll(waits.data(), waits.size(), 1000);
    for (Worker& worker : workers) {
      for (const pollfd& wait : waits) {
        if (worker.pid > 0 && wait.fd == worker.pipe && wait.revents != 0) take(worker, tally);
      }
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - told >= std::chrono::seconds(1)) {
      told = now;
      progress(tally);
    }
    const bool late = batch.limit && now - begun >= *batch.limit;
    if ((!tally.findings.empty() && !batch.keep_going) || late || (batch.lives && tally.lives >= *batch.lives)) break;
  }
  end_all(workers);
  return tally;
}

std::optional<Violation> run_apart(const Plan& plan, const Mutant* mutant) {
  std::vector<Worker> workers;
  workers.push_back(spawn([&](int out) { write_all(out, report(run_plan(plan, mutant))); }));
  Tally tally;
  while (workers[0].pid > 0) take(workers[0], tally);
  return tally.findings.empty() ? std::nullopt : std::optional(tally.findings[0].violation);
}

}  // namespace spillway::simulation
