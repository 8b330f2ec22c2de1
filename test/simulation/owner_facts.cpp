#include "test/simulation/owner_facts.hpp"

#include <algorithm>
#include <utility>

namespace spillway::simulation {

void Failures::add(base::TimePoint made, base::TimePoint now) {
  if (before(made) < generations_.size()) return;
  Generation generation;
  generation.made = made;
  generation.failed = now;
  generations_.push_back(generation);
}

void Failures::note_launch(base::TimePoint made) {
  if (const size_t failed = before(made); failed > 0) ++generations_[failed - 1].launches;
}

size_t Failures::before(base::TimePoint made) const {
  const auto it = std::ranges::lower_bound(generations_, made, {}, &Generation::failed);
  return static_cast<size_t>(it - generations_.begin());
}

void Owners::begin_term(std::string daemon, base::TimePoint now) {
  daemon_ = std::move(daemon);
  term_began_ = now;
  for (auto& [key, owner] : owners_) {
    owner.crashed.clear();
    owner.refused.clear();
  }
}

void Owners::pod_made(const std::string& key, base::TimePoint now) {
  if (key.empty()) return;
  const auto [it, fresh] = owners_.try_emplace(key);
  if (fresh) it->second.first_pod = now;
}

OwnerFacts* Owners::find(const std::string& key) {
  const auto it = owners_.find(key);
  return it == owners_.end() ? nullptr : &it->second;
}

const OwnerFacts* Owners::find(const std::string& key) const {
  const auto it = owners_.find(key);
  return it == owners_.end() ? nullptr : &it->second;
}

}  // namespace spillway::simulation
