#include "vk-provider/api/pods.hpp"

#include <algorithm>

#include "vk-provider/core/container_order.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::api {
namespace {

bool is_listed(const model::PodRecord& record) {
  const bool alive = std::holds_alternative<model::Running>(record.stage) && !record.placeholder;
  return alive && !record.deleting && std::ranges::any_of(record.containers, core::runs);
}

}  // namespace

std::string to_running_pods(const core::PodView& pods, std::string_view node) {
  kube::JsonWriter out;
  out.open_object().field("kind", "PodList").field("apiVersion", "v1");
  out.key("metadata").open_object().close_object();
  out.key("items").open_array();
  pods.each_pod(node, [&](const model::PodRecord& record) {
    if (!is_listed(record)) return;
    const model::PodKey& key = record.key();
    out.open_object().key("metadata").open_object();
    out.field("name", key.name).field("namespace", key.ns).field("uid", key.uid.str()).close_object();
    out.key("spec").open_object().field("nodeName", node).key("containers").open_array();
    for (size_t i = 0; i < record.containers.size(); ++i) {
      if (!core::runs(record.containers[i])) continue;
      const model::ContainerSpec& spec = core::spec_of(*record.spec, i);
      out.open_object().field("name", spec.name).field("image", spec.image);
      out.key("resources").open_object().close_object();
      out.close_object();
    }
    out.close_array().close_object();
    out.key("status").open_object().close_object();
    out.close_object();
  });
  out.close_array().close_object();
  return out.take();
}

}  // namespace spillway::api
