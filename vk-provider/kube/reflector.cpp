#include "vk-provider/kube/reflector.hpp"

#include <optional>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "vk-provider/base/log.hpp"
#include "vk-provider/kube/http_kube_api.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/reflector_fsm.hpp"
#include "vk-provider/net/line_splitter.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace log = base::log;

namespace {

constexpr base::Duration kOpenDeadline = std::chrono::seconds(30);
constexpr base::Duration kPageDeadline = std::chrono::seconds(60);
constexpr base::Duration kSilentAfter = std::chrono::seconds(2);  // beyond the watch's own time
constexpr base::Duration kShortestWatch = std::chrono::minutes(5);
constexpr std::size_t kMaxLine = 8 * 1024 * 1024;
constexpr int kYieldEvery = 50;
constexpr double kPauseJitter = 0.3;

std::string_view metadata_version(std::string_view object) { return json_member(json_member(object, "metadata"), "resourceVersion"); }

/// A Status object in the stream means what it would mean as an answer.
base::Error error_of_event(std::string_view status) {
  net::HttpResponse response;
  response.status = static_cast<int>(json_int(json_member(status, "code")).value_or(500));
  response.body = status;
  return error_of(net::Method::kGet, response);
}

bool ends_initial_events(std::string_view object) {
  const std::string_view annotations = json_member(json_member(object, "metadata"), "annotations");
  return json_string_or_empty(json_member(annotations, "k8s.io/initial-events-end")) == "true";
}

}  // namespace

struct Reflector::State {
  State(ReflectorConfig c, KubeApi& a, ReflectorSink& s, async::Timers& t, base::Random& r, base::Metrics& m)
      : config(std::move(c)), api(a), sink(s), timers(t), random(r), metrics(m),
        lists(m.counter("spillway_lists_total", "Complete lists of a collection.", {{"resource", config.name}})) {}

  std::string target(const std::string& query, base::Duration watch_time) const;
  base::Duration next_watch_time();
  boost::asio::awaitable<void> read_page();
  boost::asio::awaitable<void> read_stream(bool list);
  /// One line of a stream. An error ends the stream.
  base::Result<void> take_line(std::string_view line);
  boost::asio::awaitable<void> breathe();
  boost::asio::awaitable<void> pause_for(base::Duration d, const std::string& reason);
  void complaint(const base::Error& error);

  ReflectorConfig config;
  KubeApi& api;
  ReflectorSink& sink;
  async::Timers& timers;
  base::Random& random;
  base::Metrics& metrics;
  base::Counter& lists;
  ReflectorFsm fsm;
  bool synced = false;
  bool complained = false;
  int since_yield = 0;
};

Reflector::Reflector(ReflectorConfig config, KubeApi& api, ReflectorSink& sink, async::Timers& timers, base::Random& random,
                     base::Metrics& metrics)
    : state_(std::make_unique<State>(std::move(config), api, sink, timers, random, metrics)) {}

Reflector::~Reflector() = default;

bool Reflector::synced() const { return state_->synced; }

async::Loop Reflector::run() {
  for (;;) {
    switch (state_->fsm.ask()) {
      case ReflectorFsm::Ask::kPage: co_await state_->read_page(); break;
      case ReflectorFsm::Ask::kStreamedList: co_await state_->read_stream(true); break;
      case ReflectorFsm::Ask::kWatch: co_await state_->read_stream(false); break;
    }
  }
}

std::string Reflector::State::target(const std::string& query, base::Duration watch_time) const {
  std::string text = config.path + "?" + query;
  if (!config.field_selector.empty()) text += "&fieldSelector=" + net::encode_query_value(config.field_selector);
  if (watch_time > base::Duration::zero()) {
    text += "&timeoutSeconds=" + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(watch_time).count());
  }
  return text;
}

base::Duration Reflector::State::next_watch_time() {
  if (config.watch_time > base::Duration::zero()) return config.watch_time;
  return kShortestWatch + std::chrono::duration_cast<base::Duration>(random.unit() * kShortestWatch);
}

boost::asio::awaitable<void> Reflector::State::read_page() {
  KubeRequest request;
  request.target = target(fsm.query(), base::Duration::zero());
  auto page = co_await api.send(std::move(request), timers.now() + kPageDeadline);
  if (!page) {
    complaint(page.error());
    co_return co_await pause_for(fsm.failed(page.error()), "list_failed");
  }
  if (fsm.list_is_new()) sink.on_list_begin();
  JsonArray items(json_member(page->body, "items"));
  while (items.next()) {
    sink.on_object(items.value());
    co_await breathe();
  }
  if (items.failed()) {
    const base::Error cut(base::ErrorKind::kUnavailable, "a page of the list was cut");
    co_return co_await pause_for(fsm.failed(cut), "list_failed");
  }
  const std::string_view metadata = json_member(page->body, "metadata");
  fsm.page(json_string_or_empty(json_member(metadata, "resourceVersion")),
           json_string_or_empty(json_member(metadata, "continue")));
  if (fsm.listing()) co_return;
  lists.add();
  synced = true;
  sink.on_list_end();
}

boost::asio::awaitable<void> Reflector::State::read_stream(bool list) {
  const base::Duration watch_time = next_watch_time();
  KubeRequest request;
  request.target = target(fsm.query(), watch_time);
  auto stream = co_await api.watch(std::move(request), timers.now() + kOpenDeadline);
  if (!stream) {
    complaint(stream.error());
    co_return co_await pause_for(fsm.failed(stream.error()), "refused");
  }
  complained = false;
  synced = !list;
  if (list) sink.on_list_begin();
  net::LineSplitter lines(kMaxLine);
  for (;;) {
    auto bytes = co_await (*stream)->read(timers.now() + watch_time + kSilentAfter);
    if (!bytes) {
      const bool silent = bytes.error().kind == base::ErrorKind::kDeadline;
      synced = false;
      co_return co_await pause_for(fsm.ended(silent ? ReflectorFsm::End::kSilent : ReflectorFsm::End::kTorn), silent ? "silent" : "cut");
    }
    if (bytes->empty()) {
      const bool torn = !lines.rest().empty();
      co_return co_await pause_for(fsm.ended(torn ? ReflectorFsm::End::kTorn : ReflectorFsm::End::kClean), torn ? "cut" : "ended");
    }
    if (auto fed = lines.feed(*bytes); !fed) {
      log::error("a watch line is too long; listing again", {{"resource", config.name}, {"error", fed.error()}});
      co_return co_await pause_for(fsm.ended(ReflectorFsm::End::kTooLong), "too_long");
    }
    while (const auto line = lines.next()) {
      if (auto taken = take_line(*line); !taken) {
        synced = false;
        if (taken.error().kind == base::ErrorKind::kInternal) {
          co_return co_await pause_for(fsm.ended(ReflectorFsm::End::kTorn), "torn");
        }
        if (taken.error().kind != base::ErrorKind::kGone) complaint(taken.error());
        co_return co_await pause_for(fsm.failed(taken.error()), std::string(to_string(taken.error().kind)));
      }
      co_await breathe();
    }
  }
}

base::Result<void> Reflector::State::take_line(std::string_view line) {
  std::string type;
  std::string_view object;
  JsonObject members(line);
  while (members.next()) {
    if (members.key() == "type") type = json_string_or_empty(members.value());
    if (members.key() == "object") object = members.value();
  }
  if (members.failed() || type.empty() || !json_is_object(object)) {
    return base::fail(base::ErrorKind::kInternal, "a line of the watch is no event");
  }
  if (type == "ERROR") return base::fail(error_of_event(object));
  const std::string version = json_string_or_empty(metadata_version(object));
  if (type == "BOOKMARK") {
    if (fsm.listing() && ends_initial_events(object)) {
      fsm.initial_events_end(version);
      lists.add();
      synced = true;
      sink.on_list_end();
    } else {
      fsm.seen(version);
    }
    return {};
  }
  if (type == "DELETED") {
    sink.on_deleted(object);
  } else {
    sink.on_object(object);
  }
  fsm.seen(version);
  return {};
}

/// Lets others run: a long list must not stop the lease.
boost::asio::awaitable<void> Reflector::State::breathe() {
  if (++since_yield < kYieldEvery) co_return;
  since_yield = 0;
  co_await boost::asio::post(co_await boost::asio::this_coro::executor, boost::asio::use_awaitable);
}

boost::asio::awaitable<void> Reflector::State::pause_for(base::Duration d, const std::string& reason) {
  metrics.counter("spillway_watch_restarts_total", "Watches and lists that ended, by reason.", {{"resource", config.name}, {"reason", reason}})
      .add();
  if (d > base::Duration::zero()) co_await timers.sleep_for(random.jittered(d, kPauseJitter));
}

void Reflector::State::complaint(const base::Error& error) {
  if (std::exchange(complained, true)) return;
  log::warn("the API server cannot be watched; trying again", {{"resource", config.name}, {"error", error}});
}

}  // namespace spillway::kube
