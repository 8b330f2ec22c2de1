#include "vk-provider/core/requirements.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "vk-provider/model/image_name.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/pod_resources.hpp"

namespace spillway::core {
namespace {

using model::Capability;

// Every key that users may write under spillway.dev/.
constexpr std::array<std::string_view, 2> kUserAnnotations{model::kAnnotationPublicPorts, model::kAnnotationSendToken};

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::string_view nearest_annotation(std::string_view key) {
  return *std::min_element(kUserAnnotations.begin(), kUserAnnotations.end(),
                           [&](auto a, auto b) { return edit_distance(key, a) < edit_distance(key, b); });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string annotation_path(std::string_view key) { return fmt::format("metadata.annotations[{}]", key); }

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

void check_annotations(const model::PodSpec& pod, Requirements& needs) {
  for (const auto& [key, value] : pod.annotations) {
    if (!key.starts_with(model::kUserPrefix)) continue;
    if (std::find(kUserAnnotations.begin(), kUserAnnotations.end(), key) == kUserAnnotations.end()) {
      needs.faults.push_back(
          {annotation_path(key), fmt::format("unknown key; did you mean {}?", nearest_annotation(key))});
    } else if (key == model::kAnnotationSendToken && value != "true" && value != "false") {
      needs.faults.push_back({annotation_path(key), fmt::format("found '{}'; allowed: \"true\" or \"false\"", value)});
    }
  }
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

  check_annotations(pod, needs);
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
