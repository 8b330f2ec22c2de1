// The calls of the fake cloud. How instances live and what they cost is in fake_cloud_life.cpp.
#include "providers/fake/fake_cloud.hpp"

#include <algorithm>
#include <charconv>

#include "providers/fake/fake_cloud_impl.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;
using base::TimePoint;

// Ids of two clouds must differ although both count from 1: an old id must not name a new instance.
std::string make_id_stem(std::uint64_t seed, base::WallTime start) {
  std::uint64_t h = seed * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(start.time_since_epoch().count());
  h ^= h >> 31;
  h *= 0xBF58476D1CE4E5B9U;
  h ^= h >> 29;
  std::string stem = "i";
  for (int shift = 28; shift >= 0; shift -= 4) stem += "0123456789abcdef"[(h >> shift) & 15U];
  return stem + "-";
}

/// What a pod without orders orders: shared, as nearly all pods are so.
const std::shared_ptr<const PodOrders>& no_orders() {
  static const auto none = std::make_shared<const PodOrders>();
  return none;
}

bool left_out(const ListFault& fault, const model::Instance& instance, size_t index, base::Duration age) {
  if (!fault.tag.empty() && instance.tag.str().find(fault.tag) == std::string::npos) return false;
  switch (fault.effect) {
    case Effect::kLaggingList: return age < fault.duration;
    case Effect::kPartialList: return !fault.tag.empty() || index % 2 == 0;
    default: return true;
  }
}

}  // namespace

FakeCloud::FakeCloud(CloudSettings settings, base::Now start)
    : settings_(std::move(settings)),
      start_(start),
      random_(settings_.seed),
      price_random_(settings_.seed + 1),
      id_stem_(make_id_stem(settings_.seed, start.wall)) {
  for (const CloudOffer& sold : settings_.offers) {
    list_prices_.push_back(sold.offer.price_per_hour.value_or(base::Money()));
  }
}

FakeCloud::~FakeCloud() = default;

Verdict FakeCloud::judge(const CallFacts& facts, TimePoint now) {
  advance(now);
  ++calls_.at(static_cast<size_t>(facts.call));
  return faults_.judge(facts, now, random_);
}

Reply<std::vector<model::Offer>> FakeCloud::list_offers(TimePoint now) {
  CallFacts facts;
  facts.call = Call::kListOffers;
  const Verdict verdict = judge(facts, now);
  return answer<std::vector<model::Offer>>(verdict, [&] {
    std::vector<model::Offer> out;
    out.reserve(settings_.offers.size());
    for (const CloudOffer& sold : settings_.offers) {
      out.push_back(sold.offer);
      out.back().available =
          (!sold.stock || in_use(sold.offer.id.text()) < *sold.stock) && !faults_.sold_out(sold.offer.id.str(), now);
    }
    return base::Result<std::vector<model::Offer>>(std::move(out));
  });
}

Reply<model::Instance> FakeCloud::create(CreateRequest request, TimePoint now) {
  CallFacts facts;
  facts.call = Call::kCreate;
  facts.tag = request.tag;
  facts.offer = request.offer;
  if (!faults_.empty()) {
    for (const auto& c : request.containers) facts.images.push_back(c.image);
  }
  const Verdict verdict = judge(facts, now);
  if (!verdict.lose_request) ++creates_[request.tag];
  if (verdict.ghost) {
    if (settings_.unique_tags && find_by_tag(request.tag) != nullptr) {
      return base::Result<model::Instance>(
          base::fail(ErrorKind::kUnknownOutcome, "the fake cloud answered 500 to a create"));
    }
    Todo todo;
    todo.what = Todo::What::kGhost;
    todo.ghost = std::make_shared<CreateRequest>(std::move(request));
    schedule(now + *verdict.ghost, std::move(todo));
    Reply<model::Instance> reply(base::fail(ErrorKind::kUnknownOutcome, "the fake cloud answered 500 to a create"));
    reply.delay = verdict.delay;
    return reply;
  }
  return answer<model::Instance>(verdict, [&] { return buy(std::move(request), verdict, now); });
}

base::Result<model::Instance> FakeCloud::buy(CreateRequest request, const Verdict& verdict, TimePoint now) {
  if (request.tag.empty() || request.containers.empty()) {
    return base::fail(ErrorKind::kInvalid, "a create needs a tag and at least one container");
  }
  if (const Machine* existing = find_by_tag(request.tag); existing != nullptr && settings_.unique_tags) {
    return existing->view;
  }

  auto orders = parse_orders(request.orders);
  if (!orders) return base::fail(orders.error());
  if (orders->fail_create)
    return base::fail(*orders->fail_create, "the pod ordered this by fake.spillway.dev/fail-create");

  const auto sold = std::ranges::find(settings_.offers, request.offer, [](const auto& o) { return o.offer.id.text(); });
  if (sold == settings_.offers.end()) {
    return base::fail(ErrorKind::kNoCapacity, "the fake cloud does not sell an offer " + request.offer.str());
  }
  if (sold->stock && in_use(request.offer) >= *sold->stock) {
    return base::fail(ErrorKind::kNoCapacity, "offer " + request.offer.str() + " is sold out");
  }

  Machine& m = add_machine(request.tag, &*sold, now);
  if (!request.orders.empty()) m.orders = std::make_shared<const PodOrders>(std::move(*orders));
  m.image_error = verdict.image_error.empty() ? m.orders->image_error : verdict.image_error;
  m.public_ports = std::move(request.public_ports);
  m.pod = std::move(request.pod);
  if (verdict.percent != 100 && m.view.price_per_hour) {
    m.view.price_per_hour = base::Money::from_micros(m.view.price_per_hour->micros() * verdict.percent / 100);
    account_of(m).price_per_hour = *m.view.price_per_hour;
  }
  m.view.containers.reserve(request.containers.size());
  m.lives.reserve(request.containers.size());
  for (auto& c : request.containers) {
    model::InstanceContainer container;
    container.name = std::move(c.name);
    container.reason = "ContainerCreating";
    container.image_id = std::move(c.image);
    m.view.containers.push_back(std::move(container));
    m.lives.emplace_back().start_at_boot = c.start;
  }
  tell(settings_, m.view, m.foreign, Sight::What::kAppeared, now);
  const Serial serial = m.serial;
  Todo todo;
  todo.serial = serial;
  schedule(now + m.orders->boot_time.value_or(settings_.boot_time), std::move(todo));
  advance(now);  // without a boot time it runs by the time the answer leaves
  const auto it = machines_.find(serial);
  if (it == machines_.end()) return base::fail(ErrorKind::kInternal, "a new instance ended before it was answered");
  return it->second->view;
}

Reply<model::Instance> FakeCloud::get(const std::string& id, TimePoint now) {
  advance(now);
  const Machine* m = find(id);
  CallFacts facts;
  facts.call = Call::kGet;
  if (m != nullptr) facts.tag = m->view.tag.str();
  const Verdict verdict = judge(facts, now);
  return answer<model::Instance>(verdict, [&]() -> base::Result<model::Instance> {
    if (m == nullptr) return base::fail(no_such_instance(id));
    return m->view;
  });
}

Reply<provider::OwnedList> FakeCloud::list_owned(const std::string& tag_prefix, TimePoint now) {
  CallFacts facts;
  facts.call = Call::kListOwned;
  facts.tag = tag_prefix;
  const Verdict verdict = judge(facts, now);
  return answer<provider::OwnedList>(verdict, [&] {
    provider::OwnedList list;
    size_t index = 0;
    for (auto it = by_tag_.lower_bound(tag_prefix); it != by_tag_.end(); ++it, ++index) {
      if (!it->first.starts_with(tag_prefix)) break;
      const Machine& m = *machines_.at(it->second);
      const bool hidden = std::ranges::any_of(
          verdict.list, [&](const ListFault& fault) { return left_out(fault, m.view, index, now - m.created); });
      if (!hidden) list.instances.push_back(m.view);
    }
    for (const ListFault& fault : verdict.list) {
      if (fault.effect != Effect::kPartialList) continue;
      list.complete = false;
      list.incomplete_why = "the fake cloud could not read all of its hosts";
    }
    return base::Result<provider::OwnedList>(std::move(list));
  });
}

Reply<void> FakeCloud::terminate(const std::string& id, std::chrono::seconds grace, TimePoint now) {
  advance(now);
  Machine* m = find(id);
  CallFacts facts;
  facts.call = Call::kTerminate;
  if (m != nullptr) facts.tag = m->view.tag.str();
  const Verdict verdict = judge(facts, now);
  if (m != nullptr && !verdict.lose_request) ++account_of(*m).terminate_calls;
  return answer<void>(verdict, [&]() -> base::Result<void> {
    if (m == nullptr) return base::fail(no_such_instance(id));
    const bool runs = m->view.state == model::InstanceState::kRunning;
    TimePoint gone_at = now;
    if (runs || m->view.state == model::InstanceState::kTerminating) {
      gone_at += std::min<base::Duration>(m->orders->stop_time, std::max(grace, std::chrono::seconds(0)));
    }
    if (verdict.stuck) gone_at = *verdict.stuck == base::Duration{0} ? TimePoint::max() : now + *verdict.stuck;
    begin_end(*m, gone_at, "terminate", now);
    return {};
  });
}

Reply<void> FakeCloud::control(const std::string& id, const std::string& container, provider::ContainerAction action,
                               std::chrono::seconds grace, TimePoint now) {
  advance(now);
  Machine* m = find(id);
  CallFacts facts;
  facts.call = Call::kControl;
  if (m != nullptr) facts.tag = m->view.tag.str();
  const Verdict verdict = judge(facts, now);
  return answer<void>(verdict, [&]() -> base::Result<void> {
    if (m == nullptr) return base::fail(no_such_instance(id));
    return do_control(*m, container, action, grace, now);
  });
}

base::Result<void> FakeCloud::kill(const std::string& id, KillOrder order, TimePoint now) {
  advance(now);
  Machine* m = find(id);
  if (m == nullptr) return base::fail(no_such_instance(id));
  switch (order.how) {
    case KillOrder::How::kRemove: begin_end(*m, now, "remove", now); break;
    case KillOrder::How::kPreempt:
      m->view.preempted = true;
      begin_end(*m, now + order.notice, "preempt", now);
      break;
    case KillOrder::How::kCrash:
      for (size_t i = 0; i < m->view.containers.size(); ++i) {
        if (m->view.containers[i].state == model::ContainerState::kRunning) {
          end_container(*m, i, order.exit_code, order.oom, now);
        }
      }
      break;
  }
  return {};
}

std::string FakeCloud::add_foreign(std::string tag, TimePoint now) {
  advance(now);
  Machine& m = add_machine(std::move(tag), settings_.offers.empty() ? nullptr : &settings_.offers.front(), now);
  m.foreign = true;
  account_of(m).foreign = true;
  model::InstanceContainer container;
  container.name = "foreign";
  m.view.containers.push_back(std::move(container));
  m.lives.emplace_back();
  tell(settings_, m.view, m.foreign, Sight::What::kAppeared, now);
  boot(m, now);
  return m.view.ref.id.str();
}

Audit FakeCloud::audit(TimePoint now) {
  advance(now);
  Audit out;
  Serial serial = 0;
  for (const Account& account : accounts_) {
    AuditEntry& entry = out.instances.emplace_back();
    entry.id = id_of(++serial);
    entry.tag = account.tag;
    entry.offer = account.offer;
    entry.foreign = account.foreign;
    entry.created = account.created;
    entry.gone = account.gone;
    entry.ended_by = account.ended_by;
    entry.terminate_calls = account.terminate_calls;
  }
  for (const auto& [tag, count] : creates_) out.creates[tag.str()] = count;
  out.calls = calls_;
  return out;
}

size_t FakeCloud::size(TimePoint now) {
  advance(now);
  return machines_.size();
}

FakeCloud::Machine* FakeCloud::find(const std::string& id) {
  if (!id.starts_with(id_stem_)) return nullptr;
  Serial serial = 0;
  const char* const end = id.data() + id.size();
  const auto [stop, error] = std::from_chars(id.data() + id_stem_.size(), end, serial);
  if (error != std::errc{} || stop != end) return nullptr;
  const auto it = machines_.find(serial);
  return it == machines_.end() ? nullptr : it->second.get();
}

FakeCloud::Machine* FakeCloud::find_by_tag(const base::SharedText& tag) {
  const auto it = by_tag_.find(tag);
  return it == by_tag_.end() ? nullptr : machines_.at(it->second).get();
}

int FakeCloud::in_use(const base::SharedText& offer) const {
  const auto it = in_use_.find(offer);
  return it == in_use_.end() ? 0 : it->second;
}

FakeCloud::Account& FakeCloud::account_of(const Machine& m) { return accounts_[m.serial - 1]; }

FakeCloud::Machine& FakeCloud::add_machine(base::SharedText tag, const CloudOffer* sold, TimePoint now) {
  auto machine = std::make_unique<Machine>();
  Machine& m = *machine;
  m.serial = next_serial_++;
  m.created = now;
  m.orders = no_orders();
  m.view.ref.id = base::InstanceId(id_of(m.serial));
  m.view.tag = base::InstanceTag(tag);
  m.view.state = model::InstanceState::kPending;
  m.view.created_at = wall(now);

  Account& account = accounts_.emplace_back();
  account.tag = tag;
  account.created = *m.view.created_at;
  if (sold != nullptr) {
    account.offer = sold->offer.id.text();
    account.price_per_hour = sold->offer.price_per_hour.value_or(base::Money());
    m.view.price_per_hour = sold->offer.price_per_hour;
    m.view.billing.grain = sold->grain;
    m.view.billing.minimum = sold->minimum;
    ++in_use_[account.offer];
  }
  by_tag_.emplace(std::move(tag), m.serial);
  machines_.emplace(m.serial, std::move(machine));
  start_meter(m, now);
  m.view.billing.from = m.view.created_at;
  return m;
}

}  // namespace spillway::providers::fake
