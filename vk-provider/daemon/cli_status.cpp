#include "vk-provider/daemon/cli_status.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/node_client.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::daemon {
namespace {

constexpr base::Duration kCallDeadline = std::chrono::seconds(15);

bool is_usual(const kube::NodeCondition& c) {
  const bool wanted = c.type == "Ready" || c.type == model::kConditionProvidersReachable;
  return c.status == (wanted ? "True" : "False");
}

/// Conditions of others (a problem detector's) have meanings of their own.
bool is_known(const std::string& type) {
  static constexpr std::array<std::string_view, 6> kKnown = {
      "Ready",       "MemoryPressure",     "DiskPressure",
      "PIDPressure", "NetworkUnavailable", model::kConditionProvidersReachable};
  return std::ranges::find(kKnown, type) != kKnown.end();
}

async::Task<LeaseReport> read_lease(Surroundings in, InstallationConfig installation) {
  LeaseReport out;
  kube::Client client(*in.api);
  const auto lease =
      co_await client.get_lease(installation.ns, "spillway-" + installation.name, in.timers->now() + kCallDeadline);
  if (!lease) {
    if (lease.error().kind == base::ErrorKind::kUnavailable || lease.error().kind == base::ErrorKind::kDeadline) {
      co_return base::fail(lease.error());
    }
    const bool absent = lease.error().kind == base::ErrorKind::kNotFound;
    out.problem = absent ? "no daemon of this installation has ever run here" : lease.error().message;
    co_return out;
  }
  out.holder = lease->holder;
  if (lease->renew_time) {
    out.age = in.timers->wall() - *lease->renew_time;
    out.expired = *out.age > lease->duration;
  }
  co_return out;
}

boost::asio::awaitable<NodeReport> read_node(Surroundings in, std::string name, std::string installation) {
  NodeReport out;
  out.name = name;
  kube::NodeClient client(*in.api);
  const auto node = co_await client.get(name, in.timers->now() + kCallDeadline);
  if (!node) {
    const bool absent = node.error().kind == base::ErrorKind::kNotFound;
    out.problem = absent ? "not registered; is the daemon running?" : node.error().message;
    co_return out;
  }
  const auto owner = node->labels.find(std::string(model::kLabelInstallation));
  if (owner == node->labels.end() || owner->second != installation) {
    out.problem = "a Node of this name belongs to somebody else: its label " + std::string(model::kLabelInstallation) +
                  " is not " + installation;
  }
  for (const kube::NodeCondition& condition : node->conditions) {
    if (condition.type == "Ready") out.ready = condition.status;
    if (is_known(condition.type) && !is_usual(condition)) out.unusual.push_back(condition);
  }
  co_return out;
}

/// Counts the pods of a node, page by page, and notes those that do not run.
async::Task<void> read_pods(Surroundings in, NodeReport& node, std::vector<PodReport>& waiting) {
  const std::string base =
      "/api/v1/pods?limit=500&fieldSelector=" + net::encode_query_value("spec.nodeName=" + node.name);
  std::string next;
  do {
    kube::KubeRequest request;
    request.target = base + (next.empty() ? "" : "&continue=" + net::encode_query_value(next));
    const auto page = co_await in.api->send(std::move(request), in.timers->now() + kCallDeadline);
    if (!page) co_return base::fail(page.error());
    kube::JsonArray items(kube::json_member(page->body, "items"));
    while (items.next()) {
      const auto pod = kube::decode_pod(items.value(), [](const base::PodUid&) { return true; });
      if (!pod) continue;
      const std::string stage = stage_of(pod->observed);
      ++node.pods_by_stage[stage];
      if (stage == "running" || stage == "finished") continue;
      PodReport& report = waiting.emplace_back();
      report.pod = pod->key.to_string();
      report.node = node.name;
      report.stage = stage;
      report.why = why_of(pod->observed);
    }
    if (items.failed()) co_return base::fail(base::ErrorKind::kUnavailable, "the list of pods was cut");
    next = kube::json_string_or_empty(kube::json_member(kube::json_member(page->body, "metadata"), "continue"));
  } while (!next.empty());
  co_return base::Result<void>();
}

boost::asio::awaitable<ProviderReport> read_provider(Surroundings in, provider::Provider* provider,
                                                     std::string prefix) {
  ProviderReport out;
  out.name = provider->info().name.str();
  out.type = provider->info().type;
  const auto offers = co_await provider->list_offers(in.timers->now() + kCallDeadline);
  if (!offers) {
    out.problem = offers.error().message;
    co_return out;
  }
  out.offers = offers->size();
  for (const model::Offer& offer : *offers) {
    if (!offer.available) continue;
    ++out.available;
    if (offer.price_per_hour && (!out.cheapest || *offer.price_per_hour < *out.cheapest)) {
      out.cheapest = offer.price_per_hour;
    }
  }
  if (prefix.empty()) co_return out;
  const auto owned = co_await provider->list_owned(prefix, in.timers->now() + kCallDeadline);
  if (!owned) {
    out.problem = owned.error().message;
    co_return out;
  }
  if (!owned->complete) out.incomplete_why = owned->incomplete_why.empty() ? "no reason given" : owned->incomplete_why;
  for (const model::Instance& instance : owned->instances) {
    ++out.instances_by_state[std::string(to_string(instance.state))];
    if (instance.price_per_hour) out.per_hour = out.per_hour.value_or(base::Money()) + *instance.price_per_hour;
  }
  co_return out;
}

}  // namespace

std::string stage_of(const model::ObservedPod& pod) {
  using model::PodPhase;
  using model::StateAnnotation;
  if (pod.deletion_timestamp) return "stopping";
  if (model::is_terminal(pod.status.phase)) return "finished";
  if (pod.state.kind == StateAnnotation::Kind::kUnreadable) return "unreadable";
  if (pod.status.phase == PodPhase::kRunning) return "running";
  if (pod.state.kind != StateAnnotation::Kind::kRecord) return "waiting";
  return pod.state.record->instance.empty() ? "creating" : "booting";
}

std::string why_of(const model::ObservedPod& pod) {
  if (pod.state.kind == model::StateAnnotation::Kind::kUnreadable) return pod.state.problem;
  for (const model::ContainerStatus& container : pod.status.containers) {
    if (container.state.kind != model::ContainerStatusState::Kind::kWaiting) continue;
    const std::string& text = container.state.message;
    return container.state.reason + (text.empty() ? "" : ": " + text);
  }
  if (!pod.status.reason.empty() || !pod.status.message.empty()) {
    return pod.status.reason + (pod.status.message.empty() ? "" : ": " + pod.status.message);
  }
  return pod.status.start_time || pod.deletion_timestamp ? "" : "no daemon has looked at it yet";
}

boost::asio::awaitable<StatusReport> gather_status(Surroundings in, StatusOptions options) {
  StatusReport out;
  const auto failed = [&out](const base::Error& error) {
    out.exit_code = kExitFailed;
    out.problem = "the API server cannot be asked: " + error.message;
  };
  std::string prefix;
  const auto cluster_id =
      co_await find_cluster_id(options.installation.cluster_id, *in.api, in.timers->now() + kCallDeadline);
  if (cluster_id) prefix = make_ownership(*cluster_id, options.installation.name).prefix();
  auto lease = cluster_id ? co_await read_lease(in, options.installation) : base::fail(cluster_id.error());
  if (!lease) failed(lease.error());
  if (lease) out.lease = std::move(*lease);
  for (const std::string& name : options.nodes) {
    if (!out.problem.empty()) break;
    out.nodes.push_back(co_await read_node(in, name, options.installation.name));
    const auto counted = co_await read_pods(in, out.nodes.back(), out.waiting);
    if (!counted) failed(counted.error());
  }
  // Also without the API server: that clouds go on billing is then the more important.
  for (provider::Provider* provider : in.providers) {
    out.providers.push_back(co_await read_provider(in, provider, prefix));
  }
  co_return out;
}

}  // namespace spillway::daemon
