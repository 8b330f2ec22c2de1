// What a reflector does next: list or watch, from which version, after which wait.
//
// Pure but for the dice of jitter and watch length; owned by a Reflector. Tells nothing about the objects.
//
// The rules: a collection is listed once, as a stream if the server can (sendInitialEvents) and in pages otherwise; a
// watch that ends is resumed from the last version, without a list. Only a version that is too old (410, as a status
// or in the stream), one that the server does not know, or a line that cannot be read again leads to another list.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/base/random.hpp"

namespace spillway::kube {

/// How an open watch came to its end.
enum class WatchEnd : std::uint8_t {
  kClosed,      // the server ended it
  kSilent,      // it was to end or to say something by now, and did not
  kBroken,      // the connection broke
  kTooLong,     // a line is longer than any object can be
  kUnreadable,  // a line is no event
  kGone,        // ERROR 410: the version is too old
  kError,       // another ERROR
};
std::string_view to_string(WatchEnd end);

class ReflectorFsm {
 public:
  /// `watch_time` is how long a watch is to last; zero: 5 to 10 minutes, at random.
  ReflectorFsm(base::Random& random, std::chrono::seconds watch_time);

  struct ListPage {
    std::string continue_token;  // empty: the first page
    int limit = 0;
  };
  struct OpenWatch {
    std::string resource_version;
    bool initial = false;  // the stream begins with all objects, up to a bookmark that says so
    std::chrono::seconds timeout{0};
  };
  struct Wait {
    base::Duration how_long{0};
  };
  using Step = std::variant<ListPage, OpenWatch, Wait>;

  /// The step to take now; its outcome is reported before the next one is asked for.
  Step next();

  // Outcomes of ListPage. The list is complete when the token is empty.
  void page_read(std::string continue_token, std::string resource_version);
  void page_failed(const base::Error& error);

  // Outcomes of OpenWatch: not opened, or opened, fed and ended.
  void watch_refused(const base::Error& error);
  void object_seen(std::string resource_version);
  /// True if this ends the initial list.
  bool bookmark_seen(std::string resource_version, bool ends_initial_list);
  void watch_ended(WatchEnd end, base::Duration lived);

  /// Failures since something last came through a watch.
  int failures() const { return failures_; }

 private:
  enum class Phase : std::uint8_t { kList, kWatch };

  void list_again();
  void list_complete();
  void back_off(const base::Error* error = nullptr);
  void initial_list_broke(const base::Error* error);

  base::Random& random_;
  std::chrono::seconds watch_time_;
  Phase phase_ = Phase::kList;
  std::optional<Wait> wait_;
  std::string resource_version_;
  std::string continue_token_;
  int page_limit_;
  bool stream_refused_ = false;  // for good: the server cannot do it
  int stream_breaks_ = 0;        // of this list
  bool initial_open_ = false;    // the step that is under way is an initial stream, not yet complete
  bool progress_ = false;        // something came through the watch that is open
  int failures_ = 0;             // since a watch last got on
};

}  // namespace spillway::kube
