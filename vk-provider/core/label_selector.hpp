// Selectors over labels, as objects of the API hold them (matchLabels, matchExpressions) and as people write them.
//
// Pure. Rules: k8s.io/apimachinery/pkg/labels and component-helpers/scheduling/corev1/nodeaffinity, v1.36.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/model/home.hpp"

namespace spillway::core {

/// Of the value under the requirement's key; null: there is no such label.
bool holds(const model::NodeRequirement& requirement, const std::string* value);

struct LabelSelector {
  LabelSelector() = default;
  bool nothing = false;  // selects nothing; otherwise one without requirements selects everything
  std::map<std::string, std::string> labels;
  std::vector<model::NodeRequirement> expressions;
};

bool matches(const LabelSelector& selector, const std::map<std::string, std::string>& labels);

/// `type!=virtual-kubelet,zone in (a, b),!old`. Empty if that is no selector.
std::optional<LabelSelector> parse_label_selector(std::string_view text);

}  // namespace spillway::core
