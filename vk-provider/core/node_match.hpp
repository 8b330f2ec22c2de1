// Whether a pod may stand on a node: taints, nodeSelector and required node affinity, as the scheduler reads them.
//
// Pure. Rules: k8s.io/component-helpers/scheduling/corev1 (tolerations, nodeaffinity), v1.36.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vk-provider/model/home.hpp"

namespace spillway::core {

using NodeLabels = std::map<std::string, std::string>;

bool tolerates(const model::Toleration& toleration, const model::Taint& taint);
bool tolerates(const std::vector<model::Toleration>& tolerations, const model::Taint& taint);
/// Every NoSchedule and NoExecute taint; PreferNoSchedule keeps nobody away.
bool tolerates_all(const std::vector<model::Toleration>& tolerations, const std::vector<model::Taint>& taints);

/// Every entry of the selector stands among the labels.
bool selects(const NodeLabels& selector, const NodeLabels& labels);
/// A label selector with expressions: all of them hold. An empty one selects everything.
bool selects(const model::NodeTerm& selector, const NodeLabels& labels);
/// A key that both name with different values: no node can fit both.
bool contradict(const NodeLabels& a, const NodeLabels& b);
/// nodeSelector and required node affinity of the pod.
bool fits_node(const model::HomePod& pod, const std::string& node_name, const NodeLabels& labels);

}  // namespace spillway::core
