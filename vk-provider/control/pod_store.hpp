// The records of all pods, by UID. One writer: pod_controller.
//
// Reactor thread only. Entries have stable addresses until they are erased. A name is looked for in all of them: names
// are asked for when a person looks at a pod, and ten thousand are looked through in a millisecond.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "vk-provider/control/launch.hpp"
#include "vk-provider/core/pod_view.hpp"
#include "vk-provider/core/requirements.hpp"
#include "vk-provider/core/shape.hpp"
#include "vk-provider/model/node_profile.hpp"
#include "vk-provider/model/pod_record.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::control {

struct PodEntry {
  model::PodRecord record;
  const model::NodeProfile* profile = nullptr;
  base::TimePoint bound_at{};  // first seen by this process
  bool in_list = false;        // seen in the list that is being read
  bool status_seen_ready = false;

  // The one write of this pod that may be under way, and an intent that waits for its end.
  bool write_under_way = false;
  bool intent_waits = false;
  int write_failures = 0;
  base::TimePoint write_again_at{};

  // From Choose until the create was accepted. Holds secrets.
  std::shared_ptr<const model::ResolvedPod> resolved;
  /// What the spec asks for, computed when it is first chosen for; let go of with `resolved`, once it is bought.
  std::unique_ptr<const core::Requirements> needs;
  /// Of `needs`, the profile and the owner: Placer's.
  std::unique_ptr<const core::Shape> shape;
  /// What may cost something now: Placer's.
  std::unique_ptr<Launch> launch;
};

class PodStore final : public core::PodView {
 public:
  const model::PodRecord* find_pod(std::string_view node, std::string_view ns, std::string_view name) const override {
    for (const auto& [uid, entry] : entries_) {
      const model::PodRecord& r = entry.record;
      if (r.key().name == name && r.key().ns == ns && !r.api_gone && r.spec->node_name == node) return &r;
    }
    return nullptr;
  }
  void each_pod(std::string_view node, const Visit& visit) const override {
    for (const auto& [uid, entry] : entries_) {
      if (entry.record.spec->node_name == node) visit(entry.record);
    }
  }

  PodEntry* find(const base::PodUid& uid) {
    const auto it = entries_.find(uid);
    return it == entries_.end() ? nullptr : &it->second;
  }
  const PodEntry* find(const base::PodUid& uid) const {
    const auto it = entries_.find(uid);
    return it == entries_.end() ? nullptr : &it->second;
  }
  PodEntry& insert(const base::PodUid& uid, PodEntry entry) {
    return entries_.insert_or_assign(uid, std::move(entry)).first->second;
  }
  void erase(const base::PodUid& uid) { entries_.erase(uid); }

  size_t size() const { return entries_.size(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::unordered_map<base::PodUid, PodEntry> entries_;
};

}  // namespace spillway::control
