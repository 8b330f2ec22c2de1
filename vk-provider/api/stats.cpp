#include "vk-provider/api/stats.hpp"

#include "vk-provider/kube/json_writer.hpp"

namespace spillway::api {
namespace {

using kube::JsonWriter;

void write_number(JsonWriter& out, std::string_view key, const std::optional<std::uint64_t>& value) {
  if (value) out.field_number(key, static_cast<std::int64_t>(*value));
}

void write_use(JsonWriter& out, const Measure& use) {
  if (use.cpu_ns || use.nano_cores) {
    out.key("cpu").open_object().field("time", base::to_rfc3339(use.at));
    write_number(out, "usageNanoCores", use.nano_cores);
    write_number(out, "usageCoreNanoSeconds", use.cpu_ns);
    out.close_object();
  }
  if (use.working_set) {
    out.key("memory").open_object().field("time", base::to_rfc3339(use.at));
    write_number(out, "workingSetBytes", use.working_set);
    out.close_object();
  }
}

/// startTime is required: the begin of time where it is not known, as Kubernetes writes it, is null.
void write_start(JsonWriter& out, const std::optional<base::WallTime>& start) {
  if (start) {
    out.field("startTime", base::to_rfc3339(*start));
  } else {
    out.field_null("startTime");
  }
}

void write_pod(JsonWriter& out, const PodMeasure& pod) {
  const model::PodKey& key = pod.record->key();
  out.open_object();
  out.key("podRef").open_object();
  out.field("name", key.name).field("namespace", key.ns).field("uid", key.uid.str());
  out.close_object();
  write_start(out, pod.record->observed.status.start_time);
  out.key("containers").open_array();
  for (const ContainerMeasure& c : pod.containers) {
    out.open_object().field("name", c.spec->name);
    write_start(out, c.record->claim.started_at);
    write_use(out, c.use);
    out.close_object();
  }
  out.close_array();
  write_use(out, pod.use);
  out.close_object();
}

}  // namespace

std::string to_stats_summary(const NodeMeasure& node, base::WallTime node_started) {
  JsonWriter out;
  out.open_object();
  out.key("node").open_object().field("nodeName", node.name);
  write_start(out, node_started);
  write_use(out, node.use);
  out.close_object();
  out.key("pods").open_array();
  for (const PodMeasure& pod : node.pods) write_pod(out, pod);
  out.close_array().close_object();
  return out.take();
}

}  // namespace spillway::api
