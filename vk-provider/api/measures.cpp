#include "vk-provider/api/measures.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/core/container_order.hpp"

namespace spillway::api {
namespace {

constexpr base::Duration kStaleAfter = std::chrono::minutes(2);

/// Of the run that the record knows; absent values if it was not measured, or not of late.
Measure measure_container(const core::ContainerUsage* usage, const model::ContainerRecord& record,
                          base::TimePoint now) {
  Measure out;
  if (usage == nullptr || usage->last.run != record.restarts || now - usage->last.noted > kStaleAfter) return out;
  out.cpu_ns = usage->last.cpu_ns;
  out.nano_cores = usage->nano_cores;
  out.working_set = usage->last.working_set;
  out.at = usage->last.at;
  return out;
}

/// Adds a part to a sum that is known as long as all parts are.
void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
  sum = sum && part ? std::optional(*sum + *part) : std::nullopt;
}

/// Adds what is known.
void add_known(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
  if (part) sum = sum.value_or(0) + *part;
}

PodMeasure measure_pod(const model::PodRecord& record, const core::PodUsage* usage, base::TimePoint now) {
  PodMeasure out;
  out.record = &record;
  out.use.cpu_ns = out.use.nano_cores = out.use.working_set = 0;
  for (size_t i = 0; i < record.containers.size(); ++i) {
    if (!core::runs(record.containers[i])) continue;
    ContainerMeasure& c = out.containers.emplace_back();
    c.spec = &core::spec_of(*record.spec, i);
    c.record = &record.containers[i];
    c.use = measure_container(usage == nullptr ? nullptr : usage->find(c.spec->name), *c.record, now);
    add(out.use.cpu_ns, c.use.cpu_ns);
    add(out.use.nano_cores, c.use.nano_cores);
    add(out.use.working_set, c.use.working_set);
    out.use.at = std::max(out.use.at, c.use.at);
  }
  if (out.containers.empty()) out.use = Measure();
  if (!out.use.cpu_ns) return out;
  // The pod's counter goes on where a container's own began anew.
  out.use.cpu_ns = 0;
  for (const core::ContainerUsage& c : usage->containers) *out.use.cpu_ns += c.total_cpu_ns;
  return out;
}

}  // namespace

NodeMeasure measure_node(const core::PodView& pods, const core::UsageBook& usage, std::string node, base::Now now) {
  NodeMeasure out;
  out.name = std::move(node);
  bool something_runs = false;
  bool something_known = false;
  pods.each_pod(out.name, [&](const model::PodRecord& record) {
    if (record.placeholder || !std::holds_alternative<model::Running>(record.stage)) return;
    PodMeasure pod = measure_pod(record, usage.find(record.key().uid), now.steady);
    for (const ContainerMeasure& c : pod.containers) {
      something_runs = true;
      something_known = something_known || c.use.cpu_ns || c.use.working_set;
      add_known(out.use.nano_cores, c.use.nano_cores);
      add_known(out.use.working_set, c.use.working_set);
      out.use.at = std::max(out.use.at, c.use.at);
    }
    out.pods.push_back(std::move(pod));
  });
  if (something_runs && !something_known) return out;
  // Where nothing runs, nothing is used: that is known.
  out.use.cpu_ns = usage.node_cpu_ns(out.name).value_or(0);
  if (something_runs) return out;
  out.use.nano_cores = out.use.working_set = 0;
  out.use.at = now.wall;
  return out;
}

}  // namespace spillway::api
