#include "test/support/api_model/watch.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "test/support/api_model/list.hpp"

namespace spillway::test::api_model {
namespace {

using base::ErrorKind;

// As the server's cacher sends them: each minute, and shortly before the end.
constexpr base::Duration kBookmarkEvery = std::chrono::minutes(1);
constexpr base::Duration kBookmarkBeforeEnd = std::chrono::seconds(2);
constexpr std::int64_t kDefaultSeconds = 1800;

std::int64_t number(std::string_view text, std::int64_t otherwise) {
  std::int64_t out = 0;
  return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc() ? out : otherwise;
}

}  // namespace

class WatchStream final : public async::ByteStream {
 public:
  WatchStream(Watches& watches, const Target& target, Selector selector, bool metadata_only)
      : watches_(watches),
        resource_(*target.resource),
        selector_(std::move(selector)),
        metadata_only_(metadata_only),
        bookmarks_(target.parameter("allowWatchBookmarks") == "true"),
        waiter_(watches.timers_.make_waiter()) {
    const base::TimePoint now = watches.timers_.now();
    ends_ = now + std::chrono::seconds(number(target.parameter("timeoutSeconds"), kDefaultSeconds));
    begin(target);
    schedule_bookmark(now);
    watches_.open_.push_back(this);
  }
  ~WatchStream() override { std::erase(watches_.open_, this); }

  void take(const Change& change) {
    if (change.resource != &resource_ || change.version <= since_ || over_) return;
    const bool before = change.before && selector_.matches(*change.before);
    const bool after = change.after && selector_.matches(*change.after);
    if (after) return push(before ? "MODIFIED" : "ADDED", change.shown);
    if (!before) return;
    // One that is no longer asked for is shown as it was, with the version at which it left.
    push("DELETED", change.after ? std::make_shared<const Object>(resource_, change.before->parts(), change.version)
                                 : change.shown);
  }

  void end() {
    ends_ = watches_.timers_.now();
    over_ = true;
    waiter_->wake();
  }

  async::Task<std::string> read(base::Deadline deadline) override {
    for (;;) {
      const base::TimePoint now = watches_.timers_.now();
      if (!lines_.empty() && lines_.front().due <= now) co_return next_line();
      if (now >= ends_) co_return std::string();
      if (now >= next_bookmark_) {
        schedule_bookmark(now);
        // A bookmark promises that everything up to its version was shown.
        if (lines_.empty()) co_return bookmark("");
        continue;
      }
      if (now >= deadline) co_return base::fail(ErrorKind::kDeadline, "nothing came through the watch in time");
      base::TimePoint wake = std::min({deadline, ends_, next_bookmark_});
      if (!lines_.empty()) wake = std::min(wake, lines_.front().due);
      co_await waiter_->wait_until(wake);
    }
  }
  async::Task<void> write(std::string, base::Deadline) override {
    co_return base::fail(ErrorKind::kUnsupported, "a watch");
  }
  async::Task<void> close_write(base::Deadline) override { co_return base::fail(ErrorKind::kUnsupported, "a watch"); }

 private:
  struct Line {
    base::TimePoint due;
    const char* type;  // null: `text` is the line
    ObjectPtr object;
    std::string text;
  };

  void begin(const Target& target) {
    Store& store = watches_.store_;
    const auto wanted = static_cast<std::uint64_t>(number(target.parameter("resourceVersion"), 0));
    const bool initial = target.parameter("sendInitialEvents") == "true";
    if (initial || wanted == 0) {
      for (const auto& [key, object] : store.all(resource_)) {
        if (selector_.matches(*object)) push("ADDED", object);
      }
      since_ = store.version();
      if (initial && bookmarks_) push_text(bookmark(R"(,"annotations":{"k8s.io/initial-events-end":"true"})"));
      return;
    }
    since_ = wanted;
    if (wanted < store.oldest_version(resource_)) {
      const ApiError error =
          expired(fmt::format("too old resource version: {} ({})", wanted, store.oldest_version(resource_)));
      push_text(R"({"type":"ERROR","object":)" + encode(error) + "}\n");
      return end();
    }
    store.replay(resource_, wanted, [this](const Change& change) { take(change); });
  }

  void push(const char* type, ObjectPtr object) {
    const base::Duration lag = watches_.lag_ ? watches_.lag_() : base::Duration(0);
    push_line({watches_.timers_.now() + lag, type, std::move(object), {}});
  }
  void push_text(std::string text) { push_line({watches_.timers_.now(), nullptr, nullptr, std::move(text)}); }
  void push_line(Line line) {
    // One connection: nothing overtakes.
    if (!lines_.empty()) line.due = std::max(line.due, lines_.back().due);
    lines_.push_back(std::move(line));
    waiter_->wake();
  }

  std::string next_line() {
    Line line = std::move(lines_.front());
    lines_.pop_front();
    if (line.type == nullptr) return std::move(line.text);
    std::string out = R"({"type":")";
    out.append(line.type).append(R"(","object":)");
    out += metadata_only_ ? line.object->metadata_text() : line.object->text();
    return out += "}\n";
  }

  std::string bookmark(std::string_view more_metadata) const {
    return fmt::format(
        R"({{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{}"{}}}}}}})"
        "\n",
        metadata_only_ ? "PartialObjectMetadata" : resource_.kind,
        metadata_only_ ? "meta.k8s.io/v1" : resource_.api_version, watches_.store_.version(), more_metadata);
  }

  void schedule_bookmark(base::TimePoint now) {
    next_bookmark_ = base::TimePoint::max();
    if (!bookmarks_) return;
    const base::TimePoint before_end = ends_ - kBookmarkBeforeEnd;
    if (before_end > now) next_bookmark_ = std::min(now + kBookmarkEvery, before_end);
  }

  Watches& watches_;
  const Resource& resource_;
  Selector selector_;
  bool metadata_only_;
  bool bookmarks_;
  bool over_ = false;
  std::uint64_t since_ = 0;
  base::TimePoint ends_;
  base::TimePoint next_bookmark_;
  std::unique_ptr<async::Waiter> waiter_;
  std::deque<Line> lines_;
};

Watches::Watches(Store& store, async::Timers& timers, std::function<base::Duration()> lag)
    : store_(store), timers_(timers), lag_(std::move(lag)) {
  store_.observe([this](const Change& change) {
    for (WatchStream* stream : open_) stream->take(change);
  });
}

Outcome<async::ByteStreamPtr> Watches::open(const Target& target, bool metadata_only) {
  if (auto fits = check_list_options(target, true); !fits) return refuse(std::move(fits.error()));
  auto selector = Selector::parse(target);
  if (!selector) return refuse(std::move(selector.error()));
  return std::make_unique<WatchStream>(*this, target, std::move(*selector), metadata_only);
}

void Watches::end_all() {
  for (WatchStream* stream : open_) stream->end();
}

}  // namespace spillway::test::api_model
