// `spillway explain`: says of the pods in manifests what the daemon would say of them, without a cluster.
//
// Pure; main's thread. The verdict is core/refusal's. Knows what providers can honour, not what they sell now.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/core/refusal.hpp"
#include "vk-provider/daemon/cli_manifest.hpp"
#include "vk-provider/daemon/cli_output.hpp"
#include "vk-provider/daemon/config.hpp"
#include "vk-provider/model/node_profile.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::daemon {

/// What pods are judged by.
struct ExplainBasis {
  ExplainBasis() = default;
  std::vector<core::ProviderAbility> providers;
  std::vector<model::NodeProfile> nodes;  // a pod that names none of them is judged by each; may be empty
};
/// The configured providers and nodes.
ExplainBasis explain_basis(const Config& config, const provider::Registry& registry);
/// Every type of provider that is built in, under its own name.
ExplainBasis explain_basis(const provider::Registry& registry);

struct ExplainedPod {
  ExplainedPod() = default;
  ManifestObject object;
  std::string path;
  core::Requirements needs;
  core::Verdict verdict;
  std::string reason;   // UnsupportedPodSpec, InvalidImageName; empty if it can run
  std::string message;  // the daemon's own; empty if it can run
};

struct ExplainReport {
  ExplainReport() = default;
  std::vector<Fault> faults;  // of the manifests; then there is nothing else
  std::vector<ExplainedPod> pods;
  std::vector<ManifestObject> others;
  int exit_code = kExitDone;
};

struct ManifestText {
  std::string file;
  std::string text;
};

ExplainReport explain(const std::vector<ManifestText>& manifests, const ExplainBasis& basis);

std::string to_text(const ExplainReport& report, Output output);

}  // namespace spillway::daemon
