#include "vk-provider/kube/container_codec.hpp"

#include "vk-provider/kube/env_codec.hpp"
#include "vk-provider/kube/probe_codec.hpp"
#include "vk-provider/kube/security_codec.hpp"

namespace spillway::kube {
namespace {

using model::ContainerSpec;

std::vector<model::ContainerPort> decode_ports(std::string_view json, Findings& findings) {
  std::vector<model::ContainerPort> out;
  each_element(json, findings, [&](size_t, std::string_view value) {
    model::ContainerPort& port = out.emplace_back();
    port.name = json_string_or_empty(json_member(value, "name"));
    port.port = decode_int(json_member(value, "containerPort"));
    const std::string_view protocol = json_member(value, "protocol");
    port.protocol = protocol == "\"UDP\""    ? model::Protocol::kUdp
                    : protocol == "\"SCTP\"" ? model::Protocol::kSctp
                                             : model::Protocol::kTcp;
  });
  return out;
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

model::PullPolicy decode_pull_policy(std::string_view json, std::string_view image) {
  if (json == "\"Always\"") return model::PullPolicy::kAlways;
  if (json == "\"Never\"") return model::PullPolicy::kNever;
  if (json == "\"IfNotPresent\"") return model::PullPolicy::kIfNotPresent;
  return default_pull_policy(image);
}

std::vector<model::VolumeMount> decode_mounts(std::string_view json, std::string_view withheld, Findings& findings) {
  std::vector<model::VolumeMount> out;
  each_element(json, findings, [&](size_t, std::string_view element) {
    model::VolumeMount mount;
    each_member(element, findings, [&](std::string_view key, std::string_view value) {
      if (key == "name") {
        mount.volume = json_string_or_empty(value);
      } else if (key == "mountPath") {
        mount.path = json_string_or_empty(value);
      } else if (key == "readOnly") {
        mount.read_only = json_is_true(value);
      } else if (key == "subPath" || key == "subPathExpr") {
        auto path = json_string(value);
        if (!path || path->empty()) return;
        mount.sub_path = std::move(*path);
        mount.sub_path_is_expression = key == "subPathExpr";
      }
    });
    if (withheld.empty() || mount.volume != withheld) out.push_back(std::move(mount));
  });
  return out;
}

std::vector<model::RestartRule> decode_restart_rules(std::string_view json, const std::string& path,
                                                     Findings& findings) {
  std::vector<model::RestartRule> out;
  each_element(json, findings, [&](size_t i, std::string_view value) {
    const std::string at = element_path(path, i);
    if (json_member(value, "action") != "\"Restart\"") {
      findings.fault(at + ".action", "only Restart is known");
    }
    const std::string_view codes = json_member(value, "exitCodes");
    const std::string_view how = json_member(codes, "operator");
    if (how != "\"In\"" && how != "\"NotIn\"") {
      findings.fault(at + ".exitCodes.operator", "only In and NotIn are known");
    }
    model::RestartRule& rule = out.emplace_back();
    rule.in = how != "\"NotIn\"";
    each_element(json_member(codes, "values"), findings,
                 [&](size_t, std::string_view code) { rule.exit_codes.push_back(decode_int(code)); });
  });
  return out;
}

/// What can be decoded only when the container's ports are known.
struct Probing {
  std::string_view startup;
  std::string_view readiness;
  std::string_view liveness;
  std::string_view lifecycle;
};

void decode_probing(const Probing& json, const std::string& path, ContainerSpec& out, Findings& findings) {
  const HandlerReader reader(out.ports, findings);
  out.startup_probe = reader.probe(json.startup, path + ".startupProbe");
  out.readiness_probe = reader.probe(json.readiness, path + ".readinessProbe");
  out.liveness_probe = reader.probe(json.liveness, path + ".livenessProbe");
  each_member(json.lifecycle, findings, [&](std::string_view key, std::string_view value) {
    if (key == "postStart") out.post_start = reader.hook(value, path + ".lifecycle.postStart");
    if (key == "preStop") out.pre_stop = reader.hook(value, path + ".lifecycle.preStop");
    if (key == "stopSignal") out.stop_signal = json_string_or_empty(value);
  });
}

bool is_set(std::string_view json) { return !json_is_null(json); }

/// Members that stand for themselves. False for any other.
bool decode_plain(std::string_view key, std::string_view value, ContainerSpec& out, Findings& findings) {
  if (key == "name") {
    out.name = json_string_or_empty(value);
  } else if (key == "image") {
    out.image = json_string_or_empty(value);
  } else if (key == "command") {
    out.command = decode_strings(value, findings);
  } else if (key == "args") {
    out.args = decode_strings(value, findings);
  } else if (key == "workingDir") {
    out.working_dir = json_string_or_empty(value);
  } else if (key == "envFrom") {
    out.env_from = decode_env_from(value, findings);
  } else if (key == "env") {
    out.env = decode_env(value, findings);
  } else if (key == "ports") {
    out.ports = decode_ports(value, findings);
  } else if (key == "terminationMessagePath") {
    auto path = json_string_or_empty(value);
    if (!path.empty()) out.termination_message_path = std::move(path);
  } else if (key == "terminationMessagePolicy") {
    out.termination_message_from_logs = value == "\"FallbackToLogsOnError\"";
  } else if (key == "stdin") {
    out.stdin_open = json_is_true(value);
  } else if (key == "stdinOnce") {
    out.stdin_once = json_is_true(value);
  } else if (key == "tty") {
    out.tty = json_is_true(value);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<model::RestartPolicy> decode_restart_policy(std::string_view json) {
  if (json == "\"Always\"") return model::RestartPolicy::kAlways;
  if (json == "\"OnFailure\"") return model::RestartPolicy::kOnFailure;
  if (json == "\"Never\"") return model::RestartPolicy::kNever;
  return std::nullopt;
}

ContainerSpec decode_container(std::string_view json, const std::string& path, const ContainerSurroundings& pod,
                               ContainerGpus& gpus, Findings& findings) {
  ContainerSpec out;
  Probing probing;
  std::string_view pull_policy;
  std::string_view security;
  each_member(json, findings, [&](std::string_view key, std::string_view value) {
    if (decode_plain(key, value, out, findings)) return;
    if (key == "imagePullPolicy") pull_policy = value;
    if (key == "securityContext") security = value;
    if (key == "startupProbe") probing.startup = value;
    if (key == "readinessProbe") probing.readiness = value;
    if (key == "livenessProbe") probing.liveness = value;
    if (key == "lifecycle") probing.lifecycle = value;
    if (key == "resources") out.resources = decode_resources(value, path + ".resources", gpus, findings);
    if (key == "volumeMounts") out.mounts = decode_mounts(value, pod.withheld_volume, findings);
    if (key == "restartPolicyRules") {
      out.restart_rules = decode_restart_rules(value, path + ".restartPolicyRules", findings);
    }
    if (key != "restartPolicy" || !is_set(value)) return;
    out.restart_policy = decode_restart_policy(value);
    if (!out.restart_policy) findings.fault(path + ".restartPolicy", "only Always, OnFailure and Never are known");
  });
  out.pull_policy = decode_pull_policy(pull_policy, out.image);
  out.security = decode_security(pod.security_json, security, path + ".securityContext", findings);
  decode_probing(probing, path, out, findings);
  return out;
}

}  // namespace spillway::kube
