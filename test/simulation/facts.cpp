#include "test/simulation/facts.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "vk-provider/model/labels.hpp"

namespace spillway::simulation {
namespace {

using nlohmann::json;

Phase phase_of(const std::string& word) {
  if (word == "Running") return Phase::kRunning;
  if (word == "Succeeded" || word == "Failed") return Phase::kTerminal;
  return word == "Pending" ? Phase::kPending : Phase::kNone;
}

const std::string* text_at(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : it->get_ptr<const json::string_t*>();
}

std::string waiting_reason(const json& status) {
  const json::json_pointer reason("/containerStatuses/0/state/waiting/reason");
  return status.is_object() && status.contains(reason) ? status[reason].get<std::string>() : std::string();
}

/// What stands in our annotation: only what the daemon wrote for this UID counts.
void read_intent(const json& metadata, PodFacts& pod) {
  pod.tag.clear();
  pod.provider.clear();
  pod.instance.clear();
  const auto annotations = metadata.find("annotations");
  if (annotations == metadata.end()) return;
  const std::string* text = text_at(*annotations, std::string(model::kAnnotationState).c_str());
  if (text == nullptr) return;
  const json state = json::parse(*text, nullptr, false);
  pod.foreign_state = !state.is_object() || state.value("uid", "") != pod.uid;
  if (pod.foreign_state) return;
  pod.tag = state.value("tag", "");
  pod.provider = state.value("provider", "");
  pod.instance = state.value("instance", "");
  pod.intents.insert(pod.provider + "/" + pod.tag);
}

}  // namespace

PodFacts& Facts::pod_seen(const test::api_model::Object& object, base::TimePoint now) {
  const json& metadata = object.metadata();
  auto [it, fresh] = pods_.try_emplace(object.uid());
  PodFacts& pod = it->second;
  if (fresh) {
    pod.uid = object.uid();
    pod.ns = object.ns();
    pod.name = object.name();
    pod.node = object.spec().value("nodeName", "");
    pod.created = now;
    const json::json_pointer controller("/ownerReferences/0/uid");
    if (metadata.contains(controller)) pod.controller = metadata[controller].get<std::string>();
    owners_.pod_made(pod.controller, now);
    uids_[pod.path()] = pod.uid;
    living_[created_] = pod.uid;
    order_[pod.uid] = created_++;
  }
  pod.changed = now;
  pod.version = object.version();
  pod.deleting = object.deleting();
  const auto finalizers = metadata.find("finalizers");
  pod.held = finalizers != metadata.end() && !finalizers->empty();
  const json& status = object.status();
  const std::string* phase = text_at(status, "phase");
  pod.phase = phase == nullptr ? Phase::kNone : phase_of(*phase);
  pod.succeeded = phase != nullptr && *phase == "Succeeded";
  pod.waits_for = waiting_reason(status);
  pod.ran = pod.ran || pod.phase == Phase::kRunning;
  read_intent(metadata, pod);
  return pod;
}

PodFacts& Facts::pod_gone(const std::string& uid, base::TimePoint now) {
  PodFacts& pod = *find_pod(uid);
  pod.gone = true;
  pod.changed = now;
  uids_.erase(pod.path());
  living_.erase(order_.at(uid));
  order_.erase(uid);
  gone_at_.push_back(now);
  return pod;
}

size_t Facts::recent(base::TimePoint now) {
  while (!gone_at_.empty() && now - gone_at_.front() > std::chrono::minutes(1)) gone_at_.pop_front();
  return living_.size() + instances_.size() + gone_at_.size();
}

PodFacts* Facts::find_pod(const std::string& uid) {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : &it->second;
}

const PodFacts* Facts::find_pod(const std::string& uid) const {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : &it->second;
}

std::string Facts::uid_at(const std::string& path) const {
  const auto it = uids_.find(path);
  return it == uids_.end() ? std::string() : it->second;
}

InstanceFacts& Facts::instance_seen(int cloud, const providers::fake::Sight& sight) {
  const model::Instance& instance = *sight.instance;
  auto [it, fresh] = instances_.try_emplace(key(cloud, instance.ref.id.str()));
  InstanceFacts& facts = it->second;
  ++facts.sights;
  if (fresh) {
    facts.cloud = cloud;
    facts.id = instance.ref.id.str();
    facts.tag = instance.tag.str();
    facts.foreign = sight.foreign;
    facts.since = sight.at;
    if (const auto owner = ownership_.parse(instance.tag); owner && !sight.foreign) {
      facts.uid = owner->uid.str();
      facts.attempt = owner->attempt;
      by_pod_[facts.uid].insert(it->first);
      if (PodFacts* pod = find_pod(facts.uid)) pod->had_instance = true;
    }
  }
  if (instance.state == model::InstanceState::kTerminating && !facts.ending) {
    facts.ending = true;
    facts.ending_since = sight.at;
  }
  facts.ran = facts.ran || instance.state == model::InstanceState::kRunning;
  const auto ended = [](const model::InstanceContainer& c) { return c.state == model::ContainerState::kExited; };
  facts.exited = !instance.containers.empty() && std::ranges::all_of(instance.containers, ended);
  facts.exit_zero =
      facts.exited && std::ranges::all_of(instance.containers, [](const auto& c) { return c.exit_code == 0; });
  if (facts.exit_zero) {
    ended_well_.insert(facts.tag);
  } else {
    ended_well_.erase(facts.tag);
  }
  const bool billed = !facts.foreign && !facts.exited && sight.what != providers::fake::Sight::What::kGone;
  burn_ -= facts.burn;
  facts.burn = billed ? instance.price_per_hour.value_or(base::Money()).micros() : 0;
  burn_ += facts.burn;
  return facts;
}

void Facts::instance_gone(int cloud, const std::string& id, base::TimePoint now) {
  const auto it = instances_.find(key(cloud, id));
  if (it == instances_.end()) return;
  gone_at_.push_back(now);
  if (const auto pod = by_pod_.find(it->second.uid); pod != by_pod_.end()) {
    pod->second.erase(it->first);
    if (pod->second.empty()) by_pod_.erase(pod);
  }
  burn_ -= it->second.burn;
  if (!it->second.foreign) knew_[it->first] = std::move(it->second.told);
  instances_.erase(it);
}

const InstanceFacts* Facts::find_instance(int cloud, const std::string& id) const {
  const auto it = instances_.find(key(cloud, id));
  return it == instances_.end() ? nullptr : &it->second;
}

void Facts::listed(int cloud, const std::vector<model::Instance>& shown, base::TimePoint since_before) {
  for (auto& [key, instance] : instances_) {
    if (instance.cloud != cloud || instance.uid.empty() || instance.since >= since_before) continue;
    const auto is_it = [&](const model::Instance& other) { return other.ref.id.str() == instance.id; };
    if (std::ranges::none_of(shown, is_it)) instance.hidden = true;
  }
}

void Facts::told(int cloud, std::span<const model::Instance> shown, const std::string& daemon) {
  for (const model::Instance& instance : shown) {
    const auto it = instances_.find(key(cloud, instance.ref.id.str()));
    if (it != instances_.end()) it->second.told.insert(daemon);
  }
}

const std::set<std::string>& Facts::who_knew(int cloud, const std::string& id) const {
  static const std::set<std::string> kNobody;
  if (const InstanceFacts* instance = find_instance(cloud, id)) return instance->told;
  const auto it = knew_.find(key(cloud, id));
  return it == knew_.end() ? kNobody : it->second;
}

bool Facts::any_instance(int cloud, base::TimePoint before) const {
  return std::ranges::any_of(instances_, [&](const auto& entry) {
    const InstanceFacts& instance = entry.second;
    return instance.cloud == cloud && !instance.foreign && instance.since < before;
  });
}

std::vector<const InstanceFacts*> Facts::instances_of(const std::string& uid) const {
  std::vector<const InstanceFacts*> found;
  const auto it = by_pod_.find(uid);
  if (it == by_pod_.end()) return found;
  for (const std::string& k : it->second) found.push_back(&instances_.at(k));
  return found;
}

}  // namespace spillway::simulation
