#include "vk-provider/control/node_controller.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "vk-provider/async/task_group.hpp"
#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::control {
namespace asio = boost::asio;

namespace {

using base::ErrorKind;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kCallDeadline{10};
constexpr minutes kReportEvery{5};
constexpr minutes kComplainEvery{5};
constexpr minutes kLookAtForeignEvery{1};
// So often somebody may undo the same thing before we answer more slowly.
constexpr int kPatience = 5;
constexpr minutes kCalmAfter{2};
constexpr int kImmediateRetries = 3;  // after a conflict

kube::ReflectorConfig watch_config(const std::string& node) {
  kube::ReflectorConfig config;
  config.name = "node";
  config.path = "/api/v1/nodes";
  config.field_selector = "metadata.name=" + node;
  return config;
}

}  // namespace

NodeController::NodeController(NodeSettings profile, kube::KubeApi& api, kube::KubeApi& lease_api,
                               async::Timers& timers, base::Random& random, base::Metrics& metrics,
                               kube::EventRecorder* events)
    : profile_(std::move(profile)),
      client_(api),
      timers_(timers),
      random_(random),
      events_(events),
      lease_(profile_.name, lease_api, timers, random, metrics),
      reflector_(std::make_unique<kube::Reflector>(watch_config(profile_.name), api,
                                                   static_cast<kube::ReflectorSink&>(*this), timers, random, metrics)),
      waiter_(timers.make_waiter()),
      created_(metrics.counter("spillway_node_created_total", "Nodes created.", {{"node", profile_.name}})),
      recreated_(metrics.counter("spillway_node_recreated_total", "Nodes created again after somebody deleted them.",
                                 {{"node", profile_.name}})),
      writes_(metrics.counter("spillway_node_writes_total", "Writes that changed or reported a Node.",
                              {{"node", profile_.name}})),
      failures_(metrics.counter("spillway_node_failures_total", "Failed reads and writes of a Node.",
                                {{"node", profile_.name}})) {}

NodeController::~NodeController() = default;

async::Loop NodeController::run() {
  async::TaskGroup parts(co_await asio::this_coro::executor);
  parts.spawn(reflector_->run());
  parts.spawn(lease_.run());
  std::exception_ptr end;
  try {
    co_await reconcile();
  } catch (...) {  // cancellation; the parts are joined before it goes on
    end = std::current_exception();
  }
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await parts.stop();
  if (end) std::rethrow_exception(end);
}

void NodeController::set_providers_reachable(bool reachable, std::string reason, std::string message) {
  if (providers_.reachable == reachable && providers_.reason == reason && providers_.message == message) return;
  const bool flipped = providers_.reachable != reachable;
  providers_.reachable = reachable;
  providers_.reason = std::move(reason);
  providers_.message = std::move(message);
  if (flipped) {
    base::log::info("providers of the node changed", {{"node", profile_.name},
                                                      {"reachable", reachable},
                                                      {"reason", providers_.reason},
                                                      {"message", providers_.message}});
    tell_event(!reachable, providers_.reason, providers_.message);
  }
  rebuild_wanted();
  waiter_->wake();
}

bool NodeController::registered() const { return observed_ && ours(*observed_) && last_report_.has_value(); }

// What the watch says.

void NodeController::on_list_begin() { seen_in_list_ = false; }

void NodeController::on_list_end() {
  listed_ = true;
  if (!seen_in_list_ && observed_) forget_node();
  waiter_->wake();
}

void NodeController::on_object(std::string_view json) {
  auto node = kube::decode_node(json);
  if (!node || node->name != profile_.name) return;
  seen_in_list_ = true;
  observe(std::move(*node));
  waiter_->wake();
}

void NodeController::on_deleted(std::string_view json) {
  const auto node = kube::decode_node(json);
  // An event about an earlier Node of this name may come late.
  if (!node || !observed_ || node->uid != observed_->uid) return;
  newest_version_ = node->resource_version;
  forget_node();
  waiter_->wake();
}

void NodeController::observe(kube::ObservedNode node) {
  // Events and answers overtake one another: an old event after a write, or the answer to a write after the deletion.
  if (is_older(node.resource_version, newest_version_)) return;
  newest_version_ = node.resource_version;
  observed_ = std::move(node);
}

void NodeController::forget_node() {
  observed_.reset();
  last_report_.reset();
}

bool NodeController::ours(const kube::ObservedNode& node) const {
  // Our own Node stays ours also when somebody takes the label away.
  return node.uid == uid_ || may_adopt(node, profile_.installation);
}

// What is done about it.

async::Loop NodeController::reconcile() {
  for (;;) {
    const base::TimePoint when = co_await reconcile_once();
    co_await waiter_->wait_until(when);
  }
}

asio::awaitable<base::TimePoint> NodeController::reconcile_once() {
  if (!listed_) co_return base::TimePoint::max();
  if (server_version_.empty()) {
    const auto learned = co_await learn_server_version();
    if (!learned) co_return retry_at(learned.error(), "cannot read the API server's version");
  }
  if (!observed_) {
    const base::TimePoint earliest = not_before(NodeStep::kNone);
    if (earliest > timers_.now()) co_return earliest;
    const auto created = co_await create_node();
    if (!created) co_return retry_at(created.error(), "cannot create the node");
  }
  if (!observed_) co_return timers_.now();  // deleted while the answer was on its way
  if (!ours(*observed_)) {
    refuse(*observed_);
    co_return timers_.now() + kLookAtForeignEvery;
  }
  take_over();

  const bool report_due = !last_report_ || timers_.now() - *last_report_ >= kReportEvery;
  const NodeStep step = next_step(wanted_, *observed_, report_due);
  if (step == NodeStep::kNone) {
    problem_.clear();
    failed_in_a_row_ = 0;
    co_return *last_report_ + kReportEvery;
  }
  const base::TimePoint earliest = not_before(step);
  if (earliest > timers_.now()) co_return earliest;
  auto done = co_await perform(step);
  if (!done && (done.error().kind == ErrorKind::kConflict || done.error().kind == ErrorKind::kNotFound)) {
    const auto refreshed = co_await refresh();
    if (refreshed && failed_in_a_row_++ < kImmediateRetries) co_return timers_.now();
  }
  if (!done) co_return retry_at(done.error(), "cannot bring the node up to date");
  note_done(step);
  co_return timers_.now();
}

async::Task<void> NodeController::learn_server_version() {
  auto version = co_await client_.get_server_version(timers_.now() + kCallDeadline);
  if (!version) {
    // A server that does not tell (a proxy in front of it) must not keep the node away.
    const ErrorKind kind = version.error().kind;
    const bool never = kind == ErrorKind::kPermission || kind == ErrorKind::kNotFound || kind == ErrorKind::kInvalid;
    if (!never) co_return base::fail(std::move(version.error()));
    base::log::warn("the API server does not tell its version", {{"node", profile_.name}, {"error", version.error()}});
  }
  server_version_ = version ? std::move(*version) : "unknown";
  rebuild_wanted();
  co_return base::Result<void>();
}

void NodeController::rebuild_wanted() { wanted_ = make_wanted_node(profile_, providers_, server_version_); }

async::Task<void> NodeController::create_node() {
  std::vector<kube::NodeTaint> taints = wanted_.taints;
  taints.insert(taints.end(), wanted_.first_taints.begin(), wanted_.first_taints.end());
  auto created =
      co_await client_.create(wanted_.metadata, std::move(taints), wanted_.provider_id, timers_.now() + kCallDeadline);
  if (!created) {
    const ErrorKind kind = created.error().kind;
    // It exists, or may exist: what stands there decides.
    if (kind == ErrorKind::kConflict || kind == ErrorKind::kUnknownOutcome) co_return co_await refresh();
    co_return base::fail(std::move(created.error()));
  }
  note_done(NodeStep::kNone);
  created_.add();
  const bool again = !uid_.empty();
  uid_ = created->uid;
  observe(std::move(*created));
  lease_.set_owner(uid_);
  if (again) {
    last_recreated_ = timers_.now();
    recreated_.add();
    base::log::warn("node created again after it was deleted", {{"node", profile_.name}, {"uid", uid_}});
    tell_event(true, "NodeRecreated", "the Node was deleted by somebody and created again by Spillway");
  } else {
    base::log::info("node created", {{"node", profile_.name}, {"uid", uid_}});
  }
  co_return base::Result<void>();
}

async::Task<void> NodeController::refresh() {
  auto node = co_await client_.get(profile_.name, timers_.now() + kCallDeadline);
  if (node) {
    observe(std::move(*node));
  } else if (node.error().kind == ErrorKind::kNotFound) {
    forget_node();
  } else {
    co_return base::fail(std::move(node.error()));
  }
  co_return base::Result<void>();
}

void NodeController::take_over() {
  lease_.set_owner(observed_->uid);
  if (uid_ == observed_->uid) return;
  uid_ = observed_->uid;
  last_complaint_.reset();
  base::log::info("node adopted", {{"node", profile_.name}, {"uid", uid_}});
}

async::Task<void> NodeController::perform(NodeStep step) {
  const base::Deadline deadline = timers_.now() + kCallDeadline;
  const std::string& name = profile_.name;
  base::Result<kube::ObservedNode> node;
  switch (step) {
    case NodeStep::kApplyMetadata: {
      kube::NodeMetadata metadata = wanted_.metadata;
      metadata.uid = uid_;
      node = co_await client_.apply_metadata(std::move(metadata), deadline);
      break;
    }
    case NodeStep::kRemoveMetadata:
      node = co_await client_.remove_metadata(name, uid_, stale_keys(observed_->owned_labels, wanted_.metadata.labels),
                                              stale_keys(observed_->owned_annotations, wanted_.metadata.annotations),
                                              deadline);
      break;
    case NodeStep::kWriteTaints:
      node = co_await client_.write_taints(name, observed_->resource_version, merge_taints(wanted_, observed_->taints),
                                           deadline);
      break;
    case NodeStep::kSetProviderId:
      node = co_await client_.set_provider_id(name, uid_, wanted_.provider_id, deadline);
      break;
    case NodeStep::kApplyStatus: {
      const base::WallTime wall = timers_.wall();
      node = co_await client_.apply_status(name, uid_, status_to_send(wanted_, *observed_, wall), wall, deadline);
      if (node) last_report_ = timers_.now();
      break;
    }
    case NodeStep::kReplaceAddresses:
      node = co_await client_.replace_addresses(name, uid_, wanted_.addresses, deadline);
      break;
    case NodeStep::kNone: co_return base::Result<void>();
  }
  if (!node) co_return base::fail(std::move(node.error()));
  base::log::debug("node written", {{"node", name}, {"step", to_string(step)}});
  writes_.add();
  observe(std::move(*node));
  co_return base::Result<void>();
}

// When, and what people hear of it.

base::TimePoint NodeController::not_before(NodeStep step) const {
  const auto it = paces_.find(step);
  if (it == paces_.end() || it->second.streak < kPatience) return base::TimePoint::min();
  const base::BackoffPolicy slower{seconds(1), minutes(1)};
  return it->second.last + base::backoff_delay(slower, it->second.streak - kPatience + 1);
}

void NodeController::note_done(NodeStep step) {
  failed_in_a_row_ = 0;
  Pace& pace = paces_[step];
  const base::TimePoint now = timers_.now();
  pace.streak = now - pace.last < kCalmAfter ? pace.streak + 1 : 1;
  pace.last = now;
  if (pace.streak == kPatience) {
    base::log::warn("somebody keeps undoing what is written to the node; it is restored more slowly",
                    {{"node", profile_.name}, {"step", step == NodeStep::kNone ? "create" : to_string(step)}});
  }
}

void NodeController::refuse(const kube::ObservedNode& node) {
  lease_.set_owner(std::string());
  const std::string label(model::kLabelInstallation);
  const auto it = node.labels.find(label);
  problem_ = "a Node " + node.name + " exists that is not of this installation (it " +
             (it == node.labels.end() ? "has no label " + label : "has " + label + "=" + it->second) + ", not " +
             profile_.installation + "); give the profile another name, or delete that Node";
  if (last_complaint_ && timers_.now() - *last_complaint_ < kComplainEvery) return;
  last_complaint_ = timers_.now();
  failures_.add();
  base::log::error("the node is refused", {{"node", profile_.name}, {"why", problem_}});
}

base::TimePoint NodeController::retry_at(const base::Error& error, const char* what) {
  failures_.add();
  const base::BackoffPolicy policy{milliseconds(200), seconds(7)};
  const base::Duration own = random_.jittered(base::backoff_delay(policy, ++failed_in_a_row_), 0.2);
  const base::Duration wait = base::heed_retry_after(own, error);
  problem_ = std::string(what) + ": " + error.message;
  const base::TimePoint now = timers_.now();
  if (last_complaint_ && now - *last_complaint_ < minutes(1) && failed_in_a_row_ > 1) {
    base::log::debug(what, {{"node", profile_.name}, {"error", error}});
  } else {
    last_complaint_ = now;
    const bool denied = error.kind == ErrorKind::kPermission;
    base::log::warn(what, {{"node", profile_.name},
                           {"error", error},
                           {"remedy", denied ? "apply config/deploy: the service account lacks a right" : "retrying"}});
  }
  return now + wait;
}

void NodeController::tell_event(bool warning, const std::string& reason, const std::string& message) {
  if (events_ == nullptr || uid_.empty()) return;
  kube::EventTarget target;
  target.kind = "Node";
  target.name = profile_.name;
  target.uid = uid_;
  if (warning) {
    events_->warning(target, reason, message);
  } else {
    events_->normal(target, reason, message);
  }
}

}  // namespace spillway::control
