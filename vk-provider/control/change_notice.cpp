#include "vk-provider/control/change_notice.hpp"

#include <utility>

#include <fmt/format.h>

#include "vk-provider/kube/object_codec.hpp"

namespace spillway::control {
namespace {

constexpr base::Duration kLookEvery = std::chrono::minutes(1);
constexpr base::Duration kBetweenReads = std::chrono::milliseconds(200);
constexpr base::Duration kReadDeadline = std::chrono::seconds(30);

bool is_secret(const core::ConfigSource& source) { return source.kind == model::ConfigRef::Kind::kSecret; }

}  // namespace

ObjectDigests digests_of(const core::References& references, const core::Surroundings& read) {
  ObjectDigests out;
  for (const core::ConfigSource& source : references.mounted) {
    const auto it = read.config.find(source);
    if (it == read.config.end()) continue;
    if (it->second) {
      out[source] = kube::digest_of(*it->second);
    } else if (it->second.error().kind == base::ErrorKind::kNotFound) {
      out[source] = 0;
    }
  }
  return out;
}

void ChangeNotice::given(const base::PodUid& pod, ObjectDigests values) {
  if (values.empty()) {
    known_.erase(pod);
  } else {
    known_[pod] = std::move(values);
  }
}

async::Loop ChangeNotice::run() {
  for (;;) {
    co_await timers_.sleep_for(kLookEvery);
    for (auto& [object, pods] : users()) {
      co_await look(object, std::move(pods));
      co_await timers_.sleep_for(kBetweenReads);
    }
  }
}

ChangeNotice::Users ChangeNotice::users() {
  std::erase_if(known_, [this](const auto& item) { return pods_.find(item.first) == nullptr; });
  Users out;
  for (const auto& [uid, entry] : pods_) {
    const model::PodSpec& spec = *entry.record.spec;
    if (!spec.extras || !std::holds_alternative<model::Running>(entry.record.stage)) continue;
    for (const core::ConfigSource& source : core::references(spec).mounted) {
      out[Object{spec.key.ns.str(), source}].push_back(uid);
    }
  }
  return out;
}

async::Loop ChangeNotice::look(Object object, std::vector<base::PodUid> users) {
  const base::Deadline deadline = timers_.now() + kReadDeadline;
  const auto read = is_secret(object.source) ? co_await client_.get_secret(object.ns, object.source.name, deadline)
                                             : co_await client_.get_config_map(object.ns, object.source.name, deadline);
  // What cannot be read now has not changed as far as anybody knows.
  if (!read && read.error().kind != base::ErrorKind::kNotFound) co_return;
  const ObjectDigest now = read ? kube::digest_of(*read) : 0;
  for (const base::PodUid& pod : users) compare(object, pod, now);
}

void ChangeNotice::compare(const Object& object, const base::PodUid& pod, ObjectDigest now) {
  const PodEntry* entry = pods_.find(pod);
  if (entry == nullptr || entry->record.deleting) return;
  const auto [known, is_new] = known_[pod].try_emplace(object.source, now);
  if (is_new || known->second == now) return;
  known->second = now;
  events_.normal(kube::target_of(entry->record.key()), "MountedObjectChanged",
                 fmt::format("{} \"{}\" was {}; the pod keeps the files of its start until it is created again",
                             is_secret(object.source) ? "secret" : "configmap", object.source.name,
                             now == 0 ? "deleted" : "changed"));
}

}  // namespace spillway::control
