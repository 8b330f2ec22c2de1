// The bodies of POST /containers/create; the rest of codec.hpp is in codec.cpp.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "providers/docker/codec.hpp"
#include "providers/docker/gpu_slots.hpp"
#include "providers/docker/sandbox_image.hpp"
#include "providers/docker/security_codec.hpp"
#include "providers/docker/volume_codec.hpp"

namespace spillway::providers::docker {
namespace {

using nlohmann::json;

// What a kubelet uses: 1024 shares for one CPU, at least 2; a quota per 100 ms, at least 1 ms.
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kLeastShares = 2;
constexpr std::int64_t kPeriodMicros = 100'000;
constexpr std::int64_t kLeastQuotaMicros = 1000;
constexpr size_t kLongestHostname = 63;
// When the newest is full the oldest goes.
constexpr std::int64_t kLogFiles = 5;

/// Sidecars are not asked: whatever becomes of them, the pod has ended when the others have.
bool has_rule_of_its_own(const model::ContainerSpec& container) {
  return container.restart_policy.has_value() || !container.restart_rules.empty();
}

std::string restart_label(const model::PodSpec& spec) {
  const auto own = [](const auto& list) { return std::any_of(list.begin(), list.end(), has_rule_of_its_own); };
  const auto is_init_of_its_own = [](const model::ContainerSpec& c) {
    return has_rule_of_its_own(c) && c.restart_policy != model::RestartPolicy::kAlways;
  };
  if (own(spec.containers)) return std::string(kRestartByContainer);
  if (spec.extras &&
      std::any_of(spec.extras->init_containers.begin(), spec.extras->init_containers.end(), is_init_of_its_own)) {
    return std::string(kRestartByContainer);
  }
  switch (spec.restart_policy) {
    case model::RestartPolicy::kAlways: return "Always";
    case model::RestartPolicy::kOnFailure: return "OnFailure";
    case model::RestartPolicy::kNever: return "Never";
  }
  return "Always";
}

std::string hostname(std::string name) {
  if (name.size() > kLongestHostname) name.resize(kLongestHostname);
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  return name;
}

json common_labels(const InstancePlan& plan, std::string_view role) {
  json out = json::object();
  out[std::string(kLabelTag)] = plan.tag;
  out[std::string(kLabelRole)] = std::string(role);
  out[std::string(kLabelPod)] = plan.pod;
  return out;
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

/// Which of a container's texts JSON cannot carry. Names the variable, never its value.
std::string not_utf8(const model::ResolvedContainer& container) {
  for (const auto& [name, value] : container.env) {
    if (!is_utf8(name)) return "the name of an environment variable";
    if (!is_utf8(value)) return "the value of environment variable " + name;
  }
  return "its command, args or workingDir";
}

/// For a runtime that reads the variable: the indices, or the word for none, so that an image which asks for all GPUs
/// by the same variable gets what was bought.
std::string gpu_environment(const InstancePlan& plan, const HostConfig& host) {
  if (!plan.gpus.empty()) return to_gpu_label(plan.gpus);
  return host.gpu_environment_variable == "NVIDIA_VISIBLE_DEVICES" ? "void" : "-1";
}

/// On a host with GPUs, whatever its default runtime is, the variable is ours; but for containers with a device
/// request, to which the engine gives the variable by itself.
bool sets_gpu_variable(const InstancePlan& plan, const HostConfig& host) {
  return host.gpu_count > 0 && (host.gpu_request == GpuRequest::kEnvironment || plan.gpus.empty());
}

json environment(const InstancePlan& plan, const model::ResolvedContainer& container, const HostConfig& host) {
  const bool ours = sets_gpu_variable(plan, host);
  json out = json::array();
  for (const auto& [name, value] : container.env) {
    // With two of one name most programs take the first: the pod must not widen what it was given.
    if (ours && name == host.gpu_environment_variable) continue;
    out.push_back(name + "=" + value);
  }
  if (ours) out.push_back(host.gpu_environment_variable + "=" + gpu_environment(plan, host));
  return out;
}

/// The containers share the sandbox's /etc/hosts and /etc/resolv.conf.
void put_names(json& host_config, const InstancePlan& plan) {
  if (!plan.spec || !plan.spec->extras) return;
  const model::PodExtras& extras = *plan.spec->extras;
  json hosts = json::array();
  for (const model::HostAlias& alias : extras.host_aliases) {
    for (const std::string& name : alias.hostnames) hosts.push_back(name + ":" + alias.ip);
  }
  if (!hosts.empty()) host_config["ExtraHosts"] = std::move(hosts);
  if (!extras.dns) return;
  if (!extras.dns->nameservers.empty()) host_config["Dns"] = extras.dns->nameservers;
  if (!extras.dns->searches.empty()) host_config["DnsSearch"] = extras.dns->searches;
  // A lone dot is the engine's word for none; an empty list is the machine's.
  if (extras.dns->searches.empty() && extras.dns->alone) host_config["DnsSearch"] = {"."};
  if (!extras.dns->options.empty()) host_config["DnsOptions"] = extras.dns->options;
}

void put_gpus(json& host_config, const InstancePlan& plan, const HostConfig& host) {
  if (plan.gpus.empty() || host.gpu_request != GpuRequest::kDeviceRequests) return;
  json ids = json::array();
  for (const int gpu : plan.gpus) ids.push_back(std::to_string(gpu));
  json request = json::object();
  request["Driver"] = "nvidia";
  request["DeviceIDs"] = std::move(ids);
  request["Capabilities"] = json::array({json::array({"gpu"})});
  host_config["DeviceRequests"] = json::array({std::move(request)});
}

/// What the image says holds where the pod says nothing.
void put_process(json& body, const InstancePlan& plan, const model::ResolvedContainer& container) {
  body["Image"] = container.image;
  // The engine takes the image's Cmd only if neither is set: command alone clears it, args alone keep the entrypoint.
  if (!container.command.empty()) body["Entrypoint"] = container.command;
  if (!container.args.empty()) body["Cmd"] = container.args;
  if (!container.working_dir.empty()) body["WorkingDir"] = container.working_dir;
  if (!container.stop_signal.empty()) body["StopSignal"] = container.stop_signal;
  body["StopTimeout"] = plan.grace.count();
  body["OpenStdin"] = container.stdin_open;
  if (container.stdin_once) body["StdinOnce"] = true;
  body["Tty"] = container.tty;
}

/// The engine's json-file driver spoils bytes that are no UTF-8, and drivers that an operator may have made the default
/// cannot be read at all.
void put_log(json& host_config, const HostConfig& host) {
  json config = json::object();
  config["max-size"] = std::to_string(host.log_limit / kLogFiles);
  config["max-file"] = std::to_string(kLogFiles);
  host_config["LogConfig"] = {{"Type", "local"}, {"Config", std::move(config)}};
}

void put_resources(json& host_config, const model::Resources& resources) {
  const std::int64_t shares = resources.cpu_request_milli * kSharesPerCpu / 1000;
  host_config["CpuShares"] = std::max(kLeastShares, shares);
  if (resources.cpu_limit_milli > 0) {
    // A quota, not NanoCpus: the engine refuses NanoCpus above the machine's CPUs, a kubelet accepts such a limit.
    const std::int64_t quota = resources.cpu_limit_milli * kPeriodMicros / 1000;
    host_config["CpuPeriod"] = kPeriodMicros;
    host_config["CpuQuota"] = std::max(kLeastQuotaMicros, quota);
  }
  if (resources.memory_limit > 0) {
    host_config["Memory"] = resources.memory_limit;
    host_config["MemorySwap"] = resources.memory_limit;  // equal means no swap
  }
}

}  // namespace

std::string_view to_string(model::ContainerRole part) {
  switch (part) {
    case model::ContainerRole::kInit: return "init";
    case model::ContainerRole::kSidecar: return "sidecar";
    case model::ContainerRole::kMain: return "main";
  }
  return "main";
}

model::ContainerRole from_part_label(std::string_view text) {
  if (text == "init") return model::ContainerRole::kInit;
  if (text == "sidecar") return model::ContainerRole::kSidecar;
  return model::ContainerRole::kMain;
}

InstancePlan make_plan(const model::Placement& placement, model::ResolvedPod pod, std::vector<int> gpus,
                       base::Money price) {
  InstancePlan plan;
  plan.tag = placement.tag.str();
  plan.gpus = std::move(gpus);
  plan.price_per_hour = price;
  if (pod.spec) {
    plan.hostname = hostname(pod.spec->key.name);
    plan.pod = pod.spec->key.to_string();
    plan.pod_id = pod.spec->key.name.str() + "_" + pod.spec->key.ns.str() + "(" + pod.spec->key.uid.str() + ")";
    plan.restart_policy = restart_label(*pod.spec);
    plan.grace = pod.spec->grace;
  }
  if (!pod.hostname.empty()) plan.hostname = std::move(pod.hostname);
  plan.public_ports = std::move(pod.public_ports);
  plan.containers = std::move(pod.containers);
  plan.pull_auth = std::move(pod.pull_auth);
  plan.volumes = std::move(pod.volumes);
  plan.files = std::move(pod.files);
  plan.spec = std::move(pod.spec);
  return plan;
}

std::string container_name(const std::string& tag, const std::string& container) { return tag + "-" + container; }

std::string encode_sandbox(const InstancePlan& plan, const HostConfig& host) {
  json out_labels = common_labels(plan, kRoleSandbox);
  std::string names;
  std::string parts;
  for (const model::ResolvedContainer& container : plan.containers) {
    const std::string_view comma = names.empty() ? "" : ",";
    names.append(comma).append(container.name.str());
    parts.append(comma).append(to_string(container.role));
  }
  out_labels[std::string(kLabelContainers)] = names;
  out_labels[std::string(kLabelParts)] = parts;
  out_labels[std::string(kLabelGpus)] = to_gpu_label(plan.gpus);
  out_labels[std::string(kLabelRestartPolicy)] = plan.restart_policy;
  out_labels[std::string(kLabelPrice)] = std::to_string(plan.price_per_hour.micros());

  json exposed = json::object();
  json bindings = json::object();
  for (const int port : plan.public_ports) {
    const std::string key = std::to_string(port) + "/tcp";
    exposed[key] = json::object();
    bindings[key] = json::array({json{{"HostIp", host.publish_address}, {"HostPort", ""}}});
  }

  json host_config = json::object();
  host_config["PortBindings"] = std::move(bindings);
  host_config["IpcMode"] = "shareable";  // the pod's containers join it
  host_config["RestartPolicy"] = {{"Name", "no"}};
  host_config["AutoRemove"] = false;
  // It runs nothing but our own program, and needs nothing.
  host_config["CapDrop"] = {"ALL"};
  host_config["SecurityOpt"] = {"no-new-privileges"};
  host_config["ReadonlyRootfs"] = true;
  host_config["LogConfig"] = {{"Type", "none"}};
  host_config["CpuShares"] = kLeastShares;
  if (has_memory_volumes(plan)) host_config["Mounts"] = encode_memory_volumes(plan);
  put_names(host_config, plan);

  json body = json::object();
  body["Image"] = sandbox_image_name();
  body["Entrypoint"] = {std::string(kSandboxProgram)};
  body["Hostname"] = plan.hostname;
  body["Labels"] = std::move(out_labels);
  body["ExposedPorts"] = std::move(exposed);
  body["StopTimeout"] = 1;
  body["HostConfig"] = std::move(host_config);
  return body.dump();
}

base::Result<std::string> encode_container(const InstancePlan& plan, size_t index, const Surroundings& around,
                                           const HostConfig& host) {
  const model::ResolvedContainer& container = plan.containers[index];
  json out_labels = common_labels(plan, kRoleContainer);
  out_labels[std::string(kLabelContainer)] = container.name;
  out_labels[std::string(kLabelPart)] = std::string(to_string(container.role));
  out_labels[std::string(kLabelOrder)] = std::to_string(index);
  if (container.resources.ephemeral_limit > 0) {
    out_labels[std::string(kLabelDiskLimit)] = std::to_string(container.resources.ephemeral_limit);
  }
  if (!container.termination_message_path.empty()) {
    const auto source = container.termination_message_from_logs ? kMessageFileOrLog : kMessageFile;
    out_labels[std::string(kLabelMessage)] = std::string(source);
  }

  json host_config = json::object();
  host_config["NetworkMode"] = "container:" + around.sandbox_id;
  host_config["IpcMode"] = "container:" + around.sandbox_id;
  if (plan.spec && plan.spec->extras && plan.spec->extras->share_processes) {
    host_config["PidMode"] = "container:" + around.sandbox_id;
  }
  host_config["RestartPolicy"] = {{"Name", "no"}};
  host_config["AutoRemove"] = false;  // the exit code would be lost, and the name stay taken for a moment
  put_log(host_config, host);
  put_resources(host_config, container.resources);
  put_gpus(host_config, plan, host);
  auto mounts = encode_mounts(plan, container, around.volumes);
  if (!mounts) return base::fail(std::move(mounts.error()));
  if (!mounts->empty()) host_config["Mounts"] = std::move(*mounts);

  json body = json::object();
  put_process(body, plan, container);
  put_security(body, host_config, plan, container, around.image_user);
  body["Env"] = environment(plan, container, host);
  body["Labels"] = std::move(out_labels);
  body["HostConfig"] = std::move(host_config);
  try {
    return body.dump();
  } catch (const json::exception&) {
    return base::fail(base::ErrorKind::kInvalid,
                      not_utf8(container) + " is not UTF-8, and cannot be given to a container");
  }
}

}  // namespace spillway::providers::docker
