#include "vk-provider/kube/pod_spec_codec.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/pod_fields.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::kube {
namespace {

using model::ConfigRef;
using model::ContainerSpec;
using model::PodSpec;

int decode_int(std::string_view value) {
  const auto number = json_int(value).value_or(0);
  return std::in_range<int>(number) ? static_cast<int>(number) : 0;
}

std::vector<std::string> decode_strings(std::string_view json, bool& ok) {
  std::vector<std::string> out;
  JsonArray list(json);
  while (list.next()) out.push_back(json_string_or_empty(list.value()));
  ok = ok && !list.failed();
  return out;
}

ConfigRef decode_ref(std::string_view json, ConfigRef::Kind kind) {
  ConfigRef out;
  out.kind = kind;
  out.name = json_string_or_empty(json_member(json, "name"));
  out.key = json_string_or_empty(json_member(json, "key"));
  out.optional = json_is_true(json_member(json, "optional"));
  return out;
}

void decode_env_from(std::string_view json, ContainerSpec& out, bool& ok) {
  JsonArray list(json);
  while (list.next()) {
    std::optional<ConfigRef> ref;
    std::string prefix;
    JsonObject members(list.value());
    while (members.next()) {
      if (members.key() == "prefix") prefix = json_string_or_empty(members.value());
      if (!json_is_object(members.value())) continue;
      if (members.key() == "configMapRef") ref = decode_ref(members.value(), ConfigRef::Kind::kConfigMap);
      if (members.key() == "secretRef") ref = decode_ref(members.value(), ConfigRef::Kind::kSecret);
    }
    ok = ok && !members.failed();
    if (!ref) continue;
    ref->prefix = std::move(prefix);
    out.env_from.push_back(std::move(*ref));
  }
  ok = ok && !list.failed();
}

std::optional<ConfigRef> decode_value_from(std::string_view json) {
  const std::string_view map = json_member(json, "configMapKeyRef");
  if (json_is_object(map)) return decode_ref(map, ConfigRef::Kind::kConfigMap);
  const std::string_view secret = json_member(json, "secretKeyRef");
  if (json_is_object(secret)) return decode_ref(secret, ConfigRef::Kind::kSecret);
  return std::nullopt;
}

void decode_env(std::string_view json, ContainerSpec& out, bool& ok) {
  JsonArray list(json);
  while (list.next()) {
    model::EnvVar variable;
    JsonObject members(list.value());
    while (members.next()) {
      if (members.key() == "name") {
        variable.name = json_string_or_empty(members.value());
      } else if (members.key() == "value") {
        variable.value = json_string_or_empty(members.value());
      } else if (members.key() == "valueFrom") {
        variable.from = decode_value_from(members.value());
      }
    }
    ok = ok && !members.failed();
    out.env.push_back(std::move(variable));
  }
  ok = ok && !list.failed();
}

void decode_ports(std::string_view json, ContainerSpec& out, bool& ok) {
  JsonArray list(json);
  while (list.next()) {
    model::ContainerPort port;
    port.name = json_string_or_empty(json_member(list.value(), "name"));
    port.port = decode_int(json_member(list.value(), "containerPort"));
    const std::string_view protocol = json_member(list.value(), "protocol");
    port.protocol = protocol == "\"UDP\""    ? model::Protocol::kUdp
                    : protocol == "\"SCTP\"" ? model::Protocol::kSctp
                                             : model::Protocol::kTcp;
    out.ports.push_back(std::move(port));
  }
  ok = ok && !list.failed();
}

/// Without a policy the tag decides, as the API server does it.
model::PullPolicy default_pull_policy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return model::PullPolicy::kIfNotPresent;
  const size_t slash = image.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? image : image.substr(slash + 1);
  const size_t colon = name.rfind(':');
  const bool latest = colon == std::string_view::npos || name.substr(colon + 1) == "latest";
  return latest ? model::PullPolicy::kAlways : model::PullPolicy::kIfNotPresent;
}

/// Reads resources.requests or resources.limits of one container.
class ResourceReader {
 public:
  ResourceReader(PodSpec& spec, ContainerSpec& container, size_t index)
      : spec_(spec), container_(container), path_("spec.containers[" + std::to_string(index) + "].resources.") {}

  bool read(std::string_view json, bool limits) {
    JsonObject members(json);
    while (members.next()) {
      const std::string_view name = members.key();
      const std::string text = json_string(members.value()).value_or(std::string(members.value()));
      const auto amount = name == "cpu" ? model::quantity_milli(text) : model::quantity_value(text);
      if (amount && *amount >= 0) {
        take(name, *amount, limits);
      } else if (name == "cpu" || name == "memory" || name == "ephemeral-storage" || is_gpu(name)) {
        complain(std::string(limits ? "limits[" : "requests[") + std::string(name) + "]", "it is no sensible quantity");
      }
    }
    return !members.failed();
  }

  /// After both: adds the container's GPUs to the pod's.
  void add_gpus() {
    if (nvidia_ > 0) add_gpus_of(model::kResourceNvidiaGpu, nvidia_);
    if (amd_ > 0) add_gpus_of(model::kResourceAmdGpu, amd_);
  }

 private:
  static bool is_gpu(std::string_view name) {
    return name == model::kResourceNvidiaGpu || name == model::kResourceAmdGpu;
  }

  void take(std::string_view name, std::int64_t amount, bool limits) {
    model::Resources& r = container_.resources;
    if (name == "cpu") {
      (limits ? r.cpu_limit_milli : r.cpu_request_milli) = amount;
    } else if (name == "memory") {
      (limits ? r.memory_limit : r.memory_request) = amount;
    } else if (name == "ephemeral-storage") {
      r.ephemeral_storage = std::max(r.ephemeral_storage, amount);
    } else if (name == model::kResourceNvidiaGpu) {
      nvidia_ = std::max(nvidia_, amount);
    } else if (name == model::kResourceAmdGpu) {
      amd_ = std::max(amd_, amount);
    }
  }

  void add_gpus_of(std::string_view resource, std::int64_t count) {
    const std::string path = "limits[" + std::string(resource) + "]";
    if (count > std::numeric_limits<int>::max() - spec_.gpu.count) return complain(path, "nobody has so many GPUs");
    if (!spec_.gpu.resource.empty() && spec_.gpu.resource != resource) {
      return complain(path, "the GPUs of one pod must be of one make");
    }
    spec_.gpu.resource = resource;
    spec_.gpu.count += static_cast<int>(count);
  }

  void complain(const std::string& where, std::string_view why) {
    model::FieldUse& use = spec_.uses.emplace_back();
    use.path = path_ + where;
    use.why = why;
  }

  PodSpec& spec_;
  ContainerSpec& container_;
  std::string path_;
  std::int64_t nvidia_ = 0;
  std::int64_t amd_ = 0;
};

bool decode_resources(std::string_view json, PodSpec& spec, ContainerSpec& container, size_t index) {
  ResourceReader reader(spec, container, index);
  bool ok = true;
  JsonObject members(json);
  while (members.next()) {
    if (members.key() == "limits") ok = reader.read(members.value(), true) && ok;
    if (members.key() == "requests") ok = reader.read(members.value(), false) && ok;
  }
  reader.add_gpus();
  return ok && !members.failed();
}

bool decode_container(std::string_view json, PodSpec& spec, size_t index) {
  ContainerSpec out;
  std::string_view policy;
  bool ok = true;
  JsonObject members(json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "name") {
      out.name = json_string_or_empty(value);
    } else if (key == "image") {
      out.image = json_string_or_empty(value);
    } else if (key == "command") {
      out.command = decode_strings(value, ok);
    } else if (key == "args") {
      out.args = decode_strings(value, ok);
    } else if (key == "workingDir") {
      out.working_dir = json_string_or_empty(value);
    } else if (key == "envFrom") {
      decode_env_from(value, out, ok);
    } else if (key == "env") {
      decode_env(value, out, ok);
    } else if (key == "ports") {
      decode_ports(value, out, ok);
    } else if (key == "resources") {
      ok = decode_resources(value, spec, out, index) && ok;
    } else if (key == "imagePullPolicy") {
      policy = value;
    }
  }
  out.pull_policy = policy == "\"Always\""         ? model::PullPolicy::kAlways
                    : policy == "\"Never\""        ? model::PullPolicy::kNever
                    : policy == "\"IfNotPresent\"" ? model::PullPolicy::kIfNotPresent
                                                   : default_pull_policy(out.image);
  spec.containers.edit().push_back(std::move(out));
  return ok && !members.failed();
}

bool decode_containers(std::string_view json, PodSpec& out) {
  JsonArray list(json);
  for (size_t i = 0; list.next(); ++i) {
    if (!decode_container(list.value(), out, i)) return false;
  }
  return !list.failed();
}

model::RestartPolicy decode_restart_policy(std::string_view value) {
  if (value == "\"Never\"") return model::RestartPolicy::kNever;
  if (value == "\"OnFailure\"") return model::RestartPolicy::kOnFailure;
  return model::RestartPolicy::kAlways;
}

}  // namespace

bool decode_pod_spec(std::string_view spec_json, PodSpec& out) {
  PodFields fields = walk_pod_fields(spec_json);
  if (fields.broken) return false;
  out.uses = std::move(fields.uses);
  out.service_account_token_withheld = fields.has_token_volume;

  bool ok = true;
  JsonObject members(spec_json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "nodeName") {
      out.node_name = json_string_or_empty(value);
    } else if (key == "serviceAccountName") {
      out.service_account = json_string_or_empty(value);
    } else if (key == "restartPolicy") {
      out.restart_policy = decode_restart_policy(value);
    } else if (key == "terminationGracePeriodSeconds") {
      out.grace = std::chrono::seconds(std::max<std::int64_t>(0, json_int(value).value_or(30)));
    } else if (key == "readinessGates") {
      JsonArray gates(value);
      while (gates.next())
        out.readiness_gates.push_back(json_string_or_empty(json_member(gates.value(), "conditionType")));
    } else if (key == "containers") {
      ok = decode_containers(value, out) && ok;
    }
  }
  return ok && !members.failed();
}

}  // namespace spillway::kube
