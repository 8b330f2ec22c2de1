// The World, second part: daemons that start, die, stop, freeze and come back.
#include <algorithm>

#include "test/simulation/world.hpp"

namespace spillway::simulation {

Machine* World::running(std::int64_t which) {
  std::vector<Machine*> all;
  for (Machine& machine : machines_) {
    if (machine.state() == Machine::State::kRunning) all.push_back(&machine);
  }
  return all.empty() ? nullptr : all.at(static_cast<size_t>(which) % all.size());
}

void World::start_daemon() {
  if (closing_) return;
  machines_.emplace_back(*this, static_cast<int>(machines_.size()));
  users_.daemon_runs = true;
  trace_.note("start", machines_.back().name());
}

void World::kill_daemon(std::int64_t which, int handlers, base::Duration restart) {
  Machine* const machine = running(which);
  if (machine == nullptr) return;
  coverage_.reach(Counter::kKilled);
  if (machine->buying > 0) coverage_.reach(Counter::kKilledBuying);
  trace_.note("kill", machine->name(), handlers);
  harmed_.insert(machine->name());
  if (handlers == 0 || machine->host().frozen()) {
    machine->kill();
  } else {
    machine->kill_after(handlers);
    // One that does nothing for a second dies all the same.
    agenda_.after(std::chrono::seconds(1), [machine] { machine->kill(); });
  }
  users_.daemon_runs = running(0) != nullptr;
  agenda_.after(restart, [this] { start_daemon(); });
}

void World::stop_daemon(std::int64_t which, base::Duration restart) {
  Machine* const machine = running(which);
  if (machine == nullptr || machine->host().frozen()) return;
  coverage_.reach(Counter::kStopped);
  trace_.note("stop", machine->name());
  machine->stop();
  users_.daemon_runs = running(0) != nullptr;
  agenda_.after(restart, [this] { start_daemon(); });
}

void World::kill_stopping_daemon(std::int64_t which, int handlers, base::Duration restart) {
  Machine* const machine = running(which);
  if (machine == nullptr || machine->host().frozen()) return;
  trace_.note("stop-kill", machine->name(), handlers);
  harmed_.insert(machine->name());
  machine->stop();
  machine->kill_after(handlers);
  users_.daemon_runs = running(0) != nullptr;
  agenda_.after(restart, [this] { start_daemon(); });
}

void World::freeze_daemon(std::int64_t which, base::Duration how_long) {
  Machine* const machine = running(which);
  if (machine == nullptr || machine->host().frozen()) return;
  trace_.note("freeze", machine->name());
  harmed_.insert(machine->name());
  machine->host().freeze(true);
  agenda_.after(how_long, [this, machine] {
    machine->host().freeze(false);
    trace_.note("thaw", machine->name());
    if (holder_ != machine->name()) coverage_.reach(Counter::kFrozen);
  });
}

void World::jump_clock(std::int64_t which, base::Duration by) {
  Machine* const machine = running(which);
  if (machine == nullptr) return;
  coverage_.reach(Counter::kClockJump);
  machine->host().jump_wall(by);
}

}  // namespace spillway::simulation
