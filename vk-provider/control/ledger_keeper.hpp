// Keeps the ledger: hears every claim of the providers, and writes what it comes to into ConfigMaps.
//
// Owned by the daemon, outlives the providers and pod_controller; reactor thread only. It decides nothing about money:
// core/ledger does. It reads the ledger before anything is bought, and writes while the installation lease is ours: one
// object at a time, on top of the version that it knows, what has changed since the last time in one go. After a
// conflict it reads the object again and puts its own rows into it. An entry goes from memory once it is written as
// gone. An instance that a complete listing leaves out, and that no record stands for, is asked for by name: only "not
// found" ends an entry.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/control/provider_set.hpp"
#include "vk-provider/core/ledger.hpp"
#include "vk-provider/kube/config_map_client.hpp"
#include "vk-provider/model/ownership.hpp"
#include "vk-provider/model/pod_record.hpp"
#include "vk-provider/provider/bookkeeper.hpp"

namespace spillway::control {

struct LedgerDeps {
  async::Timers* timers = nullptr;
  base::Metrics* metrics = nullptr;
  kube::KubeApi* api = nullptr;
  ProviderSet* providers = nullptr;
  model::Ownership ownership;
  std::string ns;            // of the installation
  std::string installation;  // its name
  base::Duration retention{std::chrono::hours(24 * 365)};
  std::function<bool()> holds_lease;
  /// What is known of a pod now; null: nothing.
  std::function<const model::PodRecord*(const base::PodUid&)> find_pod;
  /// Whether a record stands for this instance: then that record's end is waited for.
  std::function<bool(const base::PodUid&, int attempt)> owned;
  /// Before this nothing was bought for the pod under the tag; nothing if that is not known.
  std::function<std::optional<base::TimePoint>(const base::PodUid&, const base::InstanceTag&)> bought_after;
  /// Nothing of a pod that await() was called for is left to be written.
  std::function<void(const base::PodUid&)> settled;
  /// The ledger was read: what was spent and what runs.
  std::function<void(const core::SpendState&)> restored;
  /// The instance costs money from now on, whoever bought it. Not called for what `restored` told of.
  std::function<void(const core::LedgerEntry&)> runs;
  /// Nothing is billed under the tag of this one any more.
  std::function<void(const core::LedgerEntry&)> stopped;
};

class LedgerKeeper final : public provider::Bookkeeper {
 public:
  explicit LedgerKeeper(LedgerDeps deps);

  void bought(const provider::ProviderInfo& info, const model::Placement& placement, const model::PodSpec& pod,
              const model::Instance& instance) override;
  void started(const model::InstanceRef& ref, base::TimePoint asked) override;
  void seen(const provider::ProviderInfo& info, const model::Instance& instance) override;
  void listed(const provider::ProviderInfo& info, const provider::OwnedList& list, base::TimePoint began) override;
  void not_found(const model::InstanceRef& ref) override;

  /// Returns once the ledger was read, or is found to be one that cannot be.
  boost::asio::awaitable<void> first_look();
  /// Writes, and goes on trying to read what could not be read; until it is cancelled.
  async::Loop run();
  /// Asks for instances that listings leave out; until it is cancelled.
  async::Loop run_questions();

  /// True once it was read, as long as it can be written: before and otherwise nothing is to be bought.
  bool ready() const { return loaded_ && problem_.empty(); }
  /// Why it cannot be read or written; for people.
  const std::string& problem() const { return problem_; }
  /// Everything of this pod is written.
  bool settled(const base::PodUid& uid) const { return !unwritten_.contains(uid); }
  /// `settled` of the deps is called once it is.
  void await(const base::PodUid& uid);
  /// Returns when all is written, or at the deadline.
  boost::asio::awaitable<void> drain(base::Deadline deadline);

  const core::Ledger& ledger() const { return ledger_; }

 private:
  struct Shard {
    std::string day;
    int number = 1;
    std::string version;                          // empty: not written yet
    std::map<core::LedgerKey, std::string> rows;  // of what is gone
    std::set<core::LedgerKey> open;               // of these the ledger has the entries
    std::set<core::LedgerKey> dirty;              // changed since it was written
    size_t bytes = 0;                             // of the rows
    base::TimePoint due = base::TimePoint::max();
  };
  using ShardKey = std::pair<std::string, int>;

  void take(const provider::ProviderInfo& info, const model::Instance& instance, const core::LedgerOwner* of,
            std::optional<base::TimePoint> earliest);
  void tell_stopped(const core::LedgerEntry& entry);
  core::LedgerOwner describe(const base::PodUid& uid, const base::InstanceTag& tag) const;
  void note_change(const core::LedgerKey& key, bool urgent);
  Shard& home_of(const core::LedgerKey& key);
  /// Puts the entry into the shard as it stands now.
  void set_row(Shard& shard, const core::LedgerEntry& entry);
  kube::ConfigMap object_of(const Shard& shard) const;

  async::Task<void> load();
  base::Result<void> take_shards(std::vector<kube::ConfigMap> maps);
  async::Task<void> write(Shard& shard);
  async::Task<void> read_again(Shard& shard, base::Deadline deadline);
  void written(Shard& shard, const std::set<core::LedgerKey>& keys);
  void wrote(const base::Result<void>& result);
  void drop_done();
  Shard* next_due();
  boost::asio::awaitable<void> remove_old();
  void show();

  LedgerDeps d_;
  kube::ConfigMapClient maps_;
  core::Ledger ledger_;
  std::unique_ptr<async::Waiter> waiter_;
  std::unique_ptr<async::Waiter> asker_;
  bool loaded_ = false;
  bool hurry_ = false;
  std::string problem_;
  std::map<ShardKey, Shard> shards_;                 // those that may be written again
  std::map<core::LedgerKey, Shard*> homes_;          // of the entries that the ledger has
  std::set<core::LedgerKey> early_;                  // heard of before the ledger was read
  std::unordered_map<base::PodUid, int> unwritten_;  // entries, by pod
  std::unordered_set<base::PodUid> awaited_;
  std::deque<model::InstanceRef> questions_;
  base::TimePoint next_write_{};
  base::TimePoint failing_since_{};
  int failures_ = 0;
  std::map<std::pair<std::string, std::string>, base::Counter*> spend_;  // by provider and namespace
};

}  // namespace spillway::control
