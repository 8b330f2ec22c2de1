// `spillway explain` with a market: what would be bought for each pod.
#include <algorithm>
#include <utility>

#include "vk-provider/daemon/cli_explain.hpp"

namespace spillway::daemon {
namespace {

/// The controller that the object's pods will have.
std::string owner_kind(const ExplainedPod& pod) {
  const std::string& kind = pod.object.kind;
  if (kind == "Pod") return pod.spec->owner.kind.str();
  if (kind == "Deployment") return "ReplicaSet";
  return kind == "CronJob" ? "Job" : kind;
}

ExplainedPod::DryRun look(const ExplainedPod& pod, const model::NodeProfile& node, core::Selector& selector,
                          base::Now now) {
  ExplainedPod::DryRun out;
  out.node = node.name;
  out.shape = core::make_shape(core::compute_requirements(*pod.spec, node.public_ports), node, owner_kind(pod));
  core::Query query;
  query.shape = &out.shape;
  out.all = selector.explain(query, now.steady);
  out.now = now;
  return out;
}

}  // namespace

void dry_run(ExplainReport& report, const ExplainBasis& basis, const Market& market) {
  const core::Beliefs nothing_learnt(market.book.pools());
  core::Selector selector(market.book, nothing_learnt);
  selector.set_abilities(basis.providers);
  report.unlisted = market.unlisted;
  for (ExplainedPod& pod : report.pods) {
    if (!pod.reason.empty()) continue;
    for (const model::NodeProfile& node : basis.nodes) {
      if (!pod.spec->node_name.empty() && pod.spec->node_name.str() != node.name) continue;
      if (pod.dry_run && pod.dry_run->all.decision.best) break;
      ExplainedPod::DryRun run = look(pod, node, selector, market.now);
      if (!pod.dry_run || run.all.decision.best) pod.dry_run = std::move(run);
    }
    const bool fits = !pod.dry_run || pod.dry_run->all.decision.best;
    if (!fits && market.unlisted.empty() && report.exit_code == kExitDone) report.exit_code = kExitRefused;
  }
}

}  // namespace spillway::daemon
