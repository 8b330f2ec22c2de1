// How `spillway status` looks: tables for people, JSON for programs.
#include "vk-provider/daemon/cli_status.hpp"
#include "vk-provider/daemon/config_values.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::daemon {
namespace {

constexpr std::size_t kMostWaiting = 20;  // rows; what is more is counted

std::string counts(const std::map<std::string, int>& by_word) {
  std::string out;
  for (const auto& [word, count] : by_word) {
    if (!out.empty()) out += ", ";
    out += std::to_string(count) + " " + word;
  }
  return out.empty() ? "none" : out;
}

std::string age_text(base::Duration age) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age);
  return seconds.count() < 0 ? "in the future (do the clocks agree?)" : format_duration(seconds) + " ago";
}

std::string lease_text(const LeaseReport& lease) {
  if (!lease.problem.empty()) return lease.problem;
  if (lease.holder.empty()) return "nobody; it was given back";
  std::string out = lease.holder;
  if (lease.age) out += ", renewed " + age_text(*lease.age);
  return lease.expired ? out + ": EXPIRED, no daemon is at work" : out;
}

std::string node_remark(const NodeReport& node) {
  std::string out = node.problem;
  for (const kube::NodeCondition& condition : node.unusual) {
    if (!out.empty()) out += "; ";
    out += condition.type + "=" + condition.status + " " + condition.reason;
    if (!condition.message.empty()) out += ": " + condition.message;
  }
  return out;
}

std::string node_ready(const NodeReport& node) { return node.ready.empty() ? "-" : node.ready; }

std::string money(const std::optional<base::Money>& value) { return value ? value->to_dollars() : "-"; }

std::string provider_remark(const ProviderReport& provider) {
  if (!provider.problem.empty()) return provider.problem;
  return provider.incomplete_why.empty() ? "" : "listing incomplete, there may be more: " + provider.incomplete_why;
}

std::string to_table(const StatusReport& report) {
  std::string out;
  if (!report.problem.empty()) out += report.problem + "\n\n";
  if (report.problem.empty()) {
    out += "Daemon: " + lease_text(report.lease) + "\n\n";
    Table nodes({"NODE", "READY", "PODS", "REMARK"});
    for (const NodeReport& node : report.nodes) {
      nodes.add({node.name, node_ready(node), counts(node.pods_by_stage), node_remark(node)});
    }
    out += nodes.to_text() + "\n";
  }
  Table providers({"PROVIDER", "TYPE", "REACHABLE", "OFFERS", "FROM $/H", "INSTANCES", "NOW $/H", "REMARK"});
  for (const ProviderReport& p : report.providers) {
    const bool reachable = p.problem.empty();
    providers.add({p.name, p.type, reachable ? "yes" : "NO",
                   std::to_string(p.available) + " of " + std::to_string(p.offers), money(p.cheapest),
                   reachable ? counts(p.instances_by_state) : "unknown", money(p.per_hour), provider_remark(p)});
  }
  out += providers.to_text();
  if (report.waiting.empty()) return out;
  Table waiting({"POD", "NODE", "STAGE", "WHY"});
  for (std::size_t i = 0; i < report.waiting.size() && i < kMostWaiting; ++i) {
    const PodReport& pod = report.waiting[i];
    waiting.add({pod.pod, pod.node, pod.stage, pod.why});
  }
  out += "\n" + waiting.to_text();
  if (report.waiting.size() > kMostWaiting) {
    out += "... and " + std::to_string(report.waiting.size() - kMostWaiting) + " more\n";
  }
  return out;
}

void write_counts(kube::JsonWriter& w, std::string_view key, const std::map<std::string, int>& by_word) {
  w.key(key).open_object();
  for (const auto& [word, count] : by_word) w.field_number(word, count);
  w.close_object();
}

void write_node(kube::JsonWriter& w, const NodeReport& node) {
  w.open_object().field("name", node.name).field_if("ready", node.ready).field_if("problem", node.problem);
  w.key("unusualConditions").open_array();
  for (const kube::NodeCondition& c : node.unusual) {
    w.open_object().field("type", c.type).field("status", c.status).field("reason", c.reason);
    w.field("message", c.message).close_object();
  }
  w.close_array();
  write_counts(w, "podsByStage", node.pods_by_stage);
  w.close_object();
}

void write_provider(kube::JsonWriter& w, const ProviderReport& p) {
  w.open_object().field("name", p.name).field("type", p.type).field_bool("reachable", p.problem.empty());
  w.field_if("problem", p.problem);
  w.field_number("offers", static_cast<std::int64_t>(p.offers));
  w.field_number("available", static_cast<std::int64_t>(p.available));
  if (p.cheapest) w.field("cheapestPerHour", p.cheapest->to_dollars());
  if (p.problem.empty()) {
    write_counts(w, "instancesByState", p.instances_by_state);
    w.field_bool("listingComplete", p.incomplete_why.empty()).field_if("incompleteWhy", p.incomplete_why);
    if (p.per_hour) w.field("instancesPerHour", p.per_hour->to_dollars());
  }
  w.close_object();
}

std::string to_json(const StatusReport& report) {
  kube::JsonWriter w;
  w.open_object().field_if("problem", report.problem);
  if (report.problem.empty()) {
    const LeaseReport& lease = report.lease;
    w.key("lease").open_object().field("holder", lease.holder).field_bool("expired", lease.expired);
    w.field_if("problem", lease.problem);
    if (lease.age) {
      w.field_number("renewedSecondsAgo", std::chrono::duration_cast<std::chrono::seconds>(*lease.age).count());
    }
    w.close_object();
  }
  w.key("nodes").open_array();
  for (const NodeReport& node : report.nodes) write_node(w, node);
  w.close_array().key("providers").open_array();
  for (const ProviderReport& p : report.providers) write_provider(w, p);
  w.close_array().key("notRunning").open_array();
  for (const PodReport& pod : report.waiting) {
    w.open_object().field("pod", pod.pod).field("node", pod.node).field("stage", pod.stage).field("why", pod.why);
    w.close_object();
  }
  w.close_array().close_object();
  return w.take() + "\n";
}

}  // namespace

std::string to_text(const StatusReport& report, Output output) {
  return output == Output::kJson ? to_json(report) : to_table(report);
}

}  // namespace spillway::daemon
