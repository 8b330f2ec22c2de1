// ledger_keeper, second part: what an earlier process wrote is read back, and what is too old is removed.
#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/control/ledger_codec.hpp"
#include "vk-provider/control/ledger_keeper.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

constexpr base::Duration kReadDeadline = std::chrono::seconds(60);
constexpr base::BackoffPolicy kFirstLook{std::chrono::milliseconds(500), std::chrono::seconds(5)};

}  // namespace

boost::asio::awaitable<void> LedgerKeeper::first_look() {
  for (int failures = 1;; ++failures) {
    const auto result = co_await load();
    wrote(result);
    // Who cannot be asked now can be asked for nothing else, either.
    if (loaded_ || !problem_.empty()) co_return;
    co_await d_.timers->sleep_for(base::backoff_delay(kFirstLook, failures));
  }
}

/// Of this month all that was spent, and of any time what is not gone.
async::Task<void> LedgerKeeper::load() {
  const base::Deadline deadline = d_.timers->now() + kReadDeadline;
  const std::string all = ledger_selector(d_.installation);
  const std::string month = day_of(d_.timers->wall()).substr(0, 7);
  auto maps = co_await maps_.list(all + "," + std::string(kLabelLedgerMonth) + "=" + month, deadline);
  if (!maps) co_return base::fail(std::move(maps.error()));
  auto open = co_await maps_.list(all + "," + std::string(kLabelLedgerOpen) + "=true", deadline);
  if (!open) co_return base::fail(std::move(open.error()));
  for (kube::ConfigMap& map : *open) {
    const bool known = std::ranges::any_of(*maps, [&](const auto& other) { return other.name == map.name; });
    if (!known) maps->push_back(std::move(map));
  }
  co_return take_shards(std::move(*maps));
}

base::Result<void> LedgerKeeper::take_shards(std::vector<kube::ConfigMap> maps) {
  const base::Now now = d_.timers->both();
  std::map<ShardKey, Shard> shards;
  std::map<core::LedgerKey, Shard*> homes;
  core::SpentSums sums(now);
  auto entries = decode_shards(maps);
  if (!entries) return base::fail(std::move(entries.error()));
  for (const kube::ConfigMap& map : maps) {
    const std::string stem = "spillway-ledger-" + d_.installation + "-";
    Shard read;
    read.day = map.name.substr(std::min(stem.size(), map.name.size()), 10);
    const std::string number = map.name.substr(std::min(stem.size() + 11, map.name.size()));
    read.number = number.empty() ? 1 : std::atoi(number.c_str());
    read.version = map.resource_version;
    Shard& shard = shards.emplace(ShardKey{read.day, read.number}, std::move(read)).first->second;
    auto own = decode_shard(map);
    for (core::LedgerEntry& entry : *own) {
      // Of two rows of one instance this may be the older one.
      entry.gone = entries->at(core::key_of(entry)).gone;
      set_row(shard, entry);
      if (entry.gone) continue;
      Shard*& home = homes.try_emplace(core::key_of(entry), &shard).first->second;
      if (std::tie(home->day, home->number) < std::tie(shard.day, shard.number)) home = &shard;
    }
  }
  // A row that stands in two shards goes on in the later one.
  for (auto& [key, shard] : shards) {
    std::erase_if(shard.open, [&, at = &shard](const core::LedgerKey& id) { return homes.at(id) != at; });
  }
  size_t running = 0;
  for (auto& [id, entry] : *entries) {
    sums.add(entry);
    if (entry.gone) continue;
    ++running;
    ledger_.restore(std::move(entry), now);
  }
  shards_ = std::move(shards);  // its shards stay where they are
  homes_ = std::move(homes);
  loaded_ = true;
  drop_done();
  log::info("the ledger was read", {{"objects", maps.size()}, {"entries", entries->size()}, {"not_gone", running}});
  d_.restored(sums.take());
  unwritten_.clear();
  for (const core::LedgerKey& id : std::exchange(early_, {})) {
    if (const core::LedgerEntry& entry = ledger_.find(id)->entry; entry.begin) d_.runs(entry);
    note_change(id, true);
  }
  // What was only told to an entry that stands in the ledger already may be nothing new.
  const std::unordered_set<base::PodUid> waiting = awaited_;
  for (const base::PodUid& uid : waiting) {
    if (!settled(uid)) continue;
    awaited_.erase(uid);
    d_.settled(uid);
  }
  return {};
}

boost::asio::awaitable<void> LedgerKeeper::remove_old() {
  const base::Deadline deadline = d_.timers->now() + kReadDeadline;
  const auto names = co_await maps_.list_names(ledger_selector(d_.installation), deadline);
  if (!names) {
    log::warn("old objects of the ledger cannot be listed", {{"error", names.error()}});
    co_return;
  }
  const auto oldest = d_.timers->wall() - std::chrono::duration_cast<std::chrono::microseconds>(d_.retention);
  const std::string first_day = day_of(oldest);
  for (const kube::ConfigMap& map : *names) {
    const auto label = [&](std::string_view key) {
      const auto it = map.labels.find(std::string(key));
      return it == map.labels.end() ? std::string() : it->second;
    };
    if (label(kLabelLedgerDay).empty() || label(kLabelLedgerDay) >= first_day) continue;
    if (label(kLabelLedgerOpen) != "false" || !d_.holds_lease()) continue;
    const auto removed = co_await maps_.remove(map.name, map.resource_version, deadline);
    if (!removed) {
      log::warn("an old object of the ledger cannot be removed", {{"name", map.name}, {"error", removed.error()}});
      continue;
    }
    log::info("an object of the ledger was older than spend.ledgerRetention, and is removed", {{"name", map.name}});
  }
}

}  // namespace spillway::control
