// The World, third part: what passes between daemons, the API server and the clouds, and what the rules say to it.
#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "test/simulation/world.hpp"

namespace spillway::simulation {
namespace {

namespace fake = providers::fake;
using base::ErrorKind;
using nlohmann::json;

constexpr base::Duration kLookEvery = std::chrono::seconds(5);
// What an instance may take to end by its own order; preemption has a notice of 30 s.
constexpr base::Duration kSlowestStop = std::chrono::seconds(30);

bool is_write(const kube::KubeRequest& request) { return request.method != net::Method::kGet; }

std::string path_of(const kube::KubeRequest& request) {
  std::string path = request.target.substr(0, request.target.find('?'));
  if (path.ends_with("/status")) path.resize(path.size() - 7);
  return path;
}

base::Error connection_broke(const kube::KubeRequest& request) {
  return base::Error(is_write(request) ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable, "the connection broke");
}

std::string reason_of(const PodWrite& write) {
  return write.object ? write.object->status().value("reason", "") : std::string();
}

PodWrite::Blame blame_of(const PodWrite& write) {
  const bool fails = write.after->phase == Phase::kTerminal && !write.after->succeeded;
  if (!fails || write.before->phase == Phase::kTerminal || write.before->deleting) return PodWrite::Blame::kNone;
  const std::string reason = reason_of(write);
  if (reason == "UnsupportedPodSpec" || reason == "InvalidImageName") return PodWrite::Blame::kRefused;
  // Without a reason: by its exit codes. What was lost or taken back is the cloud's fault.
  const bool crashed = reason.empty() || reason == "StartFailed" || reason == "StartTimeout";
  return crashed ? PodWrite::Blame::kCrashed : PodWrite::Blame::kNone;
}

}  // namespace

void World::deliver(Machine& from, kube::KubeRequest request, std::shared_ptr<Exchange<kube::KubeResponse>> exchange) {
  const ApiFate fate = api_.judge(request, false);
  agenda_.after(fate.there, [this, &from, fate, request = std::move(request), exchange = std::move(exchange)] {
    arrive(from, fate, request, exchange);
  });
}

void World::arrive(Machine& from, const ApiFate& fate, const kube::KubeRequest& request,
                   const std::shared_ptr<Exchange<kube::KubeResponse>>& exchange) {
  // What a dead daemon had sent may have left its machine, or not.
  const bool sent = !fate.lose_request && (!from.dead() || dice_.chance(50));
  base::Result<kube::KubeResponse> result = base::fail(connection_broke(request));
  if (sent && fate.overtaken && !fate.refuse) api_.overtake(path_of(request));
  if (sent) result = fate.refuse ? base::fail(*fate.refuse) : apply(from, request);
  const bool hidden = result && (fate.lie || fate.lose_answer);
  if (hidden) result = base::fail(fate.lie ? *fate.lie : connection_broke(request));
  if (hidden || (sent && from.dead())) {
    if (PodFacts* pod = facts_.find_pod(facts_.uid_at(path_of(request)))) pod->unsure = true;
  }
  agenda_.after(fate.back, [exchange, result = std::move(result)]() mutable { exchange->reply(std::move(result)); });
}

base::Result<kube::KubeResponse> World::apply(Machine& from, const kube::KubeRequest& request) {
  const std::string path = path_of(request);
  const bool pod_write = is_write(request) && path.find("/pods/") != std::string::npos;
  const PodFacts* known = pod_write ? facts_.find_pod(facts_.uid_at(path)) : nullptr;
  const std::optional<PodFacts> before = known == nullptr ? std::nullopt : std::optional(*known);
  auto result = api_.handle(request);
  if (is_write(request)) {
    trace_.note("api", from.name(), to_string(request.method), path,
                result ? std::string_view("ok") : to_string(result.error().kind));
  }
  if (!result) {
    if (pod_write && result.error().kind == ErrorKind::kConflict) coverage_.reach(Counter::kIntentConflict);
    return result;
  }
  if (is_write(request)) note_lease(request);
  if (!before) return result;
  PodFacts* const after = facts_.find_pod(before->uid);
  PodWrite write;
  write.request = &request;
  write.before = &*before;
  write.after = after;
  if (!after->gone) write.object = api_.model().find(path);
  write.changed = after->gone || after->version != before->version;
  write.writer = from.name();
  write.blame = blame_of(write);
  note_write(write);
  note_owner(write);
  after->writer = from.name();
  if (write.changed) after->unsure = false;
  return result;
}

void World::note_lease(const kube::KubeRequest& request) {
  if (request.target.find("/leases") == std::string::npos) return;
  const json lease = json::parse(request.body);
  const std::string name = lease["metadata"].value("name", "");
  if (request.target.find("kube-node-lease") != std::string::npos) {
    node_leases_[name] = agenda_.now();
    return;
  }
  const std::string identity = lease["spec"].value("holderIdentity", "");
  if (identity == identity_) return;
  identity_ = identity;
  const std::string holder = identity.substr(0, identity.find('_'));
  if (!holder.empty()) facts_.owners().begin_term(holder, agenda_.now());
  if (holder == holder_) return;
  trace_.note("holder", holder);
  if (!holder.empty() && machines_.size() > 1) coverage_.reach(Counter::kTakenOver);
  holder_ = holder;
}

void World::note_write(const PodWrite& write) {
  const PodFacts& before = *write.before;
  const PodFacts& after = *write.after;
  if (after.phase != before.phase && after.phase == Phase::kRunning) coverage_.reach(Counter::kRunning);
  if (after.phase != before.phase && after.phase == Phase::kTerminal) {
    coverage_.reach(after.succeeded ? Counter::kSucceeded : Counter::kFailed);
    const std::string reason = reason_of(write);
    if (reason == "UnsupportedPodSpec") coverage_.reach(Counter::kRefused);
    if (reason == "InstanceLost") coverage_.reach(Counter::kLost);
    if (reason == "Preempted") coverage_.reach(Counter::kPreempted);
  }
  if (after.intents.size() > before.intents.size() && !before.intents.empty()) coverage_.reach(Counter::kSecondAttempt);
  if (after.waits_for != before.waits_for) {
    if (after.waits_for == "LaunchBackOff") coverage_.reach(Counter::kLaunchHeld);
    if (after.waits_for == "ImagePullBackOff") coverage_.reach(Counter::kImageError);
  }
  if (write.request->method == net::Method::kDelete && !before.deleting) coverage_.reach(Counter::kDiscarded);
  for (const Rule& rule : rules()) {
    if (rule.write == nullptr) continue;
    if (std::string wrong = rule.write(facts_, write); !wrong.empty()) return violate(rule.name, std::move(wrong));
  }
}

/// What the owner of a pod is up to, for the rules about later writes.
void World::note_owner(const PodWrite& write) {
  const PodFacts& pod = *write.after;
  OwnerFacts* const owner = facts_.owners().find(pod.controller);
  if (owner == nullptr || write.writer != facts_.owners().daemon()) return;
  if (pod.intents.size() > write.before->intents.size()) owner->crashed.note_launch(pod.created);
  if (write.blame == PodWrite::Blame::kCrashed) owner->crashed.add(pod.created, agenda_.now());
  if (write.blame == PodWrite::Blame::kRefused) owner->refused.add(pod.created, agenda_.now());
}

fake::Reply<model::Instance> World::buy(const std::string& buyer, CloudSite& site, const fake::CreateRequest& request) {
  Purchase purchase;
  purchase.provider = site.name;
  purchase.tag = request.tag;
  purchase.holder = holder_;
  purchase.buyer = buyer;
  trace_.note("buy", buyer, site.name, request.tag);
  for (const Rule& rule : rules()) {
    if (rule.purchase == nullptr) continue;
    if (std::string wrong = rule.purchase(facts_, purchase); !wrong.empty()) violate(rule.name, std::move(wrong));
  }
  const auto owner = facts_.ownership().parse(base::InstanceTag(request.tag));
  const bool stands = owner && !facts_.instances_of(owner->uid.str()).empty();
  auto reply = site.cloud.create(request, agenda_.now());
  if (reply.result && stands) coverage_.reach(Counter::kCarriedOn);
  if (reply.lost) coverage_.reach(Counter::kCreateLost);
  if (!reply.lost && !reply.result) {
    const ErrorKind kind = reply.result.error().kind;
    if (kind == ErrorKind::kUnknownOutcome) coverage_.reach(Counter::kGhost);
    if (kind == ErrorKind::kNoCapacity) coverage_.reach(Counter::kSoldOut);
  }
  return reply;
}

void World::touch(CloudSite& site, const std::string& id, std::string_view call) {
  Touch touch;
  touch.instance = facts_.find_instance(site.index, id);
  touch.call = call;
  trace_.note(call, site.name, id);
  if (touch.instance != nullptr && call == "terminate") {
    const PodFacts* pod = facts_.find_pod(touch.instance->uid);
    if (pod != nullptr && pod->gone) coverage_.reach(Counter::kOrphanEnded);
    const bool late = agenda_.now() - touch.instance->since >= config_.placement.start_deadline;
    if (late && !touch.instance->ran && !touch.instance->ending) coverage_.reach(Counter::kNeverBooted);
  }
  for (const Rule& rule : rules()) {
    if (rule.touch == nullptr) continue;
    if (std::string wrong = rule.touch(facts_, touch); !wrong.empty()) violate(rule.name, std::move(wrong));
  }
}

void World::count_call(Machine& from, CloudSite& site, fake::Call call) {
  std::deque<base::TimePoint>& calls = site.calls[{from.name(), call}];
  calls.push_back(agenda_.now());
  while (agenda_.now() - calls.front() > std::chrono::minutes(1)) calls.pop_front();
  CallRate rate;
  rate.provider = site.name;
  rate.call = call;
  rate.calls = static_cast<int>(calls.size());
  rate.things = static_cast<int>(facts_.recent(agenda_.now()));
  for (const Rule& rule : rules()) {
    if (rule.rate == nullptr) continue;
    if (std::string wrong = rule.rate(facts_, rate); !wrong.empty()) violate(rule.name, std::move(wrong));
  }
}

void World::seen(CloudSite& site, const fake::Sight& sight) {
  InstanceFacts& instance = facts_.instance_seen(site.index, sight);
  trace_.note("instance", site.name, instance.id, to_string(sight.instance->state),
              sight.what == fake::Sight::What::kGone ? "gone" : "");
  if (const auto price = sight.instance->price_per_hour; price && plan_.settings.cap > 0 && !instance.foreign) {
    instance.over_cap = price->micros() > plan_.settings.cap;
    if (instance.over_cap && sight.what == fake::Sight::What::kAppeared) coverage_.reach(Counter::kTooDear);
  }
  for (const Rule& rule : rules()) {
    if (rule.sight == nullptr) continue;
    if (std::string wrong = rule.sight(facts_, instance); !wrong.empty()) violate(rule.name, std::move(wrong));
  }
  if (sight.what == fake::Sight::What::kAppeared) check_burn();
  const bool gone = sight.what == fake::Sight::What::kGone;
  if (gone && instance.ending && sight.at - instance.ending_since > kSlowestStop) coverage_.reach(Counter::kStuck);
  if (gone) facts_.instance_gone(site.index, instance.id, agenda_.now());
}

void World::check_burn() {
  if (plan_.settings.budget == 0 || !prices_stand_) return;
  const Burn burn{facts_.burn(), plan_.settings.budget};
  // What is left is less than the cheapest offer that anybody asks for.
  if (burn.limit - burn.now < 300'000) coverage_.reach(Counter::kBudgetFull);
  for (const Rule& rule : rules()) {
    if (rule.burn == nullptr) continue;
    if (std::string wrong = rule.burn(facts_, burn); !wrong.empty()) violate(rule.name, std::move(wrong));
  }
}

void World::look() {
  agenda_.after(kLookEvery, [this] { look(); });
  const base::TimePoint now = agenda_.now();
  const auto it = std::ranges::find(machines_, holder_, &Machine::name);
  const bool good = it != machines_.end() && it->ready() && now >= api_.good_since();
  if (!good || holder_ != good_holder_) {
    good_since_ = now;
    good_holder_ = good ? holder_ : std::string();
  }
  Moment moment;
  moment.now = now;
  moment.good_for = now - good_since_;
  moment.node_leases = &node_leases_;
  for (const Rule& rule : rules()) {
    if (rule.moment == nullptr) continue;
    if (std::string wrong = rule.moment(facts_, moment); !wrong.empty()) violate(rule.name, std::move(wrong));
  }
}

}  // namespace spillway::simulation
