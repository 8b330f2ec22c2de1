// Whether to start a second instance because the first one is late, and what that may cost in all.
//
// Pure. The first to run wins; the other is ended. Only for pods that may exist twice for a while: nothing with an
// identity of its own (a volume that one may write, a fixed port).
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "vk-provider/core/selector.hpp"

namespace spillway::core {

struct HedgeQuestion {
  const Traits* first = nullptr;  // of the pool that was asked
  base::Duration waited{};        // since it accepted
  base::Money value_of_time;      // per hour
  /// The best offer in another failure domain (provider, or region of it), which can be bought now.
  const Candidate* second = nullptr;
  double second_start_hours = 0;
  double second_answer_hours = 0;
};

/// When the question comes up: so long after the first accepted. Nineteen of twenty have started by then.
base::Duration hedge_after(const Traits& first);

/// True if the time that is won is worth more than the second instance costs while both are paid.
bool worth_hedging(const HedgeQuestion& question);

/// Another failure domain: another provider, or another region.
bool other_domain(const model::Offer& first, const model::Offer& second);

/// One hedge for each twenty creates, of which at most five are saved up; and at most so much money per namespace and
/// day.
class HedgeBudget {
 public:
  explicit HedgeBudget(std::optional<base::Money> per_namespace_and_day) : cap_(per_namespace_and_day) {}

  void note_create();
  /// Takes a token and the money, or says no.
  bool take(const std::string& ns, base::Money at_most, base::TimePoint now);

 private:
  struct Spent {
    base::TimePoint at;
    std::string ns;
    base::Money money;
  };
  void forget(base::TimePoint now);

  std::optional<base::Money> cap_;
  double tokens_ = 1;
  std::deque<Spent> hedges_;
};

}  // namespace spillway::core
