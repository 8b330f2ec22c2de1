// Answers that somebody else gave, kept for a while. Equal questions that come at one time are asked once.
//
// Owned by who asks; reactor thread only. It is bounded: of the answers that nobody waits for, the one that ends first
// makes room. An error is not kept, but those who waited for it get it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "vk-provider/async/semaphore.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::api {

template <class T>
class AnswerCache {
 public:
  using Ask = std::function<async::Task<T>()>;
  /// For how long an answer holds.
  using Life = std::function<base::Duration(const T&)>;

  AnswerCache(async::Timers& timers, size_t max, Life life) : timers_(timers), max_(max), life_(std::move(life)) {}

  /// `ask` is called only if no answer is at hand.
  async::Task<T> get(std::string key, Ask ask, base::Deadline deadline) {
    const std::shared_ptr<Entry> entry = entry_of(key);
    const std::uint64_t answers = entry->answers;
    const async::Semaphore::Permit permit = co_await entry->turn.acquire(deadline);
    if (!permit) co_return base::fail(base::ErrorKind::kDeadline, "no answer came in time");
    // One that came while we waited is ours, whatever it is.
    const bool fresh = entry->answers != answers || timers_.now() < entry->good_until;
    if (fresh) co_return *entry->answer;
    base::Result<T> answer = co_await ask();
    entry->good_until = answer ? timers_.now() + life_(*answer) : base::TimePoint{};
    entry->answer = answer;
    ++entry->answers;
    co_return answer;
  }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    explicit Entry(async::Timers& timers) : turn(timers, 1) {}
    async::Semaphore turn;  // of those who ask at one time one asks, and the others take what came
    std::uint64_t answers = 0;
    std::optional<base::Result<T>> answer;
    base::TimePoint good_until{};
  };
  using Entries = std::unordered_map<std::string, std::shared_ptr<Entry>>;

  std::shared_ptr<Entry> entry_of(const std::string& key) {
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    if (entries_.size() >= max_) make_room();
    auto entry = std::make_shared<Entry>(timers_);
    // With as many questions under way as there is room, one more is asked and forgotten.
    if (entries_.size() < max_) entries_.emplace(key, entry);
    return entry;
  }

  void make_room() {
    auto first = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.use_count() > 1) continue;
      if (first == entries_.end() || it->second->good_until < first->second->good_until) first = it;
    }
    if (first != entries_.end()) entries_.erase(first);
  }

  async::Timers& timers_;
  size_t max_;
  Life life_;
  Entries entries_;
};

}  // namespace spillway::api
