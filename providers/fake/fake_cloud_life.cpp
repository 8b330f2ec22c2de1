// How instances of the fake cloud live, and what they cost.
#include <algorithm>

#include "providers/fake/fake_cloud_impl.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;
using base::TimePoint;
using model::ContainerState;
using model::InstanceState;

constexpr int kExitStartError = 128;
constexpr int kExitStopped = 143;  // 128 + SIGTERM
constexpr int kExitKilled = 137;   // 128 + SIGKILL
constexpr int kFirstPublicPort = 30000;

std::chrono::seconds billed_time(base::Duration used, const model::Billing& billing) {
  const std::int64_t grain = std::max<std::int64_t>(billing.grain.count(), 1);
  const std::int64_t exact = (used + std::chrono::seconds(1) - base::Duration(1)) / std::chrono::seconds(1);
  const std::int64_t rounded = (std::max<std::int64_t>(exact, 1) + grain - 1) / grain * grain;
  return std::max(std::chrono::seconds(rounded), billing.minimum);
}

base::Money price_of(std::chrono::seconds time, base::Money per_hour) {
  constexpr std::int64_t kHour = 3600;
  const std::int64_t rest = (per_hour.micros() * (time.count() % kHour) + kHour - 1) / kHour;
  return per_hour * (time.count() / kHour) + base::Money::from_micros(rest);
}

std::string image_id_of(const std::string& image) {
  std::uint64_t h = 0xCBF29CE484222325U;
  for (const char c : image) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  std::string id = "fake:";
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[(h >> shift) & 15U];
  return id;
}

/// Nothing runs or is about to; what was only made may be started later.
bool is_over(const model::Instance& i) {
  return std::ranges::all_of(i.containers,
                             [](const auto& c) { return c.state == ContainerState::kExited || c.created; });
}

}  // namespace

base::WallTime FakeCloud::wall(TimePoint t) const {
  return start_.wall + std::chrono::duration_cast<std::chrono::microseconds>(t - start_.steady);
}

void FakeCloud::schedule(TimePoint at, Todo todo) { agenda_.emplace(at, std::move(todo)); }

void FakeCloud::advance(TimePoint now) {
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    const auto next = agenda_.extract(agenda_.begin());
    perform(next.mapped(), next.key());
  }
  walk_prices(now);
}

void FakeCloud::perform(const Todo& todo, TimePoint at) {
  if (todo.what == Todo::What::kGhost) {
    // The cloud had accepted it; if it cannot be had any more by now, nothing appears.
    std::ignore = buy(std::move(*todo.ghost), Verdict(), at);
    return;
  }
  const auto it = machines_.find(todo.serial);
  if (it == machines_.end()) return;
  Machine& m = *it->second;
  switch (todo.what) {
    case Todo::What::kBoot: boot(m, at); break;
    case Todo::What::kContainerEnds:
      if (m.lives[todo.container].runs == todo.run &&
          m.view.containers[todo.container].state == ContainerState::kRunning) {
        end_container(m, todo.container,
                      m.orders->exit_code_of_run(m.view.containers[todo.container].name.str(), todo.run), m.orders->oom,
                      at);
      }
      break;
    case Todo::What::kContainerStops:
      if (m.lives[todo.container].runs == todo.run &&
          m.view.containers[todo.container].state == ContainerState::kRunning) {
        end_container(m, todo.container, todo.exit_code, false, at);
        if (todo.again && m.view.state != InstanceState::kTerminating) start_again(m, todo.container, at);
      }
      break;
    case Todo::What::kPreempt: {
      KillOrder order;
      m.view.preempted = true;
      begin_end(m, at + order.notice, "preempt", at);
      break;
    }
    case Todo::What::kGone:
      // A later order may have moved the end.
      if (m.gone_at == at) remove(m.serial, at);
      break;
    case Todo::What::kGhost: break;
  }
}

void tell(const CloudSettings& settings, const model::Instance& instance, bool foreign, Sight::What what,
          TimePoint at) {
  if (!settings.observer) return;
  Sight sight;
  sight.what = what;
  sight.instance = &instance;
  sight.foreign = foreign;
  sight.at = at;
  settings.observer(sight);
}

void FakeCloud::boot(Machine& m, TimePoint at) {
  if (m.view.state != InstanceState::kPending) return;
  if (!m.image_error.empty()) {
    m.view.state = InstanceState::kFailed;
    m.view.image_error = true;
    m.view.message = m.image_error;
    for (auto& c : m.view.containers) {
      c.reason = "ErrImagePull";
      c.message = m.image_error;
      c.image_id.clear();
    }
    return tell(settings_, m.view, m.foreign, Sight::What::kChanged, at);
  }
  if (!m.orders->fail_boot.empty()) {
    m.view.state = InstanceState::kFailed;
    m.view.message = m.orders->fail_boot;
    return tell(settings_, m.view, m.foreign, Sight::What::kChanged, at);
  }
  const bool starts = std::ranges::any_of(m.lives, &ContainerLife::start_at_boot);
  if (starts) m.view.state = InstanceState::kRunning;
  for (size_t i = 0; i < m.view.containers.size(); ++i) {
    auto& c = m.view.containers[i];
    c.image_id = image_id_of(c.image_id);
    texts_.share(c.image_id);
    c.created = !m.lives[i].start_at_boot;
  }
  if (!starts) tell(settings_, m.view, m.foreign, Sight::What::kChanged, at);
  for (size_t i = 0; i < m.view.containers.size(); ++i) {
    if (m.lives[i].start_at_boot) start_container(m, i, at);
  }
  for (const int port : m.public_ports) {
    model::InstancePort published;
    published.container_port = port;
    published.host = "fake.invalid";  // nothing listens there, and the name says so
    published.public_port = kFirstPublicPort + static_cast<int>((m.serial * 8 + m.view.ports.size()) % 30000);
    m.view.ports.push_back(std::move(published));
  }
  if (m.orders->preempt_after) {
    Todo todo;
    todo.what = Todo::What::kPreempt;
    todo.serial = m.serial;
    schedule(at + *m.orders->preempt_after, std::move(todo));
  }
}

void FakeCloud::start_container(Machine& m, size_t index, TimePoint at) {
  auto& c = m.view.containers[index];
  if (c.started_at && c.finished_at) {
    if (!m.past) m.past = std::map<size_t, PastRun>();
    PastRun& past = (*m.past)[index];
    past.started_at = *c.started_at;
    past.finished_at = *c.finished_at;
  }
  const int run = ++m.lives[index].runs;
  c.state = ContainerState::kRunning;
  c.created = false;
  c.reason.clear();
  c.message.clear();
  c.exit_code.reset();
  c.oom_killed = false;
  c.started_at = wall(at);
  c.finished_at.reset();
  c.container_id = m.view.ref.id.str() + "-" + std::to_string(index) + "-" + std::to_string(run);
  tell(settings_, m.view, m.foreign, Sight::What::kChanged, at);
  if (!m.orders->start_error.empty()) {
    end_container(m, index, kExitStartError, false, at);
    c.reason = "StartError";
    c.message = m.orders->start_error;
    return;
  }
  const auto run_time = m.orders->run_time_of(c.name.str());
  if (!run_time) return;
  Todo todo;
  todo.what = Todo::What::kContainerEnds;
  todo.serial = m.serial;
  todo.container = index;
  todo.run = run;
  schedule(at + *run_time, std::move(todo));
}

void FakeCloud::end_container(Machine& m, size_t index, int exit_code, bool oom, TimePoint at) {
  auto& c = m.view.containers[index];
  c.state = ContainerState::kExited;
  c.exit_code = exit_code;
  c.oom_killed = oom;
  c.finished_at = wall(at);
  c.reason = oom ? "OOMKilled" : (exit_code == 0 ? "Completed" : "Error");
  if (m.view.state == InstanceState::kRunning && is_over(m.view)) {
    m.view.state = InstanceState::kExited;
    if (!settings_.bills_stopped) stop_meter(m, at);
  }
  tell(settings_, m.view, m.foreign, Sight::What::kChanged, at);
}

base::Result<void> FakeCloud::do_control(Machine& m, const std::string& container, provider::ContainerAction action,
                                         std::chrono::seconds grace, TimePoint now) {
  using provider::ContainerAction;
  const auto it =
      std::ranges::find(m.view.containers, container, [](const auto& c) -> const std::string& { return c.name.str(); });
  if (it == m.view.containers.end()) {
    return base::fail(ErrorKind::kInvalid, "instance " + m.view.ref.id.str() + " has no container " + container);
  }
  const bool made = m.view.state == InstanceState::kPending && it->created;
  if (!made && m.view.state != InstanceState::kRunning && m.view.state != InstanceState::kExited) {
    return base::fail(ErrorKind::kConflict, "instance " + m.view.ref.id.str() + " is " +
                                                std::string(model::to_string(m.view.state)) +
                                                "; its containers cannot be started or stopped now");
  }
  const auto index = static_cast<size_t>(it - m.view.containers.begin());
  if (it->state != ContainerState::kRunning) {
    if (action != ContainerAction::kStop) start_again(m, index, now);
  } else if (action != ContainerAction::kStart) {
    stop_container(m, index, grace, action == ContainerAction::kRestart, now);
  }
  advance(now);
  return {};
}

/// It takes what was ordered, and is killed when the grace is over.
void FakeCloud::stop_container(Machine& m, size_t index, std::chrono::seconds grace, bool again, TimePoint now) {
  const base::Duration most = std::max(grace, std::chrono::seconds(0));
  Todo todo;
  todo.what = Todo::What::kContainerStops;
  todo.serial = m.serial;
  todo.container = index;
  todo.run = m.lives[index].runs;
  todo.exit_code = m.orders->stop_time > most ? kExitKilled : kExitStopped;
  todo.again = again;
  schedule(now + std::min(m.orders->stop_time, most), std::move(todo));
}

void FakeCloud::start_again(Machine& m, size_t index, TimePoint at) {
  m.view.state = InstanceState::kRunning;
  start_meter(m, at);
  start_container(m, index, at);
}

void FakeCloud::begin_end(Machine& m, TimePoint gone_at, std::string_view by, TimePoint now) {
  Account& account = account_of(m);
  if (account.ended_by.empty()) account.ended_by = by;
  if (m.gone_at) gone_at = std::min(gone_at, *m.gone_at);  // asking again does not prolong it
  m.gone_at = gone_at;
  if (gone_at <= now) {
    remove(m.serial, now);
    return;
  }
  m.view.state = InstanceState::kTerminating;
  tell(settings_, m.view, m.foreign, Sight::What::kChanged, now);
  if (gone_at == TimePoint::max()) return;
  Todo todo;
  todo.what = Todo::What::kGone;
  todo.serial = m.serial;
  schedule(gone_at, std::move(todo));
}

void FakeCloud::remove(Serial serial, TimePoint at) {
  const auto it = machines_.find(serial);
  Machine& m = *it->second;
  stop_meter(m, at);
  Account& account = account_of(m);
  account.gone = wall(at);
  if (const auto used = in_use_.find(account.offer); used != in_use_.end()) --used->second;
  const auto [first, last] = by_tag_.equal_range(account.tag);
  by_tag_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == serial; }));
  tell(settings_, m.view, m.foreign, Sight::What::kGone, at);
  machines_.erase(it);
}

void FakeCloud::start_meter(Machine& m, TimePoint at) {
  if (!m.meter_since) m.meter_since = at;
}

void FakeCloud::stop_meter(Machine& m, TimePoint at) {
  if (!m.meter_since) return;
  account_of(m).billed += billed_time(at - *m.meter_since, m.view.billing);
  m.meter_since.reset();
}

std::vector<InvoiceLine> FakeCloud::invoice(TimePoint now) {
  advance(now);
  std::vector<InvoiceLine> out;
  Serial serial = 0;
  for (const Account& account : accounts_) {
    InvoiceLine& line = out.emplace_back();
    line.instance = id_of(++serial);
    line.tag = account.tag;
    line.offer = account.offer;
    line.price_per_hour = account.price_per_hour;
    line.billed = account.billed;
    const auto m = machines_.find(serial);
    line.running = m != machines_.end() && m->second->meter_since;
    if (line.running) line.billed += billed_time(now - *m->second->meter_since, m->second->view.billing);
    line.amount = price_of(line.billed, line.price_per_hour);
  }
  return out;
}

void FakeCloud::walk_prices(TimePoint now) {
  if (settings_.price_step <= base::Duration{0} || settings_.price_permille <= 0) return;
  const std::int64_t due = (now - start_.steady) / settings_.price_step;
  for (; price_steps_done_ < due; ++price_steps_done_) {
    for (size_t i = 0; i < settings_.offers.size(); ++i) {
      auto& price = settings_.offers[i].offer.price_per_hour;
      if (!price) continue;
      const auto width = 2 * static_cast<std::uint64_t>(settings_.price_permille) + 1;
      const std::int64_t permille = static_cast<std::int64_t>(price_random_.next() % width) - settings_.price_permille;
      // Kept between half and twice the list price, so that a long walk stays a market.
      const std::int64_t moved = price->micros() + price->micros() * permille / 1000;
      price = base::Money::from_micros(std::clamp(moved, list_prices_[i].micros() / 2, list_prices_[i].micros() * 2));
    }
  }
}

}  // namespace spillway::providers::fake
