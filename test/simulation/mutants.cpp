#include "test/simulation/mutants.hpp"

#include <algorithm>

namespace spillway::simulation {

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> table = [] {
    std::vector<Mutant> all = api_mutants();
    std::ranges::copy(provider_mutants(), std::back_inserter(all));
    return all;
  }();
  return table;
}

}  // namespace spillway::simulation
