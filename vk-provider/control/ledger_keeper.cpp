#include "vk-provider/control/ledger_keeper.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/control/ledger_codec.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

constexpr base::Duration kCallDeadline = std::chrono::seconds(30);
// A row that nobody waits for is written so late, together with others.
constexpr base::Duration kGather = std::chrono::seconds(1);
constexpr base::Duration kWriteGap = std::chrono::milliseconds(250);
constexpr base::BackoffPolicy kWriteBackoff{std::chrono::milliseconds(500), std::chrono::seconds(15)};
constexpr base::BackoffPolicy kLoadBackoff{std::chrono::seconds(1), std::chrono::seconds(15)};
constexpr base::Duration kShowEvery = std::chrono::seconds(10);
constexpr base::Duration kRemoveEvery = std::chrono::hours(24);
// What cannot be written for so long is not spent, either.
constexpr base::Duration kPatience = std::chrono::minutes(1);
// A ConfigMap may have 1 MiB; one that is a quarter of that is written in little time.
constexpr size_t kMostBytes = 256 * 1024;
constexpr size_t kRowBytes = 320;  // more than most rows have
// Each is a time series.
constexpr size_t kMostNamespaces = 200;

core::LedgerOwner owner_of(const model::PodSpec& spec) {
  core::LedgerOwner out;
  out.ns = spec.key.ns;
  out.pod = spec.key.name;
  out.owner_kind = spec.owner.kind;
  out.owner_name = spec.owner.name;
  out.node = spec.node_name;
  return out;
}

/// What waiting does not mend.
bool is_lasting(const base::Error& error) {
  return error.kind == base::ErrorKind::kPermission || error.kind == base::ErrorKind::kInvalid;
}

std::string remedy_of(const base::Error& error) {
  if (error.kind == base::ErrorKind::kPermission)
    return "apply config/deploy: create, list, update and delete of configmaps in the installation's namespace";
  return "nothing is bought until it can be read and written";
}

}  // namespace

LedgerKeeper::LedgerKeeper(LedgerDeps deps)
    : d_(std::move(deps)), maps_(*d_.api, d_.ns), waiter_(d_.timers->make_waiter()), asker_(d_.timers->make_waiter()) {}

// ---- what providers say

core::LedgerOwner LedgerKeeper::describe(const base::PodUid& uid, const base::InstanceTag& tag) const {
  core::LedgerOwner out;
  const model::PodRecord* const record = d_.find_pod(uid);
  if (record == nullptr) return out;
  const model::PodSpec& spec = *record->spec;
  out = owner_of(spec);
  const auto& state = record->observed.state;
  const model::Placement* placement = record->placement ? &*record->placement : nullptr;
  if (placement == nullptr && state.record) placement = &state.record->placement;
  if (placement == nullptr || placement->tag != tag) return out;
  out.offer = placement->offer.text();
  out.price = placement->price_per_hour;
  return out;
}

void LedgerKeeper::bought(const provider::ProviderInfo& info, const model::Placement& placement,
                          const model::PodSpec& pod, const model::Instance& instance) {
  core::LedgerOwner of = owner_of(pod);
  of.offer = placement.offer.text();
  of.price = placement.price_per_hour;
  take(info, instance, &of, d_.bought_after(placement.pod, placement.tag));
}

/// What was reserved under the tag is needed until the last of its instances costs nothing.
void LedgerKeeper::tell_stopped(const core::LedgerEntry& entry) {
  const bool twin = std::ranges::any_of(ledger_.items(), [&](const auto& each) {
    return each.second.entry.begin && each.first.second == entry.tag && each.first != core::key_of(entry);
  });
  if (!twin) d_.stopped(entry);
}

void LedgerKeeper::started(const model::InstanceRef& ref, base::TimePoint asked) {
  for (const core::LedgerKey& key : ledger_.may_run(ref, asked, d_.timers->both())) {
    if (loaded_) d_.runs(ledger_.find(key)->entry);
    note_change(key, false);
  }
}

void LedgerKeeper::seen(const provider::ProviderInfo& info, const model::Instance& instance) {
  take(info, instance, nullptr, {});
}

void LedgerKeeper::take(const provider::ProviderInfo& info, const model::Instance& instance,
                        const core::LedgerOwner* of, std::optional<base::TimePoint> earliest) {
  const auto owner = d_.ownership.parse(instance.tag);
  if (!owner || instance.ref.id.empty()) return;
  const core::Ledger::Item* const known = ledger_.find({instance.ref, instance.tag});
  const bool ran = known != nullptr && known->entry.begin;
  const bool described = known != nullptr && !known->entry.of.ns.empty() && !known->entry.of.offer.empty();
  core::LedgerOwner told;
  if (of != nullptr) {
    told = *of;
  } else if (!described) {
    told = describe(owner->uid, instance.tag);
  }
  const bool unbilled_stopped = info.capabilities.has(model::Capability::kKeepStopped);
  const auto changed = ledger_.see(instance, owner->uid, told, unbilled_stopped, earliest, d_.timers->both());
  for (const core::LedgerKey& key : changed) {
    const core::LedgerEntry& entry = ledger_.find(key)->entry;
    if (entry.begin && !ran && loaded_) d_.runs(entry);
    if (!entry.begin && (ran || entry.gone)) tell_stopped(entry);
    note_change(key, entry.gone);
  }
}

void LedgerKeeper::listed(const provider::ProviderInfo& info, const provider::OwnedList& list, base::TimePoint began) {
  std::set<std::string_view> present;
  for (const model::Instance& instance : list.instances) {
    present.insert(instance.ref.id.str());
    take(info, instance, nullptr, {});
  }
  // What is asked for already comes first.
  if (!list.complete || !questions_.empty()) return;
  for (const auto& [key, item] : ledger_.items()) {
    const model::InstanceRef& ref = key.first;
    if (ref.provider != info.name || item.entry.gone || item.learnt >= began) continue;
    if (present.contains(ref.id.str())) continue;
    const auto owner = d_.ownership.parse(item.entry.tag);
    if (!owner || !d_.owned(owner->uid, owner->attempt)) questions_.push_back(ref);
  }
  if (!questions_.empty()) asker_->wake();
}

void LedgerKeeper::not_found(const model::InstanceRef& ref) {
  for (const core::LedgerKey& key : ledger_.gone(ref, d_.timers->both())) {
    tell_stopped(ledger_.find(key)->entry);
    note_change(key, true);
  }
}

async::Loop LedgerKeeper::run_questions() {
  for (;;) {
    if (questions_.empty()) co_await asker_->wait();
    if (questions_.empty()) continue;
    const model::InstanceRef ref = questions_.front();
    provider::ThrottledProvider* const provider = d_.providers->find(ref.provider);
    // The answer comes to not_found() or seen(); without one the next listing asks again.
    if (provider != nullptr) std::ignore = co_await provider->get(ref, d_.timers->now() + kCallDeadline);
    questions_.pop_front();
  }
}

// ---- rows and shards

LedgerKeeper::Shard& LedgerKeeper::home_of(const core::LedgerKey& key) {
  const auto [it, added] = homes_.try_emplace(key);
  if (!added) return *it->second;
  const std::string today = day_of(d_.timers->wall());
  int number = 1;
  for (auto s = shards_.lower_bound({today, 1}); s != shards_.end() && s->first.first == today; ++s) {
    const bool full = s->second.bytes + s->second.open.size() * kRowBytes >= kMostBytes;
    number = full ? s->first.second + 1 : s->first.second;
  }
  Shard& shard = shards_[{today, number}];
  it->second = &shard;
  shard.day = today;
  shard.number = number;
  return shard;
}

void LedgerKeeper::set_row(Shard& shard, const core::LedgerEntry& entry) {
  if (const auto row = shard.rows.find(core::key_of(entry)); row != shard.rows.end()) {
    shard.bytes -= row->second.size();
    shard.rows.erase(row);
  }
  if (!entry.gone) {
    shard.open.insert(core::key_of(entry));
    return;
  }
  shard.open.erase(core::key_of(entry));
  shard.bytes += shard.rows.emplace(core::key_of(entry), encode_row(entry)).first->second.size();
}

kube::ConfigMap LedgerKeeper::object_of(const Shard& shard) const {
  std::map<core::LedgerKey, std::string> rows = shard.rows;
  for (const core::LedgerKey& key : shard.open) rows.insert_or_assign(key, encode_row(ledger_.find(key)->entry));
  kube::ConfigMap out = encode_shard(d_.installation, shard.day, shard.number, rows, !shard.open.empty());
  out.resource_version = shard.version;
  return out;
}

void LedgerKeeper::note_change(const core::LedgerKey& key, bool urgent) {
  const core::LedgerEntry& entry = ledger_.find(key)->entry;
  if (!loaded_) {
    if (early_.insert(key).second) ++unwritten_[entry.uid];
    return;
  }
  Shard& shard = home_of(key);
  set_row(shard, entry);
  if (shard.dirty.insert(key).second) ++unwritten_[entry.uid];
  const base::TimePoint now = d_.timers->now();
  shard.due = std::min(shard.due, urgent ? now : now + kGather);
  waiter_->wake();
}

void LedgerKeeper::await(const base::PodUid& uid) {
  awaited_.insert(uid);
  for (auto& [key, shard] : shards_) {
    const bool of_it = std::ranges::any_of(shard.dirty, [&](const auto& each) {
      const core::Ledger::Item* const item = ledger_.find(each);
      return item != nullptr && item->entry.uid == uid;
    });
    if (of_it) shard.due = d_.timers->now();
  }
  waiter_->wake();
}

void LedgerKeeper::written(Shard& shard, const std::set<core::LedgerKey>& keys) {
  std::vector<base::PodUid> done;
  show();
  for (const core::LedgerKey& key : keys) {
    const core::LedgerEntry& entry = ledger_.find(key)->entry;
    const base::PodUid uid = entry.uid;
    const auto count = unwritten_.find(uid);
    if (--count->second == 0) {
      unwritten_.erase(count);
      if (awaited_.erase(uid) > 0) done.push_back(uid);
    }
    if (entry.gone && !shard.dirty.contains(key)) {
      homes_.erase(key);
      ledger_.forget(key);
    }
  }
  for (const base::PodUid& uid : done) d_.settled(uid);
}

/// What is written for good, and will not be added to, need not stay here.
void LedgerKeeper::drop_done() {
  const std::string today = day_of(d_.timers->wall());
  std::erase_if(shards_, [&](const auto& each) {
    const auto& [key, shard] = each;
    const bool newest = key.first == today && !shards_.contains({today, key.second + 1});
    return !newest && shard.open.empty() && shard.dirty.empty();
  });
}

// ---- metrics

void LedgerKeeper::show() {
  ledger_.accrue(d_.timers->both(), [this](const core::LedgerEntry& entry, base::Money cost) {
    std::pair<std::string, std::string> key{entry.ref.provider.str(), entry.of.ns.empty() ? "unknown" : entry.of.ns};
    if (!spend_.contains(key) && spend_.size() >= kMostNamespaces) key.second = "other";
    base::Counter*& counter = spend_[key];
    if (counter == nullptr) {
      counter =
          &d_.metrics->counter("spillway_spend_dollars_total", "What instances have come to cost, by this process.",
                               {{"provider", key.first}, {"namespace", key.second}});
    }
    counter->add(static_cast<double>(cost.micros()) / 1e6);
  });
}

// ---- the loop

LedgerKeeper::Shard* LedgerKeeper::next_due() {
  Shard* out = nullptr;
  for (auto& [key, shard] : shards_) {
    if (!shard.dirty.empty() && (out == nullptr || shard.due < out->due)) out = &shard;
  }
  return out;
}

async::Loop LedgerKeeper::run() {
  for (int failures = 1; !loaded_; ++failures) {
    co_await d_.timers->sleep_for(base::backoff_delay(kLoadBackoff, failures));
    if (!loaded_) wrote(co_await load());
  }
  base::TimePoint show_at = d_.timers->now();
  base::TimePoint remove_at = d_.timers->now();
  for (;;) {
    const base::TimePoint now = d_.timers->now();
    if (now >= show_at) {
      show();
      show_at = now + kShowEvery;
    }
    if (now >= remove_at && d_.holds_lease()) {
      remove_at = now + kRemoveEvery;
      co_await remove_old();
      continue;
    }
    Shard* const shard = next_due();
    const base::TimePoint due = shard == nullptr ? base::TimePoint::max() : hurry_ ? now : shard->due;
    const base::TimePoint at = std::max(due, next_write_);
    if (shard == nullptr || at > now || !d_.holds_lease()) {
      co_await waiter_->wait_until(std::min(std::max(at, now + kWriteGap), show_at));
      continue;
    }
    wrote(co_await write(*shard));
  }
}

void LedgerKeeper::wrote(const base::Result<void>& result) {
  const base::TimePoint now = d_.timers->now();
  d_.metrics
      ->counter("spillway_ledger_writes_total", "Reads and writes of the ledger, by outcome.",
                {{"outcome", result ? "ok" : std::string(base::to_string(result.error().kind))}})
      .add();
  if (result) {
    if (!problem_.empty()) log::info("the ledger can be read and written again");
    failures_ = 0;
    problem_.clear();
    next_write_ = now + kWriteGap;
    return;
  }
  const base::Error& error = result.error();
  if (failures_++ == 0) failing_since_ = now;
  next_write_ = now + base::heed_retry_after(base::backoff_delay(kWriteBackoff, failures_), error);
  if (failures_ == 1) log::warn("the ledger is not written", {{"error", error}, {"remedy", remedy_of(error)}});
  if (!problem_.empty() || (!is_lasting(error) && now - failing_since_ < kPatience)) return;
  problem_ = "the ledger cannot be read or written: " + error.message;
  log::error("nothing is bought, because it could not be written down",
             {{"error", error}, {"remedy", remedy_of(error)}});
}

async::Task<void> LedgerKeeper::write(Shard& shard) {
  const std::set<core::LedgerKey> keys = std::exchange(shard.dirty, {});
  shard.due = base::TimePoint::max();
  const base::Deadline deadline = d_.timers->now() + kCallDeadline;
  auto version = co_await maps_.put(object_of(shard), deadline);
  if (version) {
    shard.version = std::move(*version);
    written(shard, keys);
    drop_done();
    co_return base::Result<void>();
  }
  for (const core::LedgerKey& key : keys) {
    if (shard.dirty.insert(key).second) continue;
    --unwritten_[ledger_.find(key)->entry.uid];
  }
  shard.due = d_.timers->now();
  const base::ErrorKind kind = version.error().kind;
  if (kind == base::ErrorKind::kNotFound || kind == base::ErrorKind::kConflict) {
    co_return co_await read_again(shard, deadline);
  }
  co_return base::fail(std::move(version.error()));
}

/// Somebody wrote it, or an answer to us was lost. Rows that we have are newer; others are taken over.
async::Task<void> LedgerKeeper::read_again(Shard& shard, base::Deadline deadline) {
  auto map = co_await maps_.get(object_of(shard).name, deadline);
  if (!map && map.error().kind == base::ErrorKind::kNotFound) {
    shard.version.clear();
    co_return base::Result<void>();
  }
  if (!map) co_return base::fail(std::move(map.error()));
  auto entries = decode_shard(*map);
  if (!entries) co_return base::fail(std::move(entries.error()));
  for (core::LedgerEntry& entry : *entries) {
    const core::LedgerKey key = core::key_of(entry);
    if (shard.rows.contains(key) || ledger_.find(key) != nullptr) continue;
    set_row(shard, entry);
    if (entry.gone) continue;
    homes_[key] = &shard;
    if (entry.begin) d_.runs(entry);
    ledger_.restore(std::move(entry), d_.timers->both());
  }
  shard.version = std::move(map->resource_version);
  co_return base::Result<void>();
}

boost::asio::awaitable<void> LedgerKeeper::drain(base::Deadline deadline) {
  constexpr base::Duration kLook = std::chrono::milliseconds(20);
  hurry_ = true;
  waiter_->wake();
  while (loaded_ && problem_.empty() && !unwritten_.empty() && d_.timers->now() < deadline)
    co_await d_.timers->sleep_for(kLook);
}

}  // namespace spillway::control
