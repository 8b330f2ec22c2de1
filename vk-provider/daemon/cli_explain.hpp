// `spillway explain`: says of the pods in manifests what the daemon would say of them, without a cluster.
//
// Pure; main's thread. The verdict is core/refusal's, the choice of an offer core/selector's. With a market it is what
// a daemon would do now that has learnt nothing yet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vk-provider/core/refusal.hpp"
#include "vk-provider/core/selector.hpp"
#include "vk-provider/daemon/cli_manifest.hpp"
#include "vk-provider/daemon/cli_market.hpp"
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
  model::PodSpecPtr spec;

  /// With a market: what would be bought, on the first node on which something would.
  struct DryRun {
    DryRun() = default;
    std::string node;
    core::Shape shape;
    core::Explanation all;
    base::Now now{};
  };
  std::optional<DryRun> dry_run;
};

struct ExplainReport {
  ExplainReport() = default;
  std::vector<Fault> faults;  // of the manifests; then there is nothing else
  std::vector<ExplainedPod> pods;
  std::vector<ManifestObject> others;
  std::vector<Market::Problem> unlisted;
  int exit_code = kExitDone;
};

struct ManifestText {
  std::string file;
  std::string text;
};

ExplainReport explain(const std::vector<ManifestText>& manifests, const ExplainBasis& basis);

/// Looks for an offer for each pod that can run. kExitRefused if nothing fits one of them and every provider was
/// listed.
void dry_run(ExplainReport& report, const ExplainBasis& basis, const Market& market);

std::string to_text(const ExplainReport& report, Output output);

}  // namespace spillway::daemon
