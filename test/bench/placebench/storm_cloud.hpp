// The clouds of scenario G: quotas, rate limits, an outage, and one that answers 500 and buys all the same.
//
// Times are arguments; chance depends on the number of the call only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/bench/placebench/world.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/core/beliefs.hpp"
#include "vk-provider/model/offer.hpp"

namespace spillway::placebench {

inline constexpr int kStormProviders = 6;
inline constexpr int kStormDown = 1;    // for half an hour from the fifth minute
inline constexpr int kStormGhosts = 2;  // every second create is a 500, and every second of those has bought
inline constexpr int kStormScarce = 3;  // has little, and not always
inline constexpr int kStormMoving = 4;  // prices move between listing and create

class StormCloud {
 public:
  struct Answer {
    base::ErrorKind error{};
    bool ok = false;
    base::Duration retry_after{};
  };

  explicit StormCloud(std::uint64_t seed) : seed_(seed) {}

  std::vector<model::Offer> offers(int provider, Seconds t) const;
  /// Of at most `price`; the tag is the idempotency key.
  Answer create(int provider, int offer, const std::string& tag, base::Money price, Seconds t);
  /// Empty if the provider cannot say. What was bought lately may not be listed yet.
  std::optional<bool> holds(int provider, const std::string& tag, Seconds t) const;
  /// False if the provider does not answer. It is gone some seconds later.
  bool terminate(int provider, const std::string& tag, Seconds t);

  /// What is billed at t.
  std::int64_t burn(Seconds t) const;
  size_t alive(Seconds t) const;
  /// Instances of this pod that are billed at t.
  int alive_of(const std::string& pod, Seconds t) const;
  int calls() const { return calls_; }
  int rate_limited() const { return rate_limited_; }
  int ghosts() const { return ghosts_; }

 private:
  struct Instance {
    int provider = 0;
    int offer = 0;
    Seconds since = 0;
    Seconds gone = 0;  // 0: runs
    std::int64_t price = 0;
  };
  static bool down(int provider, Seconds t);
  std::int64_t price(int provider, int offer, Seconds t) const;
  int held(int provider, int offer, Seconds t) const;
  std::optional<Answer> refusal(int provider, int offer, base::Money price, Seconds t);

  std::uint64_t seed_;
  std::map<std::string, Instance> instances_;  // by tag: pod-attempt
  std::map<int, std::vector<Seconds>> recent_;
  int calls_ = 0;
  int rate_limited_ = 0;
  int ghosts_ = 0;
};

}  // namespace spillway::placebench
