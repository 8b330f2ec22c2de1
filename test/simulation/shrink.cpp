// Makes a plan smaller that breaks a rule, by leaving things out as long as it still does.
#include <algorithm>

#include "test/simulation/runner.hpp"

namespace spillway::simulation {
namespace {

class Shrinker {
 public:
  Shrinker(Plan plan, std::string rule, const Mutant* mutant, int tries)
      : plan_(std::move(plan)), rule_(std::move(rule)), mutant_(mutant), tries_(tries) {}

  Plan run() {
    for (bool smaller = true; smaller && tries_ > 0;) {
      smaller = drop_steps();
      smaller = drop_clouds() || smaller;
      smaller = lower_numbers() || smaller;
    }
    return plan_;
  }

 private:
  bool accept(const Plan& smaller) {
    if (tries_-- <= 0) return false;
    const auto violation = run_apart(smaller, mutant_);
    if (!violation || violation->rule != rule_) return false;
    plan_ = smaller;
    return true;
  }

  /// Halves first, then quarters, and so on down to single steps.
  bool drop_steps() {
    bool any = false;
    for (size_t size = std::max<size_t>(plan_.steps.size() / 2, 1);; size /= 2) {
      for (size_t from = 0; from < plan_.steps.size() && tries_ > 0;) {
        Plan smaller = plan_;
        const size_t to = std::min(from + size, smaller.steps.size());
        smaller.steps.erase(smaller.steps.begin() + static_cast<std::ptrdiff_t>(from),
                            smaller.steps.begin() + static_cast<std::ptrdiff_t>(to));
        if (accept(smaller)) {
          any = true;
        } else {
          from += size;
        }
      }
      if (size <= 1) return any;
    }
  }

  bool drop_clouds() {
    bool any = false;
    while (plan_.clouds.size() > 1 && tries_ > 0) {
      Plan smaller = plan_;
      smaller.clouds.pop_back();
      if (!accept(smaller)) break;
      any = true;
    }
    return any;
  }

  bool lower_numbers() {
    bool any = false;
    const Verb* const owner = find_verb("owner");
    for (size_t i = 0; i < plan_.steps.size() && tries_ > 0; ++i) {
      if (plan_.steps[i].verb != owner || plan_.steps[i].args[2] <= 1) continue;
      Plan smaller = plan_;
      smaller.steps[i].args[2] = 1;
      any = accept(smaller) || any;
    }
    if (plan_.settings.nodes > 1) {
      Plan smaller = plan_;
      smaller.settings.nodes = 1;
      any = accept(smaller) || any;
    }
    return any;
  }

  Plan plan_;
  std::string rule_;
  const Mutant* mutant_;
  int tries_;
};

}  // namespace

Plan shrink(Plan plan, const std::string& rule, const Mutant* mutant, int tries) {
  return Shrinker(std::move(plan), rule, mutant, tries).run();
}

}  // namespace spillway::simulation
