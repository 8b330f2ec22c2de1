#include "vk-provider/kube/event_recorder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/base/token_bucket.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

constexpr base::Duration kSameEventFor = std::chrono::minutes(10);
constexpr base::Duration kSendDeadline = std::chrono::seconds(10);
// About five minutes in all: longer than an API server takes to come back, shorter than anybody's patience.
constexpr base::BackoffPolicy kRetry{std::chrono::seconds(1), std::chrono::seconds(30)};
constexpr int kTries = 14;
constexpr base::Duration kGiveWayFor = std::chrono::seconds(5);
constexpr base::Duration kQuiet = std::chrono::milliseconds(100);
constexpr size_t kMaxQueue = 10'000;
constexpr size_t kMaxRemembered = 4'096;
// Per object, as client-go's spam filter: a burst of 25, then one per 5 minutes.
constexpr double kObjectBurst = 25;
constexpr double kObjectPerSecond = 1.0 / 300;
// The limit of events.k8s.io, so that every way of reading the event shows all of it.
constexpr size_t kMaxMessage = 1024;
constexpr size_t kMaxNamePrefix = 220;  // a name has 253, and a dot and two numbers follow

/// Cuts at a character, not inside one.
std::string shortened(std::string text) {
  if (text.size() <= kMaxMessage) return text;
  constexpr std::string_view kMore = "...";
  size_t end = kMaxMessage - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + std::string(kMore);
}

std::string hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return {digits.data(), end};
}

/// What a retry could not change: the namespace is going away, the right is missing, the event is not accepted.
bool is_hopeless(ErrorKind kind) {
  return kind == ErrorKind::kNotFound || kind == ErrorKind::kPermission || kind == ErrorKind::kInvalid ||
         kind == ErrorKind::kUnsupported;
}

/// What is told of an event; it comes again with the next call, so it is kept only while it is to be sent.
struct Told {
  EventTarget target;
  bool warning = false;
  std::string reason;
  std::string message;
  base::WallTime at;
};

/// An event as it is remembered for de-duplication: ten thousand pods have one each.
struct Remembered {
  std::unique_ptr<Told> to_send;
  base::WallTime first_seen;
  std::uint64_t sequence = 0;  // with first_seen and the object's name it makes the event's name
  int count = 0;
  size_t object = 0;  // key of its bucket
  base::TimePoint last;
  bool sent = false;  // it stands at the API server
  bool queued = false;
};

/// A hash of object, reason and message: two events that shared one would be counted as one, which is harmless.
using Key = size_t;

struct Bucket {
  base::TokenBucket tokens{kObjectPerSecond, kObjectBurst};
  size_t entries = 0;  // remembered events of the object
};

}  // namespace

struct EventRecorder::State {
  State(Client& c, async::Timers& t, base::Metrics& m, std::string h)
      : client(c),
        timers(t),
        host(std::move(h)),
        waiter(t.make_waiter()),
        sent(m.counter("spillway_events_total", kHelp, {{"outcome", "sent"}})),
        dropped(m.counter("spillway_events_total", kHelp, {{"outcome", "dropped"}})) {}

  void record(bool warning, const EventTarget& target, std::string reason, std::string message);
  Event make_event(const Remembered& entry) const;
  boost::asio::awaitable<void> give_way(Key key);
  void forget_old(base::TimePoint now);
  boost::asio::awaitable<void> deliver(Key key);

  static constexpr const char* kHelp = "Events, by what became of them.";

  Client& client;
  async::Timers& timers;
  std::string host;
  std::unique_ptr<async::Waiter> waiter;
  base::Counter& sent;
  base::Counter& dropped;
  std::unordered_map<Key, Remembered> remembered;
  std::deque<Key> order;                       // the keys of `remembered`, looked through in turns for what is old
  std::unordered_map<size_t, Bucket> buckets;  // by a hash of the object's UID
  std::deque<Key> queue;
  bool delivering = false;
  std::uint64_t sequence = 0;
  std::uint64_t quiet_at = 0;  // status writes of the client when they paused last
};

EventTarget target_of(const model::PodKey& pod) {
  EventTarget target;
  target.ns = pod.ns;
  target.name = pod.name;
  target.uid = pod.uid.text();
  return target;
}

EventRecorder::EventRecorder(Client& client, async::Timers& timers, base::Metrics& metrics, std::string host)
    : state_(std::make_unique<State>(client, timers, metrics, std::move(host))) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::normal(const EventTarget& target, std::string reason, std::string message) {
  state_->record(false, target, std::move(reason), std::move(message));
}

void EventRecorder::warning(const EventTarget& target, std::string reason, std::string message) {
  state_->record(true, target, std::move(reason), std::move(message));
}

size_t EventRecorder::pending() const { return state_->queue.size() + (state_->delivering ? 1 : 0); }

Event EventRecorder::State::make_event(const Remembered& entry) const {
  const Told& told = *entry.to_send;
  const EventTarget& target = told.target;
  Event event;
  event.ns = target.ns.empty() ? "default" : target.ns.str();
  std::string prefix = target.name.str().substr(0, kMaxNamePrefix);
  while (prefix.ends_with('.') || prefix.ends_with('-')) prefix.pop_back();
  event.name =
      prefix + "." + hex(static_cast<std::uint64_t>(entry.first_seen.time_since_epoch().count())) + hex(entry.sequence);
  event.involved_kind = target.kind;
  event.involved_namespace = target.ns;
  event.involved_name = target.name;
  event.involved_uid = target.uid;
  event.involved_version = "v1";
  event.warning = told.warning;
  event.reason = told.reason;
  event.message = told.message;
  event.first_seen = entry.first_seen;
  event.last_seen = told.at;
  event.count = entry.count;
  event.host = host;
  return event;
}

void EventRecorder::State::record(bool warning, const EventTarget& target, std::string reason, std::string message) {
  const base::TimePoint now = timers.now();
  forget_old(now);
  message = shortened(std::move(message));
  const Key key = std::hash<std::string>{}(target.uid.str() + '\n' + reason + '\n' + message);
  const size_t object = std::hash<std::string>{}(target.uid.str());
  const base::WallTime wall = timers.wall();
  auto told = std::make_unique<Told>(target, warning, std::move(reason), std::move(message), wall);
  const auto known = remembered.find(key);
  if (known != remembered.end() && now - known->second.last < kSameEventFor) {
    Remembered& entry = known->second;
    entry.to_send = std::move(told);
    ++entry.count;
    entry.last = now;
    if (!std::exchange(entry.queued, true)) queue.push_back(key);
    return waiter->wake();
  }
  if (queue.size() >= kMaxQueue) return dropped.add();
  Bucket& bucket = buckets[object];
  if (bucket.tokens.reserve(now) > now) return dropped.add();
  if (known == remembered.end()) {
    ++bucket.entries;
    order.push_back(key);
  }
  Remembered& entry = remembered[key];
  entry.to_send = std::move(told);
  entry.first_seen = wall;
  entry.sequence = sequence++;
  entry.count = 1;
  entry.object = object;
  entry.last = now;
  entry.sent = false;
  if (!std::exchange(entry.queued, true)) queue.push_back(key);
  waiter->wake();
}

/// Looks at two entries whenever one may come in, so that the work is spread and the memory bounded all the same.
void EventRecorder::State::forget_old(base::TimePoint now) {
  for (int i = 0; i < 2 && !order.empty(); ++i) {
    const Key key = order.front();
    order.pop_front();
    const auto it = remembered.find(key);
    if (it == remembered.end()) continue;
    const bool old = now - it->second.last >= kSameEventFor || remembered.size() > kMaxRemembered;
    if (it->second.queued || !old) {
      order.push_back(key);
      continue;
    }
    const auto bucket = buckets.find(it->second.object);
    if (bucket != buckets.end() && --bucket->second.entries == 0) buckets.erase(bucket);
    remembered.erase(it);
  }
}

async::Loop EventRecorder::run() {
  State& state = *state_;
  for (;;) {
    if (state.queue.empty()) {
      co_await state.waiter->wait();
      continue;
    }
    const Key key = state.queue.front();
    state.queue.pop_front();
    state.delivering = true;
    co_await state.deliver(key);
    state.delivering = false;
  }
}

/// Every request for an event is one that a pod's status waits for, so events go when statuses pause.
boost::asio::awaitable<void> EventRecorder::State::give_way(Key key) {
  const auto it = remembered.find(key);
  if (it == remembered.end()) co_return;
  const base::TimePoint latest = it->second.last + kGiveWayFor;
  while (quiet_at != client.status_writes() && timers.now() < latest) {
    quiet_at = client.status_writes();
    co_await timers.sleep_until(std::min(timers.now() + kQuiet, latest));
  }
}

boost::asio::awaitable<void> EventRecorder::State::deliver(Key key) {
  co_await give_way(key);
  for (int attempt = 1;; ++attempt) {
    // Always what is known now: it may have happened again meanwhile. It cannot be forgotten while it is queued.
    auto it = remembered.find(key);
    if (it == remembered.end() || !it->second.to_send) co_return;
    const Event event = make_event(it->second);
    const bool exists = it->second.sent;
    const base::Deadline deadline = timers.now() + kSendDeadline;
    auto done = exists ? co_await client.patch_event(event, deadline) : co_await client.create_event(event, deadline);

    it = remembered.find(key);
    if (it == remembered.end()) co_return;
    // Names are never used twice: a conflict is an answer that was lost, and the event stands.
    if (done || (!exists && done.error().kind == ErrorKind::kConflict)) {
      sent.add();
      it->second.sent = true;
      it->second.queued = it->second.count != event.count;
      if (it->second.queued) {
        queue.push_back(key);
      } else {
        it->second.to_send.reset();
      }
      co_return;
    }
    if (exists && done.error().kind == ErrorKind::kNotFound) {
      it->second.sent = false;  // the server forgets events after an hour: make it anew
    } else if (is_hopeless(done.error().kind) || attempt >= kTries) {
      dropped.add();
      it->second.queued = false;
      it->second.to_send.reset();
      base::log::debug("event not written",
                       {{"reason", event.reason}, {"object", event.involved_name}, {"error", done.error()}});
      co_return;
    }
    co_await timers.sleep_for(base::heed_retry_after(base::backoff_delay(kRetry, attempt), done.error()));
  }
}

}  // namespace spillway::kube
