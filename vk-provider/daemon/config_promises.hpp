// Labels of a node are promises: which of them the profile's offer filter does not keep.
//
// Pure. A pod that selects `spillway.dev/gpu-model: H100` must never run on anything else, so such a label may stand
// on a node only if the filter admits exactly that. Labels that no filter can enforce are refused, too.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/model/node_profile.hpp"

namespace spillway::daemon {

struct BrokenPromise {
  BrokenPromise() = default;
  BrokenPromise(std::string l, std::string m) : label(std::move(l)), message(std::move(m)) {}
  std::string label;
  std::string message;  // what was found and what is allowed
};

std::vector<BrokenPromise> broken_promises(const model::NodeProfile& profile);

}  // namespace spillway::daemon
