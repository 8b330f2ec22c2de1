// Which GPUs of a host an instance gets: whole indices, each held by at most one instance.
//
// Pure. The truth about what is held are the labels of the sandboxes that exist on the host; host.cpp reads them under
// its lock before each assignment.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::providers::docker {

/// The lowest `wanted` free indices of 0..total-1; empty if there are too few.
std::optional<std::vector<int>> choose_gpus(int total, const std::set<int>& held, int wanted);

/// `0,3`; an empty text for none.
std::string to_gpu_label(const std::vector<int>& gpus);
/// Empty if the label is not a list of indices: then nobody knows what is held.
std::optional<std::vector<int>> from_gpu_label(std::string_view text);

}  // namespace spillway::providers::docker
