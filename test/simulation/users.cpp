#include "test/simulation/users.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "test/simulation/shapes.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::simulation {
namespace {

using nlohmann::json;

constexpr int kGrace = 10;
constexpr size_t kJobFailures = 4;
constexpr std::int64_t kJobWidth = 4;

}  // namespace

std::string Owner::uid() const { return fmt::format("10000000-0000-4000-8000-{:012x}", number + 1); }

Users::Users(std::uint64_t seed, std::int64_t nodes, ApiSite& api, Facts& facts, Coverage& coverage)
    : api_(api), facts_(facts), coverage_(coverage), delays_(seed, "controllers"), nodes_(nodes) {
  api_.on_pod([this](const PodFacts& pod) { pod_changed(pod); });
}

void Users::add_owner(Owner::Kind kind, size_t shape, std::int64_t replicas) {
  Owner owner;
  owner.kind = kind;
  owner.number = static_cast<int>(owners_.size());
  owner.shape = shape % shapes().size();
  owner.wanted = replicas;
  owners_.push_back(owner);
  if (kind != Owner::Kind::kBare) return look(owners_.back());
  for (std::int64_t i = 0; i < replicas; ++i) make_pod(owners_.back(), fmt::format("bare{}-{}", owner.number, i));
}

void Users::scale(size_t owner, std::int64_t replicas) {
  if (owners_.empty()) return;
  Owner& o = owners_.at(owner % owners_.size());
  if (o.deleted || o.kind == Owner::Kind::kBare) return;
  o.wanted = replicas;
  look(o);
}

void Users::delete_owner(size_t owner, int grace) {
  if (owners_.empty()) return;
  Owner& o = owners_.at(owner % owners_.size());
  o.deleted = true;
  for (const std::string& uid : std::vector(o.pods)) {
    const PodFacts& pod = *facts_.find_pod(uid);
    if (!pod.deleting) remove(pod, grace);
  }
}

const PodFacts* Users::pick(size_t owner, size_t nth) const {
  if (owners_.empty()) return nullptr;
  const Owner& o = owners_.at(owner % owners_.size());
  return o.pods.empty() ? nullptr : facts_.find_pod(o.pods.at(nth % o.pods.size()));
}

void Users::delete_pod(size_t owner, size_t nth, int grace) {
  if (const PodFacts* pod = pick(owner, nth)) remove(*pod, grace);
}

void Users::replace(size_t owner) {
  if (owners_.empty()) return;
  Owner& o = owners_.at(owner % owners_.size());
  if (o.deleted || resting_) return;
  for (const std::string& uid : std::vector(o.pods)) {
    const std::string name = facts_.find_pod(uid)->name;
    remove(*facts_.find_pod(uid), 0);
    if (!facts_.find_pod(uid)->gone) continue;  // a finalizer holds it
    coverage_.reach(Counter::kRecreated);
    make_pod(o, name);
  }
}

void Users::edit_pod(size_t owner, size_t nth, Edit edit) {
  const PodFacts* pod = pick(owner, nth);
  if (pod == nullptr) return;
  const std::string path = pod->path();
  json body;
  switch (edit) {
    case Edit::kLabel: body["metadata"]["labels"]["team"] = std::to_string(facts_.pods()); break;
    case Edit::kAnnotation: body["metadata"]["annotations"]["note"] = std::to_string(pod->version); break;
    case Edit::kCopiedState: {
      // Somebody copies the manifest of another pod, with what the daemon wrote on that one.
      const std::string other = R"({"v":1,"uid":"20000000-0000-4000-8000-000000000000","provider":"cloud0"})";
      body["metadata"]["annotations"][std::string(model::kAnnotationState)] = other;
      facts_.find_pod(pod->uid)->tampered = true;
      coverage_.reach(Counter::kTampered);
      break;
    }
    case Edit::kEndPod:
      if (pod->phase == Phase::kTerminal) return;
      coverage_.reach(Counter::kEndedByOthers);
      api_.patch(path + "/status", {{"status", {{"phase", "Failed"}, {"reason", "Evicted"}}}});
      return;
    case Edit::kCount: return;
  }
  api_.patch(path, body);
}

void Users::collect() {
  for (const auto& [order, uid] : std::map(facts_.living())) {
    const PodFacts& pod = *facts_.find_pod(uid);
    if (pod.phase == Phase::kTerminal && !pod.deleting) remove(pod, 0);
  }
}

void Users::leave() {
  for (size_t i = 0; i < owners_.size(); ++i) delete_owner(i, kGrace);
}

void Users::remove(const PodFacts& pod, int grace) {
  if (grace == 0) coverage_.reach(Counter::kForced);
  if (!daemon_runs) coverage_.reach(Counter::kDeletedWhileDown);
  // A copy: the facts change under it.
  const std::string path = pod.path();
  api_.delete_pod(path, grace);
}

void Users::let_go(const std::string& uid) {
  const PodFacts* pod = facts_.find_pod(uid);
  if (pod == nullptr || pod->gone || !pod->held) return;
  coverage_.reach(Counter::kFinalizer);
  const std::string path = pod->path();
  api_.patch(path, {{"metadata", {{"finalizers", nullptr}}}});
}

void Users::pod_changed(const PodFacts& pod) {
  // Most are told of pods that they do not own; the owner is in the facts since the pod was made.
  if (pod.owner < 0) return;
  Owner& owner = owners_.at(static_cast<size_t>(pod.owner));
  if (pod.gone) std::erase(owner.pods, pod.uid);
  if (pod.phase == Phase::kTerminal) (pod.succeeded ? owner.succeeded : owner.failed).insert(pod.uid);
  if (pod.deleting && pod.held && !pod.gone) {
    const base::Duration delay(delays_.between(1'000, 20'000) * 1'000'000);
    api_.host().agenda().after(delay, [this, uid = pod.uid] { let_go(uid); });
  }
  look(owner);
}

void Users::look(Owner& owner) {
  if (owner.due || owner.deleted || owner.kind == Owner::Kind::kBare) return;
  owner.due = true;
  const base::Duration delay(delays_.between(5, 300) * 1'000'000);
  const auto number = static_cast<size_t>(owner.number);
  api_.host().agenda().after(delay, [this, number] {
    owners_[number].due = false;
    reconcile(owners_[number]);
  });
}

void Users::reconcile(Owner& owner) {
  if (owner.deleted || resting_) return;
  std::vector<const PodFacts*> active;
  for (const std::string& uid : owner.pods) {
    const PodFacts* pod = facts_.find_pod(uid);
    if (!pod->deleting && pod->phase != Phase::kTerminal) active.push_back(pod);
  }
  switch (owner.kind) {
    case Owner::Kind::kReplicaSet: return reconcile_set(owner, active);
    case Owner::Kind::kJob: return reconcile_job(owner, active);
    case Owner::Kind::kStatefulSet: return reconcile_stateful(owner);
    case Owner::Kind::kBare:
    case Owner::Kind::kCount: return;
  }
}

void Users::reconcile_set(Owner& owner, const std::vector<const PodFacts*>& active) {
  for (auto n = static_cast<std::int64_t>(active.size()); n < owner.wanted; ++n) {
    make_pod(owner, fmt::format("set{}-{}", owner.number, owner.made));
  }
  for (auto n = static_cast<std::int64_t>(active.size()); n > owner.wanted; --n) {
    remove(*active[static_cast<size_t>(n - 1)], kGrace);
  }
}

void Users::reconcile_job(Owner& owner, const std::vector<const PodFacts*>& active) {
  if (owner.failed.size() > kJobFailures) {
    for (const PodFacts* pod : active) remove(*pod, kGrace);
    return;
  }
  const std::int64_t missing = std::min(owner.wanted - static_cast<std::int64_t>(owner.succeeded.size()), kJobWidth);
  for (auto n = static_cast<std::int64_t>(active.size()); n < missing; ++n) {
    make_pod(owner, fmt::format("job{}-{}", owner.number, owner.made));
  }
}

void Users::reconcile_stateful(Owner& owner) {
  for (const std::string& uid : std::vector(owner.pods)) {
    const PodFacts& pod = *facts_.find_pod(uid);
    if (pod.phase == Phase::kTerminal && !pod.deleting) remove(pod, kGrace);
  }
  for (std::int64_t i = 0; i < owner.wanted; ++i) {
    const std::string name = fmt::format("stateful{}-{}", owner.number, i);
    if (!facts_.uid_at("/api/v1/namespaces/team-a/pods/" + name).empty()) continue;
    if (owner.made > owner.wanted) coverage_.reach(Counter::kRecreated);
    make_pod(owner, name);
  }
}

void Users::make_pod(Owner& owner, const std::string& name) {
  const std::string node = fmt::format("burst-{}", owner.made % nodes_);
  const std::string owner_uid = owner.kind == Owner::Kind::kBare ? std::string() : owner.uid();
  ++owner.made;
  ++lives_;
  const std::string uid = api_.create_pod(simulation::make_pod(shapes().at(owner.shape), name, node, owner_uid));
  facts_.find_pod(uid)->owner = owner.number;
  owner.pods.push_back(uid);
}

}  // namespace spillway::simulation
