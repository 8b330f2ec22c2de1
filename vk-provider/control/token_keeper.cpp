#include "vk-provider/control/token_keeper.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/core/files.hpp"

namespace spillway::control {
namespace {

constexpr base::Duration kLookEvery = std::chrono::seconds(30);
constexpr base::Duration kCallDeadline = std::chrono::seconds(30);
// A provider that hangs must not keep the tokens of other pods from being renewed in time.
constexpr size_t kAtOnce = 16;
constexpr base::Duration kOldest = std::chrono::hours(24);

}  // namespace

base::TimePoint renewal_of(const model::BoundToken& token, const base::Now& now) {
  const auto life = std::chrono::duration_cast<base::Duration>(token.expires_at - now.wall);
  return now.steady + std::min(life * 4 / 5, kOldest);
}

TokenKeeper::TokenKeeper(const PodStore& pods, ProviderSet& providers, kube::Client& client, async::Timers& timers,
                         kube::EventRecorder& events, async::TaskGroup& group)
    : pods_(pods),
      providers_(providers),
      client_(client),
      timers_(timers),
      events_(events),
      lane_(group, kAtOnce, [this](base::PodUid uid) { return keep(std::move(uid)); }) {}

async::Loop TokenKeeper::run() {
  for (;;) {
    co_await timers_.sleep_for(kLookEvery);
    for (base::PodUid& uid : due_pods()) {
      if (under_way_.insert(uid).second) lane_.push(std::move(uid));
    }
  }
}

async::Loop TokenKeeper::keep(base::PodUid uid) {
  const auto renewed = co_await renew(uid);
  under_way_.erase(uid);
  const PodEntry* entry = pods_.find(uid);
  if (renewed || entry == nullptr || entry->record.deleting) co_return;
  base::log::warn("token not renewed", {{"pod", entry->record.key().to_string()}, {"error", renewed.error()}});
  events_.warning(kube::target_of(entry->record.key()), "FailedToRenewToken",
                  "the service account token in the pod is not renewed: " + renewed.error().message);
}

std::vector<base::PodUid> TokenKeeper::due_pods() {
  std::erase_if(due_, [this](const auto& item) { return pods_.find(item.first) == nullptr; });
  std::vector<base::PodUid> out;
  for (const auto& [uid, entry] : pods_) {
    const model::PodRecord& record = entry.record;
    if (record.deleting || !std::holds_alternative<model::Running>(record.stage)) continue;
    if (!core::sends_token(*record.spec) || core::references(*record.spec).tokens.empty()) continue;
    const auto due = due_.find(uid);
    if (due == due_.end() || due->second <= timers_.now()) out.push_back(uid);
  }
  return out;
}

async::Task<void> TokenKeeper::renew(base::PodUid uid) {
  const PodEntry* entry = pods_.find(uid);
  if (entry == nullptr) co_return base::Result<void>();
  const model::PodSpecPtr pod = entry->record.spec;
  const base::Deadline deadline = timers_.now() + kCallDeadline;
  core::Surroundings read;
  base::TimePoint due = base::TimePoint::max();
  for (const core::TokenWish& wish : core::references(*pod).tokens) {
    auto token =
        co_await client_.request_token(pod->key, pod->service_account, wish.audience, wish.expiration, deadline);
    if (!token) co_return base::fail(std::move(token.error()));
    due = std::min(due, renewal_of(*token, timers_.both()));
    read.tokens.emplace(wish, std::move(*token));
  }
  auto files = core::token_files(*pod, read);
  if (!files) co_return base::fail(std::move(files.error()));

  // It may have ended while the tokens were made.
  entry = pods_.find(uid);
  const auto* running = entry == nullptr ? nullptr : std::get_if<model::Running>(&entry->record.stage);
  if (running == nullptr) co_return base::Result<void>();
  const model::InstanceRef ref = running->instance.ref;
  provider::ThrottledProvider* const provider = providers_.find(ref.provider);
  if (provider == nullptr) co_return base::fail(base::ErrorKind::kUnavailable, "its provider is not configured");
  auto put = co_await provider->put_files(ref, std::move(*files), deadline);
  if (put) due_[uid] = due;
  co_return put;
}

}  // namespace spillway::control
