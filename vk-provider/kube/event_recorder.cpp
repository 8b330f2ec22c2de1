#include "vk-provider/kube/event_recorder.hpp"

#include <algorithm>
#include <deque>
#include <list>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "vk-provider/base/log.hpp"
#include "vk-provider/base/token_bucket.hpp"

namespace spillway::kube {
namespace {

constexpr base::Duration kSameEventFor = std::chrono::minutes(10);
constexpr base::Duration kSendDeadline = std::chrono::seconds(10);
constexpr base::Duration kAfterFailure = std::chrono::seconds(2);
constexpr int kTries = 5;
constexpr size_t kMaxQueue = 10'000;
constexpr size_t kMaxRemembered = 4'096;
// Per object, as client-go's spam filter: a burst of 25, then one per 5 minutes.
constexpr double kObjectBurst = 25;
constexpr double kObjectPerSecond = 1.0 / 300;

struct Remembered {
  Event event;
  base::TimePoint last{};
  bool sent = false;   // it stands at the API server
  bool queued = false;
};

}  // namespace

struct EventRecorder::State {
  State(Client& c, async::Timers& t, base::Metrics& m, std::string h)
      : client(c), timers(t), host(std::move(h)), waiter(t.make_waiter()),
        sent(m.counter("spillway_events_total", "Events written to the API server.", {{"outcome", "sent"}})),
        dropped(m.counter("spillway_events_total", "Events written to the API server.", {{"outcome", "dropped"}})) {}

  void record(bool warning, const EventTarget& target, std::string reason, std::string message);
  void forget_old(base::TimePoint now);
  /// True if it was sent, or never will be.
  boost::asio::awaitable<bool> send(std::string key);

  Client& client;
  async::Timers& timers;
  std::string host;
  std::unique_ptr<async::Waiter> waiter;
  base::Counter& sent;
  base::Counter& dropped;
  std::unordered_map<std::string, Remembered> remembered;
  std::deque<std::string> order;  // keys as they were first seen, for forgetting
  std::unordered_map<std::string, base::TokenBucket> buckets;  // by the object's UID
  std::deque<std::string> queue;
  std::uint64_t sequence = 0;
};

EventRecorder::EventRecorder(Client& client, async::Timers& timers, base::Metrics& metrics, std::string host)
    : state_(std::make_unique<State>(client, timers, metrics, std::move(host))) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::normal(const EventTarget& target, std::string reason, std::string message) {
  state_->record(false, target, std::move(reason), std::move(message));
}

void EventRecorder::warning(const EventTarget& target, std::string reason, std::string message) {
  state_->record(true, target, std::move(reason), std::move(message));
}

size_t EventRecorder::pending() const { return state_->queue.size(); }

void EventRecorder::State::record(bool warning, const EventTarget& target, std::string reason, std::string message) {
  const base::Now now = timers.both();
  forget_old(now.steady);
  const std::string key = target.uid + '\n' + reason + '\n' + message;
  const auto known = remembered.find(key);
  if (known == remembered.end()) {
    // The burst is only for those who say something new again and again.
    auto bucket = buckets.try_emplace(target.uid, kObjectPerSecond, kObjectBurst).first;
    if (queue.size() >= kMaxQueue || bucket->second.reserve(now.steady) > now.steady) return dropped.add();
    Remembered entry;
    entry.event.ns = target.ns.empty() ? "default" : target.ns;
    entry.event.name = fmt::format("{}.{:x}{:04x}", target.name.substr(0, 220), now.wall.time_since_epoch().count(), sequence++ & 0xffff);
    entry.event.involved_kind = target.kind;
    entry.event.involved_namespace = target.ns;
    entry.event.involved_name = target.name;
    entry.event.involved_uid = target.uid;
    entry.event.involved_version = "v1";
    entry.event.warning = warning;
    entry.event.reason = std::move(reason);
    entry.event.message = std::move(message);
    entry.event.first_seen = entry.event.last_seen = now.wall;
    entry.last = now.steady;
    entry.queued = true;
    remembered.emplace(key, std::move(entry));
    order.push_back(key);
    queue.push_back(key);
  } else {
    Remembered& entry = known->second;
    ++entry.event.count;
    entry.event.last_seen = now.wall;
    entry.last = now.steady;
    if (!std::exchange(entry.queued, true)) queue.push_back(key);
  }
  waiter->wake();
}

void EventRecorder::State::forget_old(base::TimePoint now) {
  while (!order.empty()) {
    const auto it = remembered.find(order.front());
    if (it != remembered.end()) {
      const bool old = now - it->second.last >= kSameEventFor || remembered.size() > kMaxRemembered;
      if (it->second.queued || !old) return;
      buckets.erase(it->second.event.involved_uid);
      remembered.erase(it);
    }
    order.pop_front();
  }
}

async::Loop EventRecorder::run() {
  for (;;) {
    if (state_->queue.empty()) co_await state_->waiter->wait();
    if (state_->queue.empty()) continue;
    std::string key = std::move(state_->queue.front());
    state_->queue.pop_front();
    int tries = 1;
    while (!co_await state_->send(key) && tries++ < kTries) co_await state_->timers.sleep_for(kAfterFailure);
  }
}

boost::asio::awaitable<bool> EventRecorder::State::send(std::string key) {
  auto it = remembered.find(key);
  if (it == remembered.end()) co_return true;
  it->second.queued = false;
  const Event event = it->second.event;
  const bool exists = it->second.sent;
  const base::Deadline deadline = timers.now() + kSendDeadline;
  auto done = exists ? co_await client.patch_event(event, deadline) : co_await client.create_event(event, deadline);
  it = remembered.find(key);
  if (done) {
    sent.add();
    if (it != remembered.end()) it->second.sent = true;
    co_return true;
  }
  const bool expired = exists && done.error().kind == base::ErrorKind::kNotFound;
  if (expired && it != remembered.end()) {
    it->second.sent = false;  // the server forgets events after an hour: make it anew
    co_return false;
  }
  // The namespace is going away, or it will never be accepted.
  const bool hopeless = done.error().kind == base::ErrorKind::kNotFound || done.error().kind == base::ErrorKind::kPermission ||
                        done.error().kind == base::ErrorKind::kInvalid || done.error().kind == base::ErrorKind::kConflict;
  if (hopeless) {
    dropped.add();
    base::log::debug("event not written", {{"reason", event.reason}, {"object", event.involved_name}, {"error", done.error()}});
  }
  co_return hopeless;
}

}  // namespace spillway::kube
