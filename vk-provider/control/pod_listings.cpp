// pod_controller, fifth part: what providers hold, joined to pods once and compared with them from then on.
#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/pod_controller.hpp"
#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/container_order.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

bool expects_instance(const model::PodRecord& record) {
  if (core::instance_of(record) != nullptr || std::holds_alternative<model::Stopping>(record.stage)) return true;
  if (const auto* creating = std::get_if<model::Creating>(&record.stage)) {
    return creating->step == model::Creating::Step::kLookUp;
  }
  const auto* finished = std::get_if<model::Finished>(&record.stage);
  return finished != nullptr && finished->kept.has_value();
}

/// Of a record that expects an instance: whether it can be asked for.
bool has_id(const model::PodRecord& record) {
  if (const auto* creating = std::get_if<model::Creating>(&record.stage)) return creating->known.has_value();
  const auto* stopping = std::get_if<model::Stopping>(&record.stage);
  return stopping == nullptr || !stopping->gone;
}

/// A record to which it matters that a listing leaves its instance out.
bool is_looked_for(const model::PodRecord& record) {
  const auto* finished = std::get_if<model::Finished>(&record.stage);
  return expects_instance(record) && (finished == nullptr || !finished->unseen);
}

}  // namespace

/// Tells an admitted pod what its provider holds for it, as soon as that is known.
void PodController::join(PodEntry& entry) {
  const model::PodRecord& record = entry.record;
  const base::PodUid uid = record.key().uid;
  core::event::Joined joined;
  joined.price_cap = entry.profile->max_price_per_hour;
  if (record.observed.state.kind == model::StateAnnotation::Kind::kRecord) {
    const base::ProviderName& name = record.observed.state.record->placement.provider;
    const provider::ThrottledProvider* provider = d_.providers->find(name);
    if (provider == nullptr) {
      joined.problem =
          "its provider " + name.str() + " is not configured; add it to providers[] until its pods are gone";
      unjoined_.erase(uid);
      return post(uid, std::move(joined));
    }
    // Every listing is newer than the lease: no former daemon buys any more, but for what old_creates_end covers.
    if (!listed_.contains(name)) return d_.ask_provider(name);
    joined.provider = ProviderSet::facts(provider->info());
    joined.intent_may_land_until = d_.old_creates_end + joined.provider.settle_time;
  } else if (!recovered_) {
    return;
  }
  if (const auto it = found_.find(uid); it != found_.end()) {
    joined.instance = it->second;
    joined.provider = ProviderSet::facts(d_.providers->find(it->second.ref.provider)->info());
  }
  unjoined_.erase(uid);
  post(uid, std::move(joined));
}

void PodController::finish_recovery() {
  if (recovered_ || !synced()) return;
  const bool all_listed = std::all_of(d_.providers->all().begin(), d_.providers->all().end(),
                                      [&](const auto& p) { return listed_.contains(p->info().name); });
  if (!all_listed) return;
  stop_waiting_for_providers();
}

void PodController::stop_waiting_for_providers() {
  if (recovered_ || !synced()) return;
  recovered_ = true;
  log::info("recovered", {{"pods", store_.size()}, {"instances", found_.size()}});
  const std::vector<base::PodUid> waiting(unjoined_.begin(), unjoined_.end());
  for (const base::PodUid& uid : waiting) {
    if (PodEntry* entry = store_.find(uid)) join(*entry);
  }
}

void PodController::on_listing(const base::ProviderName& provider, const provider::OwnedList& list,
                               base::TimePoint began) {
  std::unordered_set<base::PodUid> present;
  for (const model::Instance& instance : list.instances) {
    const auto owner = d_.ownership.parse(instance.tag);
    if (!owner) continue;
    PodEntry* entry = store_.find(owner->uid);
    if (entry == nullptr || unjoined_.contains(owner->uid)) {
      // Of several attempts the last one counts; the sweep ends the others.
      const auto it = found_.find(owner->uid);
      const auto known = it == found_.end() ? std::nullopt : d_.ownership.parse(it->second.tag);
      if (!known || known->attempt <= owner->attempt) found_.insert_or_assign(owner->uid, instance);
      continue;
    }
    const model::PodRecord& record = entry->record;
    if (!record.placement || record.placement->tag != instance.tag) continue;
    present.insert(owner->uid);
    const model::Instance* known = core::instance_of(record);
    if (known != nullptr && record.missing == 0 && core::tells_nothing_new(record, *known, instance)) continue;
    if (expects_instance(record)) post(owner->uid, core::event::InstanceSeen{instance});
  }
  if (!list.complete) return;
  listed_[provider] = began;
  tell_missing(provider, present, began);

  const std::vector<base::PodUid> waiting(unjoined_.begin(), unjoined_.end());
  for (const base::PodUid& uid : waiting) {
    PodEntry* entry = store_.find(uid);
    if (entry != nullptr && entry->record.observed.state.kind == model::StateAnnotation::Kind::kRecord && synced())
      join(*entry);
  }
  finish_recovery();
  // What was found for pods that nobody knows is the sweep's.
  if (recovered_ && unjoined_.empty()) found_.clear();
}

void PodController::tell_missing(const base::ProviderName& provider, const std::unordered_set<base::PodUid>& present,
                                 base::TimePoint began) {
  std::vector<base::PodUid> missing;
  std::vector<base::PodUid> unsure;
  bool stands = false;
  for (const auto& [uid, entry] : store_) {
    const auto& placement = entry.record.placement;
    if (!placement || placement->provider != provider || !is_looked_for(entry.record)) continue;
    if (present.contains(uid) || unjoined_.contains(uid)) continue;
    (has_id(entry.record) ? missing : unsure).push_back(uid);
    const model::Instance* const instance = core::instance_of(entry.record);
    stands = stands || (instance != nullptr && !instance->ref.id.empty());
  }
  // A listing that shows nothing, although there is something, is a lie until a get agrees. Meanwhile it says nothing
  // of purchases of which no id is known: nobody can be asked about those.
  const bool doubtful = present.empty() && stands;
  if (!doubtful) missing.insert(missing.end(), unsure.begin(), unsure.end());
  for (const base::PodUid& uid : missing) post(uid, core::event::InstanceMissing{began});
}

bool PodController::owns(const base::PodUid& uid, int attempt) const {
  const PodEntry* entry = store_.find(uid);
  if (entry == nullptr) return false;
  if (unjoined_.contains(uid) || !entry->record.placement) return true;
  const bool unreadable = entry->record.observed.state.kind == model::StateAnnotation::Kind::kUnreadable;
  return unreadable || (entry->record.placement->attempt == attempt && expects_instance(entry->record)) ||
         std::holds_alternative<model::Creating>(entry->record.stage);
}

bool PodController::busy(const base::ProviderName& provider) const {
  if (!unjoined_.empty()) return true;
  return std::any_of(store_.begin(), store_.end(), [&](const auto& item) {
    const model::PodRecord& r = item.second.record;
    if (!r.placement || r.placement->provider != provider) return false;
    if (const auto* running = std::get_if<model::Running>(&r.stage)) {
      return r.missing > 0 || running->instance.state == model::InstanceState::kTerminating || core::is_moving(r);
    }
    return expects_instance(r) && !std::holds_alternative<model::Finished>(r.stage);
  });
}

}  // namespace spillway::control
