// decode_resources of kube/container_codec.hpp.
#include <algorithm>

#include "vk-provider/kube/container_codec.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::kube {
namespace {

bool is_known(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name == model::kResourceNvidiaGpu ||
         name == model::kResourceAmdGpu;
}

void take(std::string_view name, std::int64_t amount, bool limits, model::Resources& out, ContainerGpus& gpus) {
  if (name == "cpu") {
    (limits ? out.cpu_limit_milli : out.cpu_request_milli) = amount;
  } else if (name == "memory") {
    (limits ? out.memory_limit : out.memory_request) = amount;
  } else if (name == "ephemeral-storage") {
    (limits ? out.ephemeral_limit : out.ephemeral_request) = amount;
  } else if (name == model::kResourceNvidiaGpu) {
    gpus.nvidia = std::max(gpus.nvidia, amount);
  } else if (name == model::kResourceAmdGpu) {
    gpus.amd = std::max(gpus.amd, amount);
  }
}

}  // namespace

model::Resources decode_resources(std::string_view json, const std::string& path, ContainerGpus& gpus,
                                  Findings& findings) {
  model::Resources out;
  each_member(json, findings, [&](std::string_view kind, std::string_view list) {
    const bool limits = kind == "limits";
    if (!limits && kind != "requests") return;
    each_member(list, findings, [&](std::string_view name, std::string_view value) {
      const std::string text = json_string(value).value_or(std::string(value));
      const auto amount = name == "cpu" ? model::quantity_milli(text) : model::quantity_value(text);
      if (amount && *amount >= 0) {
        take(name, *amount, limits, out, gpus);
      } else if (is_known(name)) {
        findings.fault(path + "." + std::string(kind) + "[" + std::string(name) + "]", "it is no sensible quantity");
      }
    });
  });
  return out;
}

}  // namespace spillway::kube
