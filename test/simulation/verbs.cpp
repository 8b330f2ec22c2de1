// The table of everything that can happen by plan. A new fault is a row here and a function above it.
#include <algorithm>

#include "test/simulation/shapes.hpp"
#include "test/simulation/world.hpp"

namespace spillway::simulation {
namespace {

namespace fake = providers::fake;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kMany = 1'000'000;

template <class E>
constexpr std::int64_t last_of() {
  return static_cast<std::int64_t>(E::kCount) - 1;
}

// Users.

void owner(World& w, const Args& a) {
  w.users().add_owner(static_cast<Owner::Kind>(a[0]), static_cast<size_t>(a[1]), a[2]);
}
void scale(World& w, const Args& a) { w.users().scale(static_cast<size_t>(a[0]), a[1]); }
void delete_pod(World& w, const Args& a) {
  w.users().delete_pod(static_cast<size_t>(a[0]), static_cast<size_t>(a[1]), static_cast<int>(a[2]));
}
void force_delete(World& w, const Args& a) {
  w.users().delete_pod(static_cast<size_t>(a[0]), static_cast<size_t>(a[1]), 0);
}
void replace(World& w, const Args& a) { w.users().replace(static_cast<size_t>(a[0])); }
void delete_owner(World& w, const Args& a) {
  w.users().delete_owner(static_cast<size_t>(a[0]), static_cast<int>(a[1]));
}
void edit(World& w, const Args& a) {
  w.users().edit_pod(static_cast<size_t>(a[0]), static_cast<size_t>(a[1]), static_cast<Users::Edit>(a[2]));
}
void collect(World& w, const Args&) { w.users().collect(); }

// The API server.

void api_fault(World& w, const Args& a) {
  ApiFault fault;
  fault.what = static_cast<ApiFault::What>(a[0]);
  fault.which = static_cast<ApiFault::Which>(a[1]);
  fault.percent = static_cast<int>(a[2]);
  fault.until = w.agenda().now() + milliseconds(a[3]);
  w.api().add_fault(fault);
}
void cut_watches(World& w, const Args&) { w.api().cut_watches(); }
void silence_watches(World& w, const Args& a) { w.api().silence_watches(w.agenda().now() + milliseconds(a[0])); }
void compact(World& w, const Args&) { w.api().compact(); }
void lag_watches(World& w, const Args& a) {
  w.api().lag_watches(milliseconds(a[0]), w.agenda().now() + milliseconds(a[1]));
}

// Clouds.

void add_fault(World& w, std::int64_t cloud, fake::FaultRule rule, std::int64_t lasts) {
  rule.lasts = milliseconds(lasts);
  (void)w.cloud(cloud).cloud.add_fault(std::move(rule), w.agenda().now());
}

void cloud_error(World& w, const Args& a) {
  // An outage, a rate limit, an account that is full, credentials that were taken away.
  constexpr std::array kKinds{base::ErrorKind::kUnavailable, base::ErrorKind::kRateLimited, base::ErrorKind::kQuota,
                              base::ErrorKind::kUnauthenticated, base::ErrorKind::kInternal};
  fake::FaultRule rule;
  rule.effect = fake::Effect::kError;
  rule.kind = kKinds.at(static_cast<size_t>(a[1]));
  rule.call = static_cast<fake::Call>(a[2]);
  // What only a create can be told.
  if (rule.kind == base::ErrorKind::kQuota) rule.call = fake::Call::kCreate;
  if (rule.kind == base::ErrorKind::kRateLimited) rule.retry_after = milliseconds(2'000);
  rule.probability = static_cast<int>(a[3]);
  add_fault(w, a[0], rule, a[4]);
}
void cloud_loss(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = a[1] == 0 ? fake::Effect::kLoseRequest : fake::Effect::kLoseAnswer;
  rule.call = static_cast<fake::Call>(a[2]);
  rule.probability = static_cast<int>(a[3]);
  add_fault(w, a[0], rule, a[4]);
}
void cloud_slow(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = fake::Effect::kDelay;
  rule.call = static_cast<fake::Call>(a[1]);
  rule.duration = milliseconds(a[2]);
  rule.probability = static_cast<int>(a[3]);
  add_fault(w, a[0], rule, a[4]);
}
void ghosts(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = fake::Effect::kGhost;
  rule.probability = static_cast<int>(a[2]);
  // An instance that turns up later than the provider's settle time and the lag of its listings allow cannot be told
  // from one that never was.
  const CloudTraits& traits = w.cloud(a[0]).traits;
  const std::int64_t latest = std::max<std::int64_t>(traits.settle - traits.lag - 1'000, 0);
  rule.duration = milliseconds(std::min(a[1], latest));
  add_fault(w, a[0], rule, a[3]);
}
void partial_lists(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = fake::Effect::kPartialList;
  rule.probability = static_cast<int>(a[1]);
  add_fault(w, a[0], rule, a[2]);
}
void empty_lists(World& w, const Args& a) {
  // A cloud that says "complete" and is not, and sells a tag twice, cannot be survived by anybody.
  if (w.cloud(a[0]).traits.unique == 0) return;
  fake::FaultRule rule;
  rule.effect = fake::Effect::kEmptyList;
  rule.probability = static_cast<int>(a[1]);
  add_fault(w, a[0], rule, a[2]);
}
void sold_out(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = fake::Effect::kSoldOut;
  add_fault(w, a[0], rule, a[1]);
}
void stuck(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = fake::Effect::kStuckTermination;
  rule.duration = milliseconds(a[1]);
  rule.probability = static_cast<int>(a[2]);
  add_fault(w, a[0], rule, a[3]);
}
void overcharge(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = fake::Effect::kOvercharge;
  rule.percent = static_cast<int>(a[1]);
  add_fault(w, a[0], rule, a[2]);
}
void bad_image(World& w, const Args& a) {
  fake::FaultRule rule;
  rule.effect = fake::Effect::kImageError;
  add_fault(w, a[0], rule, a[1]);
}
void hurt(World& w, const Args& a) {
  std::vector<std::string> ours;
  for (const auto& [key, instance] : w.facts().instances()) {
    if (instance.cloud == w.cloud(a[0]).index && !instance.foreign) ours.push_back(instance.id);
  }
  if (ours.empty()) return;
  fake::KillOrder order;
  order.how = static_cast<fake::KillOrder::How>(a[2]);
  order.exit_code = static_cast<int>(a[3]);
  (void)w.cloud(a[0]).cloud.kill(ours.at(static_cast<size_t>(a[1]) % ours.size()), order, w.agenda().now());
}
void foreign(World& w, const Args& a) {
  w.coverage().reach(Counter::kForeignSeen);
  // Some of them look much like ours.
  constexpr std::array<std::string_view, 3> kTags{"", "spw-aaaaaaaaaaaaa-bbbbbbbbbbbbbbbbbbbbbbbbbb-1", "spw-"};
  w.cloud(a[0]).cloud.add_foreign(std::string(kTags.at(static_cast<size_t>(a[1]))), w.agenda().now());
}

// Daemons.

void kill(World& w, const Args& a) { w.kill_daemon(a[0], static_cast<int>(a[1]), milliseconds(a[2])); }
void stop(World& w, const Args& a) { w.stop_daemon(a[0], milliseconds(a[1])); }
void stop_kill(World& w, const Args& a) { w.kill_stopping_daemon(a[0], static_cast<int>(a[1]), milliseconds(a[2])); }
void freeze(World& w, const Args& a) { w.freeze_daemon(a[0], milliseconds(a[1])); }
void second(World& w, const Args&) { w.start_daemon(); }
void jump(World& w, const Args& a) { w.jump_clock(a[0], seconds(a[1])); }

constexpr Field kOwner{"owner", 0, kMany, 0, 11};
constexpr Field kNth{"nth", 0, kMany, 0, 11};
constexpr Field kCloud{"cloud", 0, kMany, 0, 2};
constexpr Field kWhich{"which", 0, kMany, 0, 1};
constexpr Field kLasts{"lasts", 1, 24 * kHour, 2'000, 40'000};
constexpr Field kPercent{"percent", 1, 100, 10, 100};
constexpr Field kRestart{"restart", 0, kHour, 0, 20'000};
// The daemon of a simulation reads no logs and takes no samples.
constexpr auto kLastCall = static_cast<std::int64_t>(fake::Call::kControl);
constexpr Field kCall{"call", 0, kLastCall, 0, kLastCall};

std::vector<Verb> make_verbs() {
  const auto last_shape = static_cast<std::int64_t>(shapes().size()) - 1;
  return {
      {"owner",
       "a controller with so many pods of a shape",
       0,
       {{"kind", 0, last_of<Owner::Kind>(), 0, last_of<Owner::Kind>()},
        {"shape", 0, last_shape, 0, last_shape},
        {"replicas", 0, 1000, 1, 12}},
       owner},
      {"scale", "another number of pods", 4, {kOwner, {"replicas", 0, 1000, 0, 12}}, scale},
      {"delete-pod", "a user deletes a pod", 14, {kOwner, kNth, {"grace", 1, 3600, 1, 30}}, delete_pod},
      {"force-delete", "a user deletes a pod by force", 8, {kOwner, kNth}, force_delete},
      {"delete-owner",
       "a user deletes a controller and its pods",
       2,
       {kOwner, {"grace", 0, 3600, 0, 30}},
       delete_owner},
      {"replace", "a user replaces all pods of a controller by force, under the same names", 16, {kOwner}, replace},
      {"edit",
       "a user edits a pod",
       4,
       {kOwner, kNth, {"what", 0, last_of<Users::Edit>(), 0, last_of<Users::Edit>()}},
       edit},
      {"collect", "pods that ended are deleted", 2, {}, collect},

      {"api-fault",
       "requests to the API server go wrong",
       8,
       {{"what", 0, last_of<ApiFault::What>(), 0, last_of<ApiFault::What>()},
        {"which", 0, last_of<ApiFault::Which>(), 0, last_of<ApiFault::Which>()},
        kPercent,
        kLasts},
       api_fault},
      {"cut-watches", "all watches break", 3, {}, cut_watches},
      {"compact", "the API server forgets old versions", 3, {}, compact},
      {"silence-watches", "watches say nothing", 2, {{"lasts", 1, kHour, 2'000, 60'000}}, silence_watches},
      {"lag-watches", "watches are late", 10, {{"lag", 1, kHour, 500, 10'000}, kLasts}, lag_watches},

      {"cloud-error",
       "calls of a cloud are answered with an error",
       6,
       {kCloud, {"kind", 0, 4, 0, 4}, kCall, kPercent, kLasts},
       cloud_error},
      {"cloud-loss",
       "requests to a cloud, or its answers, are lost",
       8,
       {kCloud, {"answer", 0, 1, 0, 1}, kCall, kPercent, kLasts},
       cloud_loss},
      {"cloud-slow",
       "a cloud takes its time",
       3,
       {kCloud, kCall, {"delay", 1, kHour, 500, 25'000}, kPercent, kLasts},
       cloud_slow},
      {"ghosts",
       "creates answer an error, and the instance appears later",
       5,
       {kCloud, {"delay", 0, kHour, 0, 10'000}, kPercent, kLasts},
       ghosts},
      {"partial-lists", "listings are incomplete and say so", 4, {kCloud, kPercent, kLasts}, partial_lists},
      {"empty-lists", "listings are empty and call themselves complete", 2, {kCloud, kPercent, kLasts}, empty_lists},
      {"sold-out", "a cloud has nothing to sell", 2, {kCloud, kLasts}, sold_out},
      {"stuck", "instances take long to end", 3, {kCloud, {"delay", 0, kHour, 1'000, 60'000}, kPercent, kLasts}, stuck},
      {"overcharge",
       "instances cost more than was offered",
       12,
       {kCloud, {"percent", 1, 10'000, 150, 1'000}, kLasts},
       overcharge},
      {"bad-image", "an image cannot be pulled", 1, {kCloud, kLasts}, bad_image},
      {"hurt",
       "an instance is removed, taken back, or crashes",
       6,
       {kCloud, {"nth", 0, kMany, 0, 30}, {"how", 0, 2, 0, 2}, {"code", 0, 255, 0, 3}},
       hurt},
      {"foreign", "somebody else rents an instance", 2, {kCloud, {"tag", 0, 2, 0, 2}}, foreign},

      {"kill",
       "a daemon is killed after so many more handlers",
       6,
       {kWhich, {"after", 0, kMany, 0, 300}, kRestart},
       kill},
      {"stop", "a daemon is told to stop", 2, {kWhich, kRestart}, stop},
      {"stop-kill",
       "a daemon is told to stop, and killed after so many more handlers",
       3,
       {kWhich, {"after", 1, kMany, 1, 80}, kRestart},
       stop_kill},
      {"freeze", "a daemon is frozen", 3, {kWhich, {"lasts", 1, kHour, 1'000, 90'000}}, freeze},
      {"second", "one more daemon is started", 1, {}, second},
      {"jump", "a daemon's wall clock jumps", 1, {kWhich, {"seconds", -kMany, kMany, -7'200, 7'200}}, jump},
  };
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> table = make_verbs();
  return table;
}

}  // namespace spillway::simulation
