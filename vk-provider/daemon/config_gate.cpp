#include "vk-provider/daemon/config_gate.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "vk-provider/model/labels.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::daemon {
namespace {

using control::GateSettings;
using core::GateMode;
using core::OnBlind;
using model::GpuResource;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kMaxSlots = 1'000'000;
constexpr int kMaxPriority = 2'000'001'000;  // of system-node-critical

std::string_view resource_name(GpuResource resource) {
  return resource == GpuResource::kNvidia ? model::kResourceNvidiaGpu : model::kResourceAmdGpu;
}

/// As kube-state-metrics writes resources: `.` and `/` become `_`.
std::string series_name(GpuResource resource) {
  std::string name(resource_name(resource));
  std::ranges::replace_if(name, [](char c) { return c == '.' || c == '/'; }, '_');
  return name;
}

/// The text of a file that stands beside the configuration, unless its path is absolute.
std::string read_file(Section& section, std::string_view key) {
  const At at = section.get(key);
  std::string name;
  if (!section.reader().text(at, name, "the path of a file")) return {};
  const auto path = std::filesystem::path(section.reader().file()).parent_path() / name;
  std::ifstream stream(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.empty()) {
    section.reader().fault(at, "found no readable text in the file " + path.string() + "; allowed: a readable file");
  }
  return text;
}

PrometheusConfig read_prometheus(Reader& reader, const At& at) {
  PrometheusConfig out;
  Section section(reader, at);
  const At url = section.get("url");
  if (reader.text(url, out.url, "a URL such as http://prometheus.monitoring:9090")) {
    const auto parsed = net::parse_url(out.url);
    if (!parsed) reader.fault(url, "found " + describe(url.node) + " (" + parsed.error().message + "); allowed: a URL");
  }
  out.token = base::Secret(read_file(section, "tokenFile"));
  out.ca_pem = read_file(section, "caFile");
  section.duration("interval", seconds(1), minutes(1), out.poll.interval);
  section.duration("timeout", std::chrono::milliseconds(100), seconds(30), out.poll.timeout);
  section.duration("maxSampleAge", seconds(1), hours(1), out.poll.max_sample_age);
  section.finish();
  return out;
}

core::NodeLabels read_labels(Reader& reader, const At& at) {
  core::NodeLabels out;
  for (const auto& [key, value] : reader.entries(at, "a mapping of labels")) {
    std::string text;
    if (!reader.text(value, text, "text")) continue;
    if (!is_qualified_name(key) || !is_label_value(text)) {
      reader.fault(value, "found " + key + ": " + describe(value.node) + "; allowed: a label and its value");
    }
    out[key] = text;
  }
  return out;
}

void read_tolerations(Reader& reader, const At& at, std::vector<model::Toleration>& out) {
  if (!at.present) return;
  out.clear();
  for (const At& entry : reader.list(at, "a list of tolerations")) {
    Section section(reader, entry);
    model::Toleration& toleration = out.emplace_back();
    section.text("key", toleration.key, "the key of a taint");
    const At value = section.get("value");
    toleration.op = value.present ? model::Toleration::Operator::kEqual : model::Toleration::Operator::kExists;
    section.text("value", toleration.value, "the value of a taint; default: any");
    section.one_of<std::string>("effect", {{"NoSchedule", "NoSchedule"}, {"NoExecute", "NoExecute"}},
                                toleration.effect);
    section.finish();
  }
}

void read_slots(Section& section, std::string_view key, int min, std::int64_t& out) {
  int value = static_cast<int>(out);
  section.integer(key, min, kMaxSlots, value);
  out = value;
}

void read_rules(Section& section, core::GateRules& out) {
  section.boolean("crossCheck", out.cross_check);
  section.duration("openAfter", seconds(0), hours(1), out.open_after);
  section.duration("openLevelAfter", seconds(0), hours(1), out.open_level_after);
  section.duration("closeAfter", seconds(1), hours(24), out.close_after);
  section.duration("minOpen", seconds(1), hours(24), out.min_open);
  section.duration("minClosed", seconds(1), hours(24), out.min_closed);
  read_slots(section, "openBelow", 0, out.open_below);
  read_slots(section, "reserve", 0, out.reserve);
  const At close_at = section.get("closeAt");
  if (close_at.present) {
    std::int64_t slots = 0;
    read_slots(section, "closeAt", 1, slots);
    out.close_at = slots;
    // With less the gate would open again by what a drain home takes.
    if (slots < core::lowest_close_at(out)) {
      section.reader().fault(close_at, "found " + describe(close_at.node) + "; allowed: at least " +
                                           std::to_string(core::lowest_close_at(out)) + " (openBelow + reserve + 1)");
    }
  }
  section.boolean("allowNoHome", out.allow_no_home);
  section.one_of<OnBlind>("onBlind", {{"Hold", OnBlind::kHold}, {"Open", OnBlind::kOpen}, {"Close", OnBlind::kClose}},
                          out.on_blind);
  section.duration("holdFor", seconds(1), hours(24), out.hold_for);
}

/// How pods that left are brought home.
void read_drain(Reader& reader, const At& at, core::DrainRules& out) {
  using core::DrainMode;
  Section section(reader, at);
  section.one_of<DrainMode>(
      "mode", {{"off", DrainMode::kOff}, {"evict", DrainMode::kEvict}, {"surge", DrainMode::kSurge}}, out.mode);
  section.integer("maxConcurrent", 1, 100, out.max_concurrent);
  section.duration("interval", seconds(0), hours(24), out.interval);
  section.duration("minAge", seconds(0), hours(24 * 7), out.min_age);
  // A pod that was taken from its ReplicaSet goes back after half an hour, whatever stands here.
  section.duration("replacementTimeout", seconds(1), minutes(30), out.replacement_timeout);
  section.duration("stallPause", seconds(0), hours(24), out.stall_pause);
  section.boolean("allowWithoutPDB", out.allow_without_pdb);
  section.boolean("jobs", out.jobs);
  section.finish();
}

void read_nodes(Section& section, const Config& read, std::vector<std::string>& taken, core::HomeClass& out) {
  std::vector<std::string> known;
  for (const model::NodeProfile& node : read.nodes) known.push_back(node.name);
  const At at = section.require("nodes", "a list of names of nodes[]");
  std::vector<std::string> names;
  section.strings("nodes", names, "a list of names of nodes[]");
  if (at.present && names.empty()) section.reader().fault(at, "found an empty list; allowed: " + join(known));
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      section.reader().fault(at, "found the name \"" + name + "\"; allowed: " + join(known));
    } else if (std::ranges::find(taken, name) != taken.end()) {
      section.reader().fault(at, "found the node \"" + name + "\" again; allowed: each node in one gate only");
    }
    taken.push_back(name);
    core::VirtualNode& node = out.virtual_nodes.emplace_back();
    node.name = name;
  }
}

void read_queries(Section& section, const PrometheusConfig& prometheus, GateSettings& out) {
  const bool asked = !prometheus.url.empty();
  out.rules.mode = asked ? GateMode::kPrometheusThenKubernetes : GateMode::kKubernetes;
  section.one_of<GateMode>("mode",
                           {{"Kubernetes", GateMode::kKubernetes},
                            {"Prometheus", GateMode::kPrometheus},
                            {"PrometheusThenKubernetes", GateMode::kPrometheusThenKubernetes}},
                           out.rules.mode);
  const At mode = section.get("mode");
  if (out.rules.mode != GateMode::kKubernetes && !asked) {
    section.reader().fault(mode, "found " + describe(mode.node) + " without gate.prometheus.url; allowed: Kubernetes");
  }
  section.text("freeQuery", out.free_query, "PromQL that gives one number");
  section.text("freshnessQuery", out.freshness_query, "PromQL that gives one number of seconds");
  section.text("unhealthyQuery", out.unhealthy_query, "PromQL that gives one element per node");
  section.text("unhealthyLabel", out.unhealthy_label, "the label that names the node");
  if (!asked) return;
  if (out.free_query.empty()) {
    // kube-state-metrics does not put a node's labels on its other series.
    if (!out.home.home_selector.empty()) {
      section.reader().fault(section.get("homeSelector"),
                             "found a selector, which the default of freeQuery cannot heed; allowed: with a freeQuery");
    }
    out.free_query = default_free_query(out.home.resource);
    if (out.freshness_query.empty()) out.freshness_query = default_freshness_query(out.home.resource);
  }
}

GateSettings read_one(Reader& reader, const At& at, const Config& read, const PrometheusConfig& prometheus,
                      std::vector<std::string>& taken) {
  GateSettings out;
  Section section(reader, at);
  const At name = section.require("name", "a name of your choice");
  if (reader.text(name, out.name, "a name of your choice") && !is_dns_label(out.name)) {
    reader.fault(name, "found " + describe(name.node) +
                           "; allowed: at most 63 of a-z, 0-9 and '-', a letter or digit at both ends");
  }
  read_nodes(section, read, taken, out.home);
  section.one_of<GpuResource>("resource",
                              {{std::string(model::kResourceNvidiaGpu), GpuResource::kNvidia},
                               {std::string(model::kResourceAmdGpu), GpuResource::kAmd}},
                              out.home.resource);
  out.home.home_selector = read_labels(reader, section.get("homeSelector"));
  model::Toleration& own = out.home.tolerations.emplace_back();
  own.key = resource_name(out.home.resource);
  own.op = model::Toleration::Operator::kExists;
  read_tolerations(reader, section.get("tolerations"), out.home.tolerations);
  out.home.opt_in = read_labels(reader, section.get("optIn"));
  if (section.get("burstPriority").present) {
    int priority = 0;
    section.integer("burstPriority", -kMaxPriority, kMaxPriority, priority);
    out.home.burst_priority = priority;
  }
  section.duration("stuckAfter", seconds(10), hours(24), out.home.stuck_after);
  read_queries(section, prometheus, out);
  read_rules(section, out.rules);
  read_drain(reader, section.get("drain"), out.drain);
  section.boolean("softTaint", out.soft_taint);
  out.poll = prometheus.poll;
  section.finish();
  return out;
}

}  // namespace

std::string default_free_query(GpuResource resource) {
  const std::string series = R"({resource=")" + series_name(resource) + R"("})";
  const std::string series_with_node = R"({resource=")" + series_name(resource) + R"(",node!=""})";
  return "sum(clamp_min((max by (node) (kube_node_status_allocatable" + series +
         R"() unless on(node) kube_node_spec_taint{key="virtual-kubelet.io/provider"})"
         R"( unless on(node) (kube_node_spec_unschedulable == 1))"
         R"( and on(node) (kube_node_status_condition{condition="Ready",status="true"} == 1)))"
         " - on(node) group_left() (sum by (node) (kube_pod_container_resource_requests" +
         series_with_node +
         R"( * on(namespace,pod) group_left() max by (namespace,pod) (kube_pod_status_phase{phase=~"Pending|Running"})"
         " == 1)) or on(node) 0 * max by (node) (kube_node_status_allocatable" +
         series + ")), 0))";
}

std::string default_freshness_query(GpuResource resource) {
  return R"(time() - max(timestamp(kube_node_status_allocatable{resource=")" + series_name(resource) + R"("})))";
}

GateConfig read_gate(Reader& reader, const At& at, const Config& read) {
  GateConfig out;
  Section section(reader, at);
  section.boolean("enabled", out.enabled);
  section.boolean("inDaemon", out.in_daemon);
  out.prometheus = read_prometheus(reader, section.get("prometheus"));
  std::vector<std::string> taken;
  std::vector<std::string> names;
  const At gates = section.get("gates");
  for (const At& entry : reader.list(gates, "a list of gates")) {
    GateSettings gate = read_one(reader, entry, read, out.prometheus, taken);
    if (std::ranges::find(names, gate.name) != names.end()) {
      reader.fault(entry, "found the name \"" + gate.name + "\" again; allowed: a name that no other gate has");
    }
    names.push_back(gate.name);
    out.gates.push_back(std::move(gate));
  }
  if (out.enabled && out.gates.empty() && !reader.faulty()) {
    reader.fault(gates, "found no gate; allowed: at least one (it is required by gate.enabled)");
  }
  section.finish();
  return out;
}

}  // namespace spillway::daemon
