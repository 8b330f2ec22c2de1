#include "vk-provider/kube/reflector.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/list_page.hpp"
#include "vk-provider/kube/reflector_fsm.hpp"
#include "vk-provider/kube/watch_event.hpp"
#include "vk-provider/net/line_splitter.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

namespace asio = boost::asio;
namespace log = base::log;

constexpr base::Duration kOpenDeadline = std::chrono::seconds(10);
constexpr base::Duration kPageDeadline = std::chrono::seconds(60);
// The server sends a bookmark each minute; through an initial list something comes all the time.
constexpr base::Duration kLongestSilence = std::chrono::seconds(90);
constexpr base::Duration kLongestListSilence = std::chrono::seconds(30);
// How much longer than asked for a watch may last before it counts as dead.
constexpr base::Duration kOvertime = std::chrono::seconds(2);
// How long ago the last watch may have ended for what is known to count as current.
constexpr base::Duration kAMoment = std::chrono::seconds(10);
// An object is at most 1.5 MiB (etcd's limit) unless the server was told otherwise.
constexpr size_t kMaxLine = 8 * 1024 * 1024;
constexpr int kYieldEvery = 50;

constexpr const char* kRestartsHelp = "Watches that ended and lists that failed, by reason.";

}  // namespace

struct Reflector::State {
  State(ReflectorConfig c, KubeApi& a, ReflectorSink& s, async::Timers& t, base::Random& r, base::Metrics& m)
      : config(std::move(c)),
        api(a),
        sink(s),
        timers(t),
        metrics(m),
        lists(m.counter("spillway_lists_total", "Complete lists of a collection.", {{"resource", config.name}})),
        last_event(m.gauge("spillway_watch_last_event_timestamp_seconds",
                           "When the last event or bookmark came through the watch.", {{"resource", config.name}})),
        fsm(r, std::chrono::duration_cast<std::chrono::seconds>(config.watch_time)) {}

  async::Loop list_page(ReflectorFsm::ListPage step);
  async::Loop watch(ReflectorFsm::OpenWatch step);
  asio::awaitable<WatchEnd> consume(async::ByteStream& stream, bool initial, base::TimePoint until);
  std::optional<WatchEnd> take(std::string_view line, bool& listing);
  async::Loop breathe();

  std::string query(std::string parameters) const;
  void list_ended();
  void count_restart(std::string_view reason);
  void note_failure(std::string_view what, const base::Error& error);

  ReflectorConfig config;
  KubeApi& api;
  ReflectorSink& sink;
  async::Timers& timers;
  base::Metrics& metrics;
  base::Counter& lists;
  base::Gauge& last_event;
  ReflectorFsm fsm;
  bool ever_listed = false;
  bool watching = false;
  base::TimePoint last_watched;
  int since_breath = 0;
};

std::string Reflector::State::query(std::string parameters) const {
  if (!config.field_selector.empty()) parameters += "&fieldSelector=" + net::encode_query_value(config.field_selector);
  if (!config.label_selector.empty()) parameters += "&labelSelector=" + net::encode_query_value(config.label_selector);
  return config.path + "?" + std::move(parameters);
}

/// A long list must not keep the reactor from everything else.
async::Loop Reflector::State::breathe() {
  if (++since_breath < kYieldEvery) co_return;
  since_breath = 0;
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

void Reflector::State::list_ended() {
  ever_listed = true;
  last_watched = timers.now();
  lists.add();
  sink.on_list_end();
}

void Reflector::State::count_restart(std::string_view reason) {
  metrics
      .counter("spillway_watch_restarts_total", kRestartsHelp,
               {{"resource", config.name}, {"reason", std::string(reason)}})
      .add();
}

/// The first failure of a series is for people, the others are for those who look closely.
void Reflector::State::note_failure(std::string_view what, const base::Error& error) {
  count_restart(to_string(error.kind));
  const auto level = fsm.failures() == 0 ? log::Level::kWarn : log::Level::kDebug;
  if (log::enabled(level)) log::write(level, what, {{"resource", config.name}, {"error", error}});
}

async::Loop Reflector::State::list_page(ReflectorFsm::ListPage step) {
  const bool first = step.continue_token.empty();
  KubeRequest request;
  request.target = query("limit=" + std::to_string(step.limit) +
                         (first ? std::string() : "&continue=" + net::encode_query_value(step.continue_token)));
  auto page = co_await api.send(std::move(request), timers.now() + kPageDeadline);
  if (!page) {
    note_failure("listing failed", page.error());
    fsm.page_failed(page.error());
    co_return;
  }
  const std::optional<ListPage> list = parse_list_page(page->body);
  bool whole = list.has_value();
  if (list) {
    if (first) sink.on_list_begin();
    JsonArray items(list->items);
    while (items.next()) {
      sink.on_object(items.value());
      co_await breathe();
    }
    whole = !items.failed();
  }
  if (!whole) {
    const base::Error broken(base::ErrorKind::kUnavailable, "the API server's answer is no list, or broke off");
    note_failure("listing failed", broken);
    fsm.page_failed(broken);
    co_return;
  }
  if (list->continue_token.empty()) list_ended();
  fsm.page_read(list->continue_token, list->resource_version);
}

async::Loop Reflector::State::watch(ReflectorFsm::OpenWatch step) {
  std::string parameters = "watch=true&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(step.timeout.count());
  if (step.initial) {
    parameters += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
  } else {
    parameters += "&resourceVersion=" + net::encode_query_value(step.resource_version);
  }
  KubeRequest request;
  request.target = query(std::move(parameters));
  auto stream = co_await api.watch(std::move(request), timers.now() + kOpenDeadline);
  if (!stream) {
    note_failure("watching failed", stream.error());
    fsm.watch_refused(stream.error());
    co_return;
  }
  const base::TimePoint opened = timers.now();
  if (step.initial) sink.on_list_begin();
  watching = !step.initial;
  const WatchEnd end = co_await consume(**stream, step.initial, opened + step.timeout + kOvertime);
  if (watching) last_watched = timers.now();
  watching = false;
  count_restart(to_string(end));
  fsm.watch_ended(end, timers.now() - opened);
}

/// Reads until the watch ends. `until` is when the server should have ended it.
asio::awaitable<WatchEnd> Reflector::State::consume(async::ByteStream& stream, bool initial, base::TimePoint until) {
  net::LineSplitter lines(kMaxLine);
  bool listing = initial;
  for (;;) {
    const base::TimePoint now = timers.now();
    if (now >= until) co_return WatchEnd::kSilent;
    auto chunk = co_await stream.read(std::min(until, now + (listing ? kLongestListSilence : kLongestSilence)));
    if (!chunk) {
      co_return chunk.error().kind == base::ErrorKind::kDeadline ? WatchEnd::kSilent : WatchEnd::kBroken;
    }
    if (chunk->empty()) co_return WatchEnd::kClosed;
    const bool fits = lines.feed(*chunk).has_value();
    while (const auto line = lines.next()) {
      const bool was_listing = listing;
      const std::optional<WatchEnd> end = take(*line, listing);
      if (end) co_return *end;
      // What was asked for was a list without haste; what goes on from here is a watch like any other.
      if (was_listing && !listing && config.watch_time > base::Duration::zero()) {
        until = std::min(until, timers.now() + config.watch_time + kOvertime);
      }
      co_await breathe();
    }
    if (!fits) co_return WatchEnd::kTooLong;
  }
}

/// Hands one line to the sink; the reason if it ends the watch. Clears `listing` when the initial list is complete.
std::optional<WatchEnd> Reflector::State::take(std::string_view line, bool& listing) {
  using Type = WatchEvent::Type;
  if (line.empty()) return std::nullopt;
  auto event = parse_watch_line(line);
  if (!event) {
    log::warn("a line of the watch is no event", {{"resource", config.name}, {"bytes", line.size()}});
    return WatchEnd::kUnreadable;
  }
  last_event.set(std::chrono::duration<double>(timers.wall().time_since_epoch()).count());
  switch (event->type) {
    case Type::kError:
      if (event->code == 410) return WatchEnd::kGone;
      log::warn("the API server ended the watch",
                {{"resource", config.name}, {"code", event->code}, {"message", event->message}});
      return WatchEnd::kError;
    case Type::kBookmark:
      if (fsm.bookmark_seen(std::move(event->resource_version), event->ends_initial_list)) {
        listing = false;
        watching = true;
        list_ended();
      }
      return std::nullopt;
    case Type::kDeleted: sink.on_deleted(event->object); break;
    case Type::kAdded:
    case Type::kModified: sink.on_object(event->object); break;
  }
  fsm.object_seen(std::move(event->resource_version));
  return std::nullopt;
}

Reflector::Reflector(ReflectorConfig config, KubeApi& api, ReflectorSink& sink, async::Timers& timers,
                     base::Random& random, base::Metrics& metrics)
    : state_(std::make_unique<State>(std::move(config), api, sink, timers, random, metrics)) {}

Reflector::~Reflector() = default;

async::Loop Reflector::run() {
  State& state = *state_;
  for (;;) {
    ReflectorFsm::Step step = state.fsm.next();
    if (const auto* wait = std::get_if<ReflectorFsm::Wait>(&step)) {
      co_await state.timers.sleep_for(wait->how_long);
    } else if (auto* page = std::get_if<ReflectorFsm::ListPage>(&step)) {
      co_await state.list_page(std::move(*page));
    } else {
      co_await state.watch(std::move(std::get<ReflectorFsm::OpenWatch>(step)));
    }
  }
}

bool Reflector::synced() const {
  const State& state = *state_;
  if (!state.ever_listed) return false;
  return state.watching || state.timers.now() - state.last_watched <= kAMoment;
}

}  // namespace spillway::kube
