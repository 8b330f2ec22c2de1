#include "vk-provider/kube/reflector_fsm.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/backoff.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

constexpr base::BackoffPolicy kBackoff{std::chrono::milliseconds(200), std::chrono::seconds(5)};
constexpr double kJitter = 0.3;
constexpr int kPageLimit = 250;
constexpr int kLeastPageLimit = 25;
constexpr int kStreamBreaksAllowed = 2;
constexpr std::chrono::seconds kShortestWatch{300};
constexpr std::chrono::seconds kWatchSpread{300};
// A server that ends watches faster than this, with nothing in them, is in trouble: no hurry to come back.
constexpr base::Duration kHasty = std::chrono::seconds(1);
constexpr base::Duration kSound = std::chrono::seconds(30);

/// After a restore from a backup our version may lie in the server's future; it would answer so for ever.
bool is_version_unknown(const base::Error& error) {
  return error.message.find("Too large resource version") != std::string::npos;
}

}  // namespace

std::string_view to_string(WatchEnd end) {
  switch (end) {
    case WatchEnd::kClosed: return "closed";
    case WatchEnd::kSilent: return "silent";
    case WatchEnd::kBroken: return "broken";
    case WatchEnd::kTooLong: return "too_long";
    case WatchEnd::kUnreadable: return "unreadable";
    case WatchEnd::kGone: return "gone";
    case WatchEnd::kError: return "error";
  }
  return "error";
}

ReflectorFsm::ReflectorFsm(base::Random& random, std::chrono::seconds watch_time)
    : random_(random), watch_time_(watch_time), page_limit_(kPageLimit) {}

ReflectorFsm::Step ReflectorFsm::next() {
  if (wait_) return *std::exchange(wait_, std::nullopt);
  const bool stream = !stream_refused_ && stream_breaks_ < kStreamBreaksAllowed;
  if (phase_ == Phase::kList && !stream) {
    ListPage page;
    page.continue_token = continue_token_;
    page.limit = page_limit_;
    return page;
  }
  OpenWatch watch;
  watch.initial = initial_open_ = phase_ == Phase::kList;
  if (!watch.initial) watch.resource_version = resource_version_;
  // An initial list takes what it takes, however short the watches are that follow.
  watch.timeout = watch_time_;
  if (watch.initial || watch_time_ == std::chrono::seconds::zero()) {
    watch.timeout = kShortestWatch + std::chrono::seconds(random_.next() % static_cast<unsigned>(kWatchSpread.count()));
  }
  progress_ = false;
  return watch;
}

void ReflectorFsm::page_read(std::string continue_token, std::string resource_version) {
  continue_token_ = std::move(continue_token);
  if (!continue_token_.empty()) return;
  resource_version_ = std::move(resource_version);
  list_complete();
}

void ReflectorFsm::page_failed(const base::Error& error) {
  if (error.kind == ErrorKind::kGone) {
    // The token has expired: the pages so far are of a state that the server no longer has.
    continue_token_.clear();
    if (failures_++ > 0) back_off();
    return;
  }
  // One of the causes of kInvalid is an answer that is too large.
  if (error.kind == ErrorKind::kInvalid) page_limit_ = std::max(kLeastPageLimit, page_limit_ / 2);
  back_off(&error);
}

void ReflectorFsm::watch_refused(const base::Error& error) {
  if (initial_open_) {
    if (error.kind == ErrorKind::kInvalid || error.kind == ErrorKind::kUnsupported) {
      stream_refused_ = true;
      return;
    }
    return initial_list_broke(&error);
  }
  if (error.kind == ErrorKind::kGone || error.kind == ErrorKind::kInvalid || is_version_unknown(error)) {
    list_again();
    if (failures_++ > 0 || error.kind != ErrorKind::kGone) back_off(&error);
    return;
  }
  back_off(&error);
}

void ReflectorFsm::object_seen(std::string resource_version) {
  if (initial_open_) return;  // the versions of an initial list are in no order
  resource_version_ = std::move(resource_version);
  progress_ = true;
  failures_ = 0;
}

bool ReflectorFsm::bookmark_seen(std::string resource_version, bool ends_initial_list) {
  if (initial_open_) {
    if (!ends_initial_list) return false;
    resource_version_ = std::move(resource_version);
    list_complete();
    return true;
  }
  object_seen(std::move(resource_version));
  return false;
}

void ReflectorFsm::watch_ended(WatchEnd end, base::Duration lived) {
  if (initial_open_) return initial_list_broke(nullptr);
  if (lived >= kSound) failures_ = 0;
  switch (end) {
    case WatchEnd::kSilent: return;
    case WatchEnd::kClosed:
      if (!progress_ && lived < kHasty) back_off();
      return;
    case WatchEnd::kBroken: return back_off();
    case WatchEnd::kTooLong: list_again(); return back_off();
    case WatchEnd::kGone:
      list_again();
      if (failures_++ > 0) back_off();
      return;
    case WatchEnd::kUnreadable:
    case WatchEnd::kError:
      // Once may be an accident of the way; from the same version again it is in the history itself.
      if (failures_ > 0) list_again();
      return back_off();
  }
}

void ReflectorFsm::list_again() {
  phase_ = Phase::kList;
  continue_token_.clear();
  stream_breaks_ = 0;
}

void ReflectorFsm::list_complete() {
  phase_ = Phase::kWatch;
  continue_token_.clear();
  stream_breaks_ = 0;
  initial_open_ = false;
  page_limit_ = kPageLimit;
}

void ReflectorFsm::initial_list_broke(const base::Error* error) {
  initial_open_ = false;
  ++stream_breaks_;
  back_off(error);
}

void ReflectorFsm::back_off(const base::Error* error) {
  ++failures_;
  Wait wait;
  wait.how_long = random_.jittered(base::backoff_delay(kBackoff, failures_), kJitter);
  if (error != nullptr) wait.how_long = base::heed_retry_after(wait.how_long, *error);
  wait_ = wait;
}

}  // namespace spillway::kube
