// Keys that are due at a time: each key at most once, at its earliest time. Pure; takes `now`; one owner, one thread.
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "vk-provider/base/clock.hpp"

namespace spillway::core {

template <class Key>
class WorkQueue {
 public:
  /// Asks for `key` at `when`; an earlier time that stands already wins.
  void add(const Key& key, base::TimePoint when) {
    const auto [it, is_new] = due_.try_emplace(key, when);
    if (!is_new) {
      if (it->second <= when) return;
      order_.erase({it->second, key});
      it->second = when;
    }
    order_.emplace(when, key);
  }

  void remove(const Key& key) {
    const auto it = due_.find(key);
    if (it == due_.end()) return;
    order_.erase({it->second, key});
    due_.erase(it);
  }

  /// The earliest key that is due, taken out.
  std::optional<Key> take(base::TimePoint now) {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    Key key = order_.begin()->second;
    order_.erase(order_.begin());
    due_.erase(key);
    return key;
  }

  std::optional<base::TimePoint> next_due() const {
    if (order_.empty()) return std::nullopt;
    return order_.begin()->first;
  }

  size_t size() const { return due_.size(); }

 private:
  std::unordered_map<Key, base::TimePoint> due_;
  std::set<std::pair<base::TimePoint, Key>> order_;
};

}  // namespace spillway::core
