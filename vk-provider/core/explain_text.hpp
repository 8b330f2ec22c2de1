// A decision in words: the line of events and annotations, and what would change it.
//
// Pure. Names of offers and providers, prices and times; nothing of the pod but what it asked for.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/selector.hpp"

namespace spillway::core {

/// "offer X of provider Y at $1.23/h: expected cost $2.61, chance 70 %, starts in 2m16s; next: Y/Z lost by price"
std::string describe_choice(const Candidate& best, const std::vector<Candidate>& next);
/// "max-price 2.00 -> 2.49 admits offer X of provider Y"; the words are those of the annotations.
std::string describe(const NearMiss& miss, const Shape& shape, base::Now now);
/// "cooling until 2026-11-29T07:12:00Z"; empty for what is open.
std::string describe(const Opening& opening, base::Now now);

/// Dollars and cents, rounded, of what is expected and not paid.
std::string rounded_dollars(base::Money amount);
/// Whole per cent: `70 %`.
std::string per_cent(double share);
/// Whole seconds: `2m16s`.
std::string rounded(base::Duration d);

}  // namespace spillway::core
