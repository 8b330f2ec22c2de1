#include "vk-provider/kube/pod_spec_codec.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "vk-provider/kube/container_codec.hpp"
#include "vk-provider/kube/pod_fields.hpp"
#include "vk-provider/kube/spec_reader.hpp"
#include "vk-provider/kube/volume_codec.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/pod_resources.hpp"

namespace spillway::kube {
namespace {

using model::ContainerSpec;
using model::PodExtras;
using model::PodSpec;

/// Few pods have any: they are made when the first is set.
PodExtras& extras_of(PodSpec& pod) {
  if (!pod.extras) pod.extras = PodExtras();
  return *pod.extras;
}

/// What a pod's containers, which come at the end, are decoded from.
struct Parts {
  std::string_view init_containers;
  std::string_view containers;
  std::string_view security;
  std::string_view volumes;
};

/// Gives each container its GPUs, which must be of one make in the whole pod.
class GpuReader {
 public:
  GpuReader(PodSpec& pod, Findings& findings) : pod_(pod), findings_(findings) {}

  void take(const ContainerGpus& gpus, const std::string& path, ContainerSpec& container) {
    take_of(model::kResourceNvidiaGpu, gpus.nvidia, path, container);
    take_of(model::kResourceAmdGpu, gpus.amd, path, container);
  }

  /// After all containers.
  void sum() {
    const auto& init = pod_.extras ? pod_.extras->init_containers : base::SharedList<ContainerSpec>();
    const auto count = model::at_once(init, pod_.containers, [](const ContainerSpec& c) { return c.resources.gpus; });
    if (std::in_range<int>(count)) {
      pod_.gpu.count = static_cast<int>(count);
    } else {
      findings_.fault("spec.containers", "nobody has so many GPUs");
    }
  }

 private:
  void take_of(std::string_view resource, std::int64_t count, const std::string& path, ContainerSpec& container) {
    if (count == 0) return;
    const std::string at = path + ".resources.limits[" + std::string(resource) + "]";
    if (!std::in_range<int>(count)) return findings_.fault(at, "nobody has so many GPUs");
    if (!pod_.gpu.resource.empty() && pod_.gpu.resource != resource) {
      return findings_.fault(at, "the GPUs of one pod must be of one make");
    }
    pod_.gpu.resource = resource;
    container.resources.gpus = static_cast<int>(count);
  }

  PodSpec& pod_;
  Findings& findings_;
};

void decode_containers(const Parts& parts, std::string_view withheld, PodSpec& out, Findings& findings) {
  const ContainerSurroundings pod{parts.security, withheld};
  GpuReader gpus(out, findings);
  const auto decode_list = [&](std::string_view json, std::string_view path, auto list_of) {
    each_element(json, findings, [&](size_t i, std::string_view element) {
      const std::string at = element_path(path, i);
      ContainerGpus found;
      ContainerSpec container = decode_container(element, at, pod, found, findings);
      gpus.take(found, at, container);
      list_of().push_back(std::move(container));
    });
  };
  decode_list(parts.init_containers, "spec.initContainers",
              [&]() -> auto& { return extras_of(out).init_containers.edit(); });
  decode_list(parts.containers, "spec.containers", [&]() -> auto& { return out.containers.edit(); });
  gpus.sum();
}

/// The pod's part of securityContext that is not the containers'.
void decode_pod_security(std::string_view json, PodSpec& out, Findings& findings) {
  each_member(json, findings, [&](std::string_view key, std::string_view value) {
    if (key == "fsGroup" && json_int(value)) extras_of(out).fs_group = json_int(value);
    if (key != "supplementalGroups") return;
    each_element(value, findings, [&](size_t, std::string_view group) {
      if (const auto id = json_int(group)) extras_of(out).supplemental_groups.push_back(*id);
    });
  });
}

model::DnsConfig decode_dns(std::string_view json, bool alone, Findings& findings) {
  model::DnsConfig out;
  out.alone = alone;
  each_member(json, findings, [&](std::string_view key, std::string_view value) {
    if (key == "nameservers") out.nameservers = decode_strings(value, findings);
    if (key == "searches") out.searches = decode_strings(value, findings);
    if (key != "options") return;
    each_element(value, findings, [&](size_t, std::string_view option) {
      std::string& text = out.options.emplace_back(json_string_or_empty(json_member(option, "name")));
      const std::string word = json_string_or_empty(json_member(option, "value"));
      if (!word.empty()) text += ":" + word;
    });
  });
  return out;
}

void decode_host_aliases(std::string_view json, PodSpec& out, Findings& findings) {
  each_element(json, findings, [&](size_t, std::string_view element) {
    model::HostAlias& alias = extras_of(out).host_aliases.emplace_back();
    alias.ip = json_string_or_empty(json_member(element, "ip"));
    alias.hostnames = decode_strings(json_member(element, "hostnames"), findings);
  });
}

/// A toleration without a key tolerates every taint of its effect, also the one that keeps pods off our nodes.
bool tolerates_everything(std::string_view json, Findings& findings) {
  bool found = false;
  each_element(json, findings, [&](size_t, std::string_view element) {
    const std::string effect = json_string_or_empty(json_member(element, "effect"));
    found = found || (json_string_or_empty(json_member(element, "key")).empty() &&
                      json_member(element, "operator") == "\"Exists\"" && (effect.empty() || effect == "NoSchedule"));
  });
  return found;
}

void decode_names(std::string_view key, std::string_view value, PodSpec& out, Findings& findings) {
  const auto text_into = [&](std::string PodExtras::* field) {
    std::string text = json_string_or_empty(value);
    if (!text.empty()) extras_of(out).*field = std::move(text);
  };
  if (key == "hostname") text_into(&PodExtras::hostname);
  if (key == "subdomain") text_into(&PodExtras::subdomain);
  if (key == "setHostnameAsFQDN" && json_is_true(value)) extras_of(out).hostname_as_fqdn = true;
  if (key == "hostAliases") decode_host_aliases(value, out, findings);
  if (key != "imagePullSecrets") return;
  each_element(value, findings, [&](size_t, std::string_view element) {
    std::string name = json_string_or_empty(json_member(element, "name"));
    if (!name.empty()) extras_of(out).pull_secrets.push_back(std::move(name));
  });
}

void decode_life(std::string_view key, std::string_view value, PodSpec& out, Findings& findings) {
  if (key == "restartPolicy") {
    out.restart_policy = decode_restart_policy(value).value_or(model::RestartPolicy::kAlways);
  } else if (key == "terminationGracePeriodSeconds") {
    out.grace = std::chrono::seconds(std::max<std::int64_t>(0, json_int(value).value_or(30)));
  } else if (key == "shareProcessNamespace") {
    if (json_is_true(value)) extras_of(out).share_processes = true;
  } else if (key == "enableServiceLinks") {
    out.service_links = value != "false";
  } else if (key == "tolerations") {
    out.tolerates_everything = tolerates_everything(value, findings);
  } else if (key == "readinessGates") {
    each_element(value, findings, [&](size_t, std::string_view gate) {
      out.readiness_gates.push_back(json_string_or_empty(json_member(gate, "conditionType")));
    });
  } else if (key == "resources" && json_is_object(value)) {
    ContainerGpus none;  // a pod's own resources are cpu, memory and huge pages
    const model::Resources resources = decode_resources(value, "spec.resources", none, findings);
    if (resources != model::Resources()) extras_of(out).resources = resources;
  }
}

/// No container may use more than the pod: what has no limit of its own has the pod's.
void apply_pod_limits(PodSpec& out) {
  if (!out.extras || !out.extras->resources) return;
  const model::Resources& pod = *out.extras->resources;
  for (auto* list : {&out.containers, &out.extras->init_containers}) {
    if (list->empty()) continue;
    for (ContainerSpec& container : list->edit()) {
      model::Resources& own = container.resources;
      if (own.cpu_limit_milli == 0) own.cpu_limit_milli = pod.cpu_limit_milli;
      if (own.memory_limit == 0) own.memory_limit = pod.memory_limit;
    }
  }
}

}  // namespace

bool decode_pod_spec(std::string_view spec_json, PodSpec& out) {
  const auto order = out.annotations.find(std::string(model::kAnnotationSendToken));
  PodFields fields = walk_pod_fields(spec_json, order != out.annotations.end() && order->second == "true");
  if (fields.broken) return false;
  out.uses = std::move(fields.uses);
  out.service_account_token_withheld = !fields.withheld_volume.empty();

  Findings findings;
  Parts parts;
  std::string_view dns;
  bool dns_alone = false;
  each_member(spec_json, findings, [&](std::string_view key, std::string_view value) {
    if (key == "nodeName") out.node_name = json_string_or_empty(value);
    if (key == "serviceAccountName") out.service_account = json_string_or_empty(value);
    if (key == "initContainers") parts.init_containers = value;
    if (key == "containers") parts.containers = value;
    if (key == "securityContext") parts.security = value;
    if (key == "volumes") parts.volumes = value;
    if (key == "dnsConfig" && json_is_object(value)) dns = value;
    if (key == "dnsPolicy") dns_alone = value == "\"None\"";
    decode_names(key, value, out, findings);
    decode_life(key, value, out, findings);
  });
  if (dns_alone || !dns.empty()) extras_of(out).dns = decode_dns(dns, dns_alone, findings);
  decode_pod_security(parts.security, out, findings);
  auto volumes = decode_volumes(parts.volumes, fields.withheld_volume, findings);
  if (!volumes.empty()) extras_of(out).volumes.edit() = std::move(volumes);
  decode_containers(parts, fields.withheld_volume, out, findings);
  apply_pod_limits(out);
  std::ranges::move(findings.faults, std::back_inserter(out.uses));
  return !findings.broken;
}

}  // namespace spillway::kube
