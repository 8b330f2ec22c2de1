// How good the chances are that beliefs tell, asked directly: probes of the traces at random gaps, and a question
// before each. Nothing is known at the beginning.
#pragma once

#include <string>
#include <vector>

#include "test/bench/placebench/data.hpp"
#include "test/bench/placebench/policy.hpp"

namespace spillway::placebench {

/// Gaps from a minute to twelve hours, all lengths alike on a logarithmic scale. Empty if the data has no set with
/// several pools of one node.
std::vector<Bet> calibrate(const Dataset& data, int rounds);
/// The same questions answered in the ways of others: the last outcome for ever; sold out for three minutes, then
/// there.
std::vector<Bet> calibrate_last_outcome(const Dataset& data, int rounds);
std::vector<Bet> calibrate_three_minutes(const Dataset& data, int rounds);

}  // namespace spillway::placebench
