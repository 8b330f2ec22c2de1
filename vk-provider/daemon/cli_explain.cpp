#include "vk-provider/daemon/cli_explain.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::daemon {
namespace {

core::ProviderAbility ability_of(std::string name, const std::string& type, const provider::Registry& registry) {
  core::ProviderAbility ability;
  ability.name = std::move(name);
  ability.capabilities = registry.at(type).capabilities;
  return ability;
}

/// By one node; by the first that takes it, if it names none.
void judge_by_nodes(const model::PodSpec& pod, const ExplainBasis& basis, ExplainedPod& out) {
  std::vector<std::vector<int>> ports;
  for (const model::NodeProfile& node : basis.nodes) {
    if (pod.node_name.empty() || pod.node_name.str() == node.name) ports.push_back(node.public_ports);
  }
  if (ports.empty()) ports.emplace_back();
  for (const std::vector<int>& published : ports) {
    out.needs = core::compute_requirements(pod, published);
    out.verdict = core::judge(pod, out.needs, basis.providers);
    auto refusal = core::refusal(pod, out.needs, basis.providers);
    out.reason = refusal ? model::to_string(refusal->why) : "";
    out.message = refusal ? std::move(refusal->message) : "";
    if (!refusal) return;
  }
}

void explain_pod(ManifestPod pod, const ExplainBasis& basis, ExplainReport& report) {
  auto decoded = kube::decode_pod(pod.json, {});
  if (!decoded) {
    Fault& fault = report.faults.emplace_back();
    fault.file = pod.object.file;
    fault.line = pod.object.line;
    fault.path = pod.path;
    fault.message = decoded.error().message;
    return;
  }
  ExplainedPod& out = report.pods.emplace_back();
  out.object = std::move(pod.object);
  out.path = std::move(pod.path);
  judge_by_nodes(*decoded->spec, basis, out);
  out.spec = decoded->spec;
}

}  // namespace

ExplainBasis explain_basis(const Config& config, const provider::Registry& registry) {
  ExplainBasis basis;
  basis.nodes = config.nodes;
  for (const ProviderConfig& provider : config.providers) {
    basis.providers.push_back(ability_of(provider.name.str(), provider.type, registry));
  }
  return basis;
}

ExplainBasis explain_basis(const provider::Registry& registry) {
  ExplainBasis basis;
  for (const auto& [type, entry] : registry) basis.providers.push_back(ability_of(type, type, registry));
  return basis;
}

ExplainReport explain(const std::vector<ManifestText>& manifests, const ExplainBasis& basis) {
  ExplainReport report;
  for (const ManifestText& one : manifests) {
    auto manifest = read_manifest(one.text, one.file);
    if (!manifest) {
      std::ranges::move(manifest.error(), std::back_inserter(report.faults));
      continue;
    }
    if (manifest->pods.empty()) {
      Fault& fault = report.faults.emplace_back();
      fault.file = one.file;
      fault.message = manifest->others.empty() ? "is empty" : "holds no pod and no workload";
    }
    for (ManifestPod& pod : manifest->pods) explain_pod(std::move(pod), basis, report);
    std::ranges::move(manifest->others, std::back_inserter(report.others));
  }
  if (std::ranges::any_of(report.pods, [](const ExplainedPod& pod) { return !pod.reason.empty(); })) {
    report.exit_code = kExitRefused;
  }
  if (!report.faults.empty()) {
    report.exit_code = kExitBadInput;
    report.pods.clear();
  }
  return report;
}

}  // namespace spillway::daemon
