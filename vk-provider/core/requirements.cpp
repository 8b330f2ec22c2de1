#include "vk-provider/core/requirements.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "vk-provider/core/references.hpp"
#include "vk-provider/core/wishes.hpp"
#include "vk-provider/model/image_name.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/pod_resources.hpp"

namespace spillway::core {
namespace {

using model::Capability;

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

const base::SharedList<model::ContainerSpec>& init_of(const model::PodSpec& pod) {
  static const base::SharedList<model::ContainerSpec> none;
  return pod.extras ? pod.extras->init_containers : none;
}

/// Calls f(port, container) for every port of a container that runs as long as the pod does.
template <class F>
void each_port(const model::PodSpec& pod, F f) {
  for (const model::ContainerSpec& init : init_of(pod)) {
    if (!model::is_sidecar(init)) continue;
    for (const model::ContainerPort& port : init.ports) f(port);
  }
  for (const model::ContainerSpec& container : pod.containers) {
    for (const model::ContainerPort& port : container.ports) f(port);
  }
}

std::optional<int> find_port(const model::PodSpec& pod, std::string_view word) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc{} && end == word.data() + word.size()) {
    return number >= 1 && number <= 65535 ? std::optional(number) : std::nullopt;
  }
  std::optional<int> found;
  each_port(pod, [&](const model::ContainerPort& port) {
    if (!found && port.name == word) found = port.port;
  });
  return found;
}

void add_annotated_ports(const model::PodSpec& pod, Requirements& needs) {
  const auto it = pod.annotations.find(std::string(model::kAnnotationPublicPorts));
  if (it == pod.annotations.end()) return;
  std::string_view rest = it->second;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view word = trim(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    if (word.empty()) continue;
    if (const auto port = find_port(pod, word)) {
      needs.public_ports.push_back(*port);
    } else {
      needs.faults.push_back({annotation_path(it->first),
                              fmt::format("found '{}'; allowed: port numbers from 1 to 65535 or names of ports of the "
                                          "pod's containers, with commas between",
                                          word)});
    }
  }
}

void add_wishes(const model::PodSpec& pod, Requirements& needs) {
  ReadWishes read = read_wishes(pod.annotations, pod.gpu);
  needs.wishes = std::move(read.wishes);
  std::ranges::move(read.faults, std::back_inserter(needs.faults));
  const auto token = pod.annotations.find(std::string(model::kAnnotationSendToken));
  if (token != pod.annotations.end() && token->second != "true" && token->second != "false") {
    needs.faults.push_back(
        {annotation_path(token->first), fmt::format("found '{}'; allowed: \"true\" or \"false\"", token->second)});
  }
}

bool carries_secrets(const model::PodSpec& pod) {
  const References refers = references(pod);
  return !refers.tokens.empty() || (pod.extras && !pod.extras->pull_secrets.empty()) ||
         std::ranges::any_of(refers.config,
                             [](const ConfigSource& s) { return s.kind == model::ConfigRef::Kind::kSecret; });
}

void imply(Requirements& needs, std::string path, Capability capability, std::string_view why) {
  needs.capabilities.add(capability);
  model::FieldUse& use = needs.implied.emplace_back();
  use.path = std::move(path);
  use.needs = capability;
  use.why = why;
}

void add_protocol_needs(const model::PodSpec& pod, Requirements& needs) {
  const std::string path = annotation_path(model::kAnnotationPublicPorts);
  bool tcp = false;
  bool udp = false;
  for (const int published : needs.public_ports) {
    model::Protocol protocol = model::Protocol::kTcp;
    each_port(pod, [&](const model::ContainerPort& port) {
      if (port.port == published) protocol = port.protocol;
    });
    tcp = tcp || protocol == model::Protocol::kTcp;
    udp = udp || protocol == model::Protocol::kUdp;
    if (protocol == model::Protocol::kSctp) {
      needs.faults.push_back({path, fmt::format("port {} is SCTP, which cannot be published", published)});
    }
  }
  if (tcp) imply(needs, path, Capability::kPortsTcp, "the provider has to publish TCP ports");
  if (udp) imply(needs, path, Capability::kPortsUdp, "the provider has to publish UDP ports");
}

/// Of one resource. The pod's own request wins; its limit stands for it only where no container asks for anything.
std::int64_t needed(const model::PodSpec& pod, std::int64_t model::Resources::* request,
                    std::int64_t model::Resources::* limit) {
  const auto asked = [&](const model::ContainerSpec& c) { return c.resources.*request; };
  const auto asked_or_limit = [&](const model::ContainerSpec& c) {
    return c.resources.*request > 0 ? c.resources.*request : c.resources.*limit;
  };
  const model::Resources* const own = pod.extras && pod.extras->resources ? &*pod.extras->resources : nullptr;
  if (own != nullptr && own->*request > 0) return own->*request;
  if (own == nullptr || own->*limit == 0) return model::at_once(init_of(pod), pod.containers, asked_or_limit);
  const std::int64_t sum = model::at_once(init_of(pod), pod.containers, asked);
  return sum > 0 ? sum : own->*limit;
}

void add_container_needs(const model::ContainerSpec& container, const std::string& path, Requirements& needs) {
  if (!container.command.empty()) {
    imply(needs, path + ".command", Capability::kEntrypoint, "the provider has to replace the image's entrypoint");
  }
  if (!container.working_dir.empty()) {
    imply(needs, path + ".workingDir", Capability::kWorkingDir, "the provider has to set the working directory");
  }
  if (auto fault = model::image_name_fault(container.image.str())) {
    needs.bad_images.push_back({path + ".image", std::move(*fault)});
  }
}

}  // namespace

Requirements compute_requirements(const model::PodSpec& pod, const std::vector<int>& profile_ports) {
  Requirements needs;
  needs.gpu_count = pod.gpu.count;
  needs.gpu_resource = pod.gpu.resource;
  needs.cpu_milli = needed(pod, &model::Resources::cpu_request_milli, &model::Resources::cpu_limit_milli);
  needs.memory = needed(pod, &model::Resources::memory_request, &model::Resources::memory_limit);
  const auto add_list = [&](const auto& list, std::string_view path) {
    for (size_t i = 0; i < list.size(); ++i) add_container_needs(list[i], fmt::format("{}[{}]", path, i), needs);
  };
  add_list(init_of(pod), "spec.initContainers");
  add_list(pod.containers, "spec.containers");
  // A port of the profile concerns pods that have it.
  each_port(pod, [&](const model::ContainerPort& port) {
    if (std::find(profile_ports.begin(), profile_ports.end(), port.port) != profile_ports.end()) {
      needs.public_ports.push_back(port.port);
    }
  });
  if (pod.restart_policy != model::RestartPolicy::kNever) {
    imply(needs, "spec.restartPolicy", Capability::kRestartContainer, "the provider has to start containers again");
  }
  imply(needs, "spec.containers", Capability::kExitCode, "the provider has to tell how containers end");

  add_wishes(pod, needs);
  needs.carries_secrets = carries_secrets(pod);
  add_annotated_ports(pod, needs);
  std::sort(needs.public_ports.begin(), needs.public_ports.end());
  needs.public_ports.erase(std::unique(needs.public_ports.begin(), needs.public_ports.end()), needs.public_ports.end());
  add_protocol_needs(pod, needs);

  for (const model::FieldUse& use : pod.uses) {
    if (use.needs) {
      needs.capabilities.add(*use.needs);
    } else {
      needs.faults.push_back({use.path, use.why});
    }
  }
  return needs;
}

}  // namespace spillway::core
