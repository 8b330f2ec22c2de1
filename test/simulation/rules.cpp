#include "test/simulation/rules.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::simulation {
namespace {

using nlohmann::json;

bool is_delete(const PodWrite& w) { return w.request->method == net::Method::kDelete; }

// Two instances for one pod are paid twice. An older attempt may still stand while it is being ended, because a cloud
// takes its time; one that nobody has told to end is a leak.
std::string one_instance(const Facts& facts, const InstanceFacts& seen) {
  if (seen.uid.empty()) return {};
  const InstanceFacts* live = nullptr;
  for (const InstanceFacts* instance : facts.instances_of(seen.uid)) {
    if (instance->ending || instance->exited) continue;
    if (live != nullptr) return "pod " + seen.uid + " has " + live->id + " and " + instance->id;
    live = instance;
  }
  return {};
}

// Money that is spent before the intent stands at the API server is lost if the daemon dies right then.
std::string intent_first(const Facts& facts, const Purchase& purchase) {
  const auto owner = facts.ownership().parse(base::InstanceTag(purchase.tag));
  if (!owner) return "the tag " + purchase.tag + " is not ours";
  const PodFacts* pod = facts.find_pod(owner->uid.str());
  if (pod == nullptr) return "no pod has the UID of " + purchase.tag;
  if (!pod->intents.contains(purchase.provider + "/" + purchase.tag)) {
    return "pod " + pod->name + " does not name " + purchase.provider + " and " + purchase.tag;
  }
  if (!pod->gone && !pod->tampered && pod->tag != purchase.tag) return "pod " + pod->name + " names another attempt";
  return {};
}

// What ran once is never silently started again: its data is gone, and its owner has to know.
std::string never_twice(const Facts& facts, const InstanceFacts& seen) {
  const PodFacts* pod = seen.sights == 1 ? facts.find_pod(seen.uid) : nullptr;
  if (pod == nullptr || !pod->ran) return {};
  return "pod " + pod->name + " ran before, and " + seen.id + " was bought for it";
}

// Two daemons that buy are two daemons that pay: whoever does not hold the lease keeps his hands still.
std::string holder_buys(const Facts&, const Purchase& purchase) {
  if (purchase.holder == purchase.buyer) return {};
  return purchase.buyer + " buys, and the lease is of \"" + purchase.holder + "\"";
}

// Other people's machines are in the same account.
std::string hands_off(const Facts&, const Touch& touch) {
  if (touch.instance == nullptr || !touch.instance->foreign) return {};
  return std::string(touch.call) + " of the foreign " + touch.instance->id;
}

// The object is the last thing that knows of the instance: it goes when the instance is gone, not before. A cloud may
// never have told of it, and have left it out of a listing that called itself complete: the sweep ends that one.
std::string object_last(const Facts& facts, const PodWrite& write) {
  if (!is_delete(write)) return {};
  for (const InstanceFacts* left : facts.instances_of(write.before->uid)) {
    const bool known = left->told.contains(write.writer) || write.before->instance == left->id;
    if (known || !left->hidden) return "pod " + write.before->name + " was removed while " + left->id + " stands";
  }
  return {};
}

/// Failed, as at least three others of its controller.
bool is_surplus(const Facts& facts, const PodFacts& pod) {
  if (pod.phase != Phase::kTerminal || pod.succeeded || pod.controller.empty()) return false;
  int newer = 0;
  for (const auto& [order, uid] : facts.living()) {
    const PodFacts* const other = facts.find_pod(uid);
    if (other == &pod || other->controller != pod.controller) continue;
    newer += other->phase == Phase::kTerminal && !other->succeeded ? 1 : 0;
  }
  return newer >= 3;
}

// The daemon lets go of what a user has deleted, and of what failed and was replaced several times since; of nothing
// else, and not of a new pod of the same name either.
std::string only_deleted(const Facts& facts, const PodWrite& write) {
  if (!is_delete(write) || write.before->deleting || is_surplus(facts, *write.before)) return {};
  return "pod " + write.before->name + " was removed, and nobody had deleted it";
}

// Kubernetes' controllers count on it.
std::string forward_only(const Facts&, const PodWrite& write) {
  if (!write.object || write.before->phase == Phase::kNone) return {};
  const PodFacts& after = *write.after;
  if (after.phase < write.before->phase) return "pod " + after.name + " went back";
  if (write.before->phase == Phase::kTerminal && after.succeeded != write.before->succeeded) {
    return "pod " + after.name + " ended twice, in different ways";
  }
  return {};
}

// A Job that is told of success does not run again: it has to be true, and known.
std::string honest_success(const Facts& facts, const PodWrite& write) {
  if (!write.object || !write.after->succeeded || write.before->phase == Phase::kTerminal) return {};
  for (const json& container : write.object->status().value("containerStatuses", json::array())) {
    const json state = container.value("state", json::object());
    if (!state.contains("terminated") || state["terminated"].value("exitCode", -1) != 0) {
      return "pod " + write.after->name + " Succeeded without exit code 0 of " + container.value("name", "");
    }
  }
  // Whoever copies manifests may have overwritten which attempt it was.
  for (const std::string& intent : write.after->intents) {
    if (facts.ended_well(intent.substr(intent.find('/') + 1))) return {};
  }
  return "pod " + write.after->name + " Succeeded, and its instance did not";
}

// Each needless write is a write of etcd and an event for every watcher. Only after a lost answer it is repeated.
std::string no_idle_write(const Facts&, const PodWrite& write) {
  if (is_delete(write) || write.changed || write.before->unsure || write.before->writer != write.writer) return {};
  return "pod " + write.before->name + " was written, and nothing changed";
}

// An intent on a pod that was deleted or has ended buys for nobody; its version as a precondition is there for that.
std::string intent_on_living(const Facts&, const PodWrite& write) {
  if (!write.object || write.after->intents.size() == write.before->intents.size()) return {};
  if (write.before->deleting) return "pod " + write.before->name + " is being deleted, and got an intent";
  if (write.before->phase == Phase::kTerminal) return "pod " + write.before->name + " has ended, and got an intent";
  return {};
}

// A cloud that is asked too often locks the account. One listing serves all pods, and is never repeated within 100 ms;
// what is beside it grows with the pods.
std::string few_calls(const Facts&, const CallRate& rate) {
  constexpr int kListings = 610;
  int allowed = 100 + 8 * rate.things;
  // Listings that leave everything out lead to a question for each instance.
  if (rate.call == providers::fake::Call::kGet) allowed = 100 + 20 * rate.things;
  if (rate.call == providers::fake::Call::kListOwned) allowed = kListings;
  // A pod may try every offer that is left, several times a minute.
  if (rate.call == providers::fake::Call::kCreate) allowed = 100 + 40 * rate.things;
  if (rate.calls <= allowed) return {};
  return rate.provider + " was asked " + std::to_string(rate.calls) +
         " times within a minute: " + std::string(to_string(rate.call));
}

// The price is read back, and what is too dear is given back. Faults may delay that, not more.
std::string too_dear_ends(const Facts& facts, const Moment& moment) {
  if (moment.good_for < std::chrono::minutes(1)) return {};
  for (const auto& [key, instance] : facts.instances()) {
    if (!instance.over_cap || instance.ending || instance.exited ||
        moment.now - instance.since < std::chrono::minutes(2))
      continue;
    const PodFacts* pod = facts.find_pod(instance.uid);
    if (pod != nullptr && !pod->gone) return "instance " + instance.id + " costs more than the cap";
  }
  return {};
}

// The limit holds whatever is unknown: what may have been bought counts, also what a dead daemon bought.
std::string budget_kept(const Facts&, const Burn& burn) {
  if (burn.now <= burn.limit) return {};
  return "$" + base::Money::from_micros(burn.now).to_dollars() + " per hour run, of at most $" +
         base::Money::from_micros(burn.limit).to_dollars();
}

// What is written on a pod is about that pod, not about one that had its name before.
std::string about_itself(const Facts&, const PodWrite& write) {
  if (!write.object) return {};
  const PodFacts& pod = *write.after;
  if (pod.foreign_state && !pod.tampered) return "pod " + pod.name + " got the state of another one";
  if (pod.phase != Phase::kRunning || write.before->phase == Phase::kRunning) return {};
  return pod.had_instance ? std::string() : "pod " + pod.name + " is Running, and never had an instance";
}

// A node whose lease is old is NotReady, and its healthy pods are evicted: 40 s are the control plane's patience.
std::string node_ready(const Facts&, const Moment& moment) {
  if (moment.good_for < std::chrono::minutes(1)) return {};
  for (const auto& [node, renewed] : *moment.node_leases) {
    if (moment.now - renewed > std::chrono::seconds(40)) return "the lease of " + node + " was not renewed";
  }
  return {};
}

// The brake as it is promised: after a failure the owner's next launch waits 10 s, doubled to 10 min, and a pod that
// nobody can run is shown for 60 s, doubled to 10 min, before it is Failed. Ten quiet minutes may lower that again.
constexpr base::BackoffPolicy kLaunchPause{std::chrono::seconds(10), std::chrono::minutes(10)};
constexpr base::BackoffPolicy kHold{std::chrono::seconds(60), std::chrono::minutes(10)};
constexpr base::Duration kQuiet = std::chrono::minutes(10);

/// The owner of a pod that the daemon in charge writes. What a former one had sent is not held against it.
const OwnerFacts* owner_in_charge(const Facts& facts, const PodWrite& write) {
  if (write.writer != facts.owners().daemon()) return nullptr;
  return facts.owners().find(write.after->controller);
}

struct Pause {
  base::TimePoint since;  // the last failure was no earlier
  base::TimePoint until;
  base::Duration length{0};  // also of each that follows
};

/// That which the last of `count` generations brought about. When it failed is not known, only when it was made and how
/// long it had had to wait itself.
Pause pause_after(const Failures& failures, size_t count, base::TimePoint begun) {
  Pause pause;
  pause.until = begun;
  int level = 0;
  for (size_t i = 0; i < count; ++i) {
    const Generation& generation = failures.generations()[i];
    level = i > 0 && generation.failed - pause.since >= kQuiet ? 1 : level + 1;
    pause.since = std::max(pause.until, generation.made);
    pause.length = base::backoff_delay(kLaunchPause, level);
    pause.until = pause.since + pause.length;
  }
  return pause;
}

// A controller replaces each pod that fails at once, and each new one is paid for: the daemon is the only brake. Judged
// are pods that were made after a failure, as those can only have been launched after it.
std::string failing_owner_waits(const Facts& facts, const PodWrite& write) {
  const OwnerFacts* owner = owner_in_charge(facts, write);
  if (owner == nullptr || write.after->intents.size() == write.before->intents.size()) return {};
  const size_t failed = owner->crashed.before(write.after->created);
  if (failed == 0) return {};
  const Pause pause = pause_after(owner->crashed, failed, facts.owners().term_began());
  const base::TimePoint now = write.after->changed;
  if (now - pause.since >= kQuiet) return {};
  const std::int64_t allowed = now < pause.until ? 0 : 1 + (now - pause.until) / pause.length;
  const int launched = owner->crashed.generations()[failed - 1].launches + 1;
  if (launched <= allowed) return {};
  return "pod " + write.after->name + " is launch " + std::to_string(launched) + " after " + std::to_string(failed) +
         " generations of its owner failed, and " + std::to_string(allowed) + " may be made by now";
}

// The same of pods that nobody can run: nothing is bought, but each Failed pod is an object that stays.
std::string refused_pod_waits(const Facts& facts, const PodWrite& write) {
  const OwnerFacts* owner = owner_in_charge(facts, write);
  if (owner == nullptr || write.blame != PodWrite::Blame::kRefused) return {};
  const size_t failed = owner->refused.before(write.after->created);
  const base::TimePoint now = write.after->changed;
  // The brake is written down: a hold that a former daemon began goes on.
  base::TimePoint until = owner->first_pod;
  int level = 0;
  for (size_t i = 0; i <= failed; ++i) {
    const base::TimePoint shown = i < failed ? owner->refused.generations()[i].failed : now;
    level = i > 0 && shown - until >= kQuiet ? 1 : level + 1;
    until += base::backoff_delay(kHold, level);
  }
  if (now >= until) return {};
  return "pod " + write.after->name + " was refused and Failed too early, after " + std::to_string(failed) +
         " generations of its owner";
}

template <auto Check>
constexpr Rule make(std::string_view name) {
  Rule rule;
  rule.name = name;
  using Signature = decltype(Check);
  if constexpr (std::is_same_v<Signature, decltype(rule.write)>) rule.write = Check;
  if constexpr (std::is_same_v<Signature, decltype(rule.purchase)>) rule.purchase = Check;
  if constexpr (std::is_same_v<Signature, decltype(rule.touch)>) rule.touch = Check;
  if constexpr (std::is_same_v<Signature, decltype(rule.sight)>) rule.sight = Check;
  if constexpr (std::is_same_v<Signature, decltype(rule.burn)>) rule.burn = Check;
  if constexpr (std::is_same_v<Signature, decltype(rule.rate)>) rule.rate = Check;
  if constexpr (std::is_same_v<Signature, decltype(rule.moment)>) rule.moment = Check;
  return rule;
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      make<one_instance>("one live instance for a pod"),
      make<intent_first>("the intent stands before money is spent"),
      make<never_twice>("what ran is never bought again"),
      make<holder_buys>("only the holder of the lease buys"),
      make<hands_off>("foreign instances are not touched"),
      make<object_last>("the object goes after the instance"),
      make<only_deleted>("only deleted pods are removed"),
      make<forward_only>("the phase never goes back"),
      make<honest_success>("Succeeded is true"),
      make<no_idle_write>("no status write without a change"),
      make<intent_on_living>("no intent for a pod that ends"),
      make<about_itself>("a status is about its own pod"),
      make<too_dear_ends>("what is too dear is given back"),
      make<budget_kept>("the budget is never passed"),
      make<few_calls>("few calls of a provider"),
      make<node_ready>("the node is Ready"),
      make<failing_owner_waits>("a failing owner is launched for ever more slowly"),
      make<refused_pod_waits>("a refused pod is shown before it fails"),
  };
  return table;
}

}  // namespace spillway::simulation
