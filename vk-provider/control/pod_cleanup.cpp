// pod_controller, sixth part: Failed pods that nobody needs any more are removed.
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/pod_controller.hpp"
#include "vk-provider/core/failed_pods.hpp"

namespace spillway::control {
namespace {

constexpr base::Duration kLookEvery = std::chrono::minutes(1);

/// Its controller has made another one in its place, and does not look at it again. Others count their Failed pods, or
/// remove them themselves.
bool was_replaced(const model::PodRecord& r) {
  const bool failed = r.outcome && r.outcome->phase == model::PodPhase::kFailed;
  const base::SharedText& kind = r.spec->owner.kind;
  return failed && model::is_terminal(r.observed.status.phase) && !r.deleting && !r.spec->owner.uid.empty() &&
         (kind == "ReplicaSet" || kind == "ReplicationController");
}

}  // namespace

async::Loop PodController::run_cleanup() {
  for (;;) {
    co_await d_.timers->sleep_for(kLookEvery);
    if (!holds_lease()) continue;
    std::vector<core::FailedPod> failed;
    for (const auto& [uid, entry] : store_) {
      const auto* const finished = std::get_if<model::Finished>(&entry.record.stage);
      if (finished == nullptr || !was_replaced(entry.record)) continue;
      const base::TimePoint since = entry.record.entered.at(entry.record.stage.index());
      failed.push_back({uid, entry.record.spec->owner.uid, entry.record.spec->created_at, since});
    }
    for (const base::PodUid& uid : core::surplus_failed_pods(std::move(failed), d_.timers->now())) {
      base::log::info("a pod that failed is removed: newer ones of its owner show how",
                      {{"pod", store_.find(uid)->record.key().to_string()}, {"uid", uid.str()}});
      post(uid, core::event::Discarded{});
    }
  }
}

}  // namespace spillway::control
