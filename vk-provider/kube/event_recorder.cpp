#include "vk-provider/kube/event_recorder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
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

struct Remembered {
  Event event;
  base::TimePoint last;
  bool sent = false;  // it stands at the API server
  bool queued = false;
};

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
  Event make_event(bool warning, const EventTarget& target, std::string reason, std::string message);
  void forget_old(base::TimePoint now);
  boost::asio::awaitable<void> deliver(std::string key);

  static constexpr const char* kHelp = "Events, by what became of them.";

  Client& client;
  async::Timers& timers;
  std::string host;
  std::unique_ptr<async::Waiter> waiter;
  base::Counter& sent;
  base::Counter& dropped;
  std::unordered_map<std::string, Remembered> remembered;
  std::deque<std::string> order;                    // the keys of `remembered`, looked through in turns for what is old
  std::unordered_map<std::string, Bucket> buckets;  // by the object's UID
  std::deque<std::string> queue;
  bool delivering = false;
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

size_t EventRecorder::pending() const { return state_->queue.size() + (state_->delivering ? 1 : 0); }

Event EventRecorder::State::make_event(bool warning, const EventTarget& target, std::string reason,
                                       std::string message) {
  const base::WallTime now = timers.wall();
  Event event;
  event.ns = target.ns.empty() ? "default" : target.ns;
  std::string prefix = target.name.substr(0, kMaxNamePrefix);
  while (prefix.ends_with('.') || prefix.ends_with('-')) prefix.pop_back();
  event.name = prefix + "." + hex(static_cast<std::uint64_t>(now.time_since_epoch().count())) + hex(sequence++);
  event.involved_kind = target.kind;
  event.involved_namespace = target.ns;
  event.involved_name = target.name;
  event.involved_uid = target.uid;
  event.involved_version = "v1";
  event.warning = warning;
  event.reason = std::move(reason);
  event.message = std::move(message);
  event.first_seen = event.last_seen = now;
  event.host = host;
  return event;
}

void EventRecorder::State::record(bool warning, const EventTarget& target, std::string reason, std::string message) {
  const base::TimePoint now = timers.now();
  forget_old(now);
  message = shortened(std::move(message));
  const std::string key = target.uid + '\n' + reason + '\n' + message;
  const auto known = remembered.find(key);
  if (known != remembered.end() && now - known->second.last < kSameEventFor) {
    Remembered& entry = known->second;
    ++entry.event.count;
    entry.event.last_seen = timers.wall();
    entry.last = now;
    if (!std::exchange(entry.queued, true)) queue.push_back(key);
    return waiter->wake();
  }
  if (queue.size() >= kMaxQueue) return dropped.add();
  Bucket& bucket = buckets[target.uid];
  if (bucket.tokens.reserve(now) > now) return dropped.add();
  if (known == remembered.end()) {
    ++bucket.entries;
    order.push_back(key);
  }
  Remembered& entry = remembered[key];
  entry.event = make_event(warning, target, std::move(reason), std::move(message));
  entry.last = now;
  entry.sent = false;
  if (!std::exchange(entry.queued, true)) queue.push_back(key);
  waiter->wake();
}

/// Looks at two entries whenever one may come in, so that the work is spread and the memory bounded all the same.
void EventRecorder::State::forget_old(base::TimePoint now) {
  for (int i = 0; i < 2 && !order.empty(); ++i) {
    std::string key = std::move(order.front());
    order.pop_front();
    const auto it = remembered.find(key);
    if (it == remembered.end()) continue;
    const bool old = now - it->second.last >= kSameEventFor || remembered.size() > kMaxRemembered;
    if (it->second.queued || !old) {
      order.push_back(std::move(key));
      continue;
    }
    const auto bucket = buckets.find(it->second.event.involved_uid);
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
    std::string key = std::move(state.queue.front());
    state.queue.pop_front();
    state.delivering = true;
    co_await state.deliver(std::move(key));
    state.delivering = false;
  }
}

boost::asio::awaitable<void> EventRecorder::State::deliver(std::string key) {
  for (int attempt = 1;; ++attempt) {
    // Always what is known now: it may have happened again meanwhile. It cannot be forgotten while it is queued.
    auto it = remembered.find(key);
    if (it == remembered.end()) co_return;
    const Event event = it->second.event;
    const bool exists = it->second.sent;
    const base::Deadline deadline = timers.now() + kSendDeadline;
    auto done = exists ? co_await client.patch_event(event, deadline) : co_await client.create_event(event, deadline);

    it = remembered.find(key);
    if (it == remembered.end()) co_return;
    // Names are never used twice: a conflict is an answer that was lost, and the event stands.
    if (done || (!exists && done.error().kind == ErrorKind::kConflict)) {
      sent.add();
      it->second.sent = true;
      it->second.queued = it->second.event.count != event.count;
      if (it->second.queued) queue.push_back(std::move(key));
      co_return;
    }
    if (exists && done.error().kind == ErrorKind::kNotFound) {
      it->second.sent = false;  // the server forgets events after an hour: make it anew
    } else if (is_hopeless(done.error().kind) || attempt >= kTries) {
      dropped.add();
      it->second.queued = false;
      base::log::debug("event not written",
                       {{"reason", event.reason}, {"object", event.involved_name}, {"error", done.error()}});
      co_return;
    }
    base::Duration pause = base::backoff_delay(kRetry, attempt);
    if (done.error().retry_after) pause = std::max<base::Duration>(pause, *done.error().retry_after);
    co_await timers.sleep_for(pause);
  }
}

}  // namespace spillway::kube
