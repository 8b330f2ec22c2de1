// The answer of /stats/summary. Pure; written straight into the text.
#pragma once

#include <optional>
#include <string>

#include "vk-provider/api/measures.hpp"

namespace spillway::api {

/// JSON as of k8s.io/kubelet/pkg/apis/stats/v1alpha1; what is not known is left out. `node_started`: since when the
/// node's totals are counted.
std::string to_stats_summary(const NodeMeasure& node, base::WallTime node_started);

}  // namespace spillway::api
