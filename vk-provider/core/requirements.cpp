#include "vk-provider/core/requirements.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "vk-provider/model/labels.hpp"

namespace spillway::core {
namespace {

using model::Capability;

// Every key that users may write under spillway.dev/.
constexpr std::array<std::string_view, 1> kUserAnnotations{model::kAnnotationPublicPorts};

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

std::optional<int> find_port(const model::PodSpec& pod, std::string_view word) {
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc{} && end == word.data() + word.size()) {
    return number >= 1 && number <= 65535 ? std::optional(number) : std::nullopt;
  }
  for (const model::ContainerSpec& container : pod.containers) {
    for (const model::ContainerPort& port : container.ports) {
      if (port.name == word) return port.port;
    }
  }
  return std::nullopt;
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
      needs.faults.push_back(
          fmt::format("metadata.annotations[{}]: found '{}'; allowed: port numbers from 1 to 65535 or "
                      "names of ports of the pod's containers, with commas between",
                      model::kAnnotationPublicPorts, word));
    }
  }
}

void check_annotations(const model::PodSpec& pod, Requirements& needs) {
  for (const auto& [key, value] : pod.annotations) {
    if (!key.starts_with(model::kUserPrefix)) continue;
    if (std::find(kUserAnnotations.begin(), kUserAnnotations.end(), key) != kUserAnnotations.end()) continue;
    needs.faults.push_back(
        fmt::format("metadata.annotations[{}]: unknown key; did you mean {}?", key, nearest_annotation(key)));
  }
}

void add_protocol_needs(const model::PodSpec& pod, Requirements& needs) {
  for (const int published : needs.public_ports) {
    model::Protocol protocol = model::Protocol::kTcp;
    for (const model::ContainerSpec& container : pod.containers) {
      for (const model::ContainerPort& port : container.ports) {
        if (port.port == published) protocol = port.protocol;
      }
    }
    if (protocol == model::Protocol::kTcp) needs.capabilities.add(Capability::kPortsTcp);
    if (protocol == model::Protocol::kUdp) needs.capabilities.add(Capability::kPortsUdp);
    if (protocol == model::Protocol::kSctp) {
      needs.faults.push_back(fmt::format("metadata.annotations[{}]: port {} is SCTP, which cannot be published",
                                         model::kAnnotationPublicPorts, published));
    }
  }
}

}  // namespace

Requirements compute_requirements(const model::PodSpec& pod, const std::vector<int>& profile_ports) {
  Requirements needs;
  needs.gpu_count = pod.gpu.count;
  needs.gpu_resource = pod.gpu.resource;
  for (const model::ContainerSpec& container : pod.containers) {
    const model::Resources& r = container.resources;
    needs.cpu_milli += r.cpu_request_milli > 0 ? r.cpu_request_milli : r.cpu_limit_milli;
    needs.memory += r.memory_request > 0 ? r.memory_request : r.memory_limit;
    if (!container.command.empty()) needs.capabilities.add(Capability::kEntrypoint);
    if (!container.working_dir.empty()) needs.capabilities.add(Capability::kWorkingDir);
    // A port of the profile concerns pods that have it.
    for (const model::ContainerPort& port : container.ports) {
      if (std::find(profile_ports.begin(), profile_ports.end(), port.port) != profile_ports.end()) {
        needs.public_ports.push_back(port.port);
      }
    }
  }
  if (pod.restart_policy != model::RestartPolicy::kNever) needs.capabilities.add(Capability::kRestartContainer);
  needs.capabilities.add(Capability::kExitCode);

  check_annotations(pod, needs);
  add_annotated_ports(pod, needs);
  std::sort(needs.public_ports.begin(), needs.public_ports.end());
  needs.public_ports.erase(std::unique(needs.public_ports.begin(), needs.public_ports.end()), needs.public_ports.end());
  add_protocol_needs(pod, needs);

  for (const model::FieldUse& use : pod.uses) {
    if (use.needs) {
      needs.capabilities.add(*use.needs);
    } else {
      needs.faults.push_back(use.path + ": " + use.why);
    }
  }
  return needs;
}

std::optional<std::string> refusal(const model::PodSpec& pod, const Requirements& requirements,
                                   const std::vector<ProviderAbility>& providers) {
  const auto can = [&](const ProviderAbility& p) { return p.capabilities.covers(requirements.capabilities); };
  if (requirements.faults.empty() && std::any_of(providers.begin(), providers.end(), can)) return std::nullopt;

  std::string message = "Pod was rejected: ";
  std::string separator;
  const auto add = [&](const std::string& part) {
    message += separator + part;
    separator = "; ";
  };
  for (const std::string& fault : requirements.faults) add(fault);

  // Every field that some provider lacks, with the providers that lack it.
  std::vector<std::pair<std::string, Capability>> wants;
  for (const model::FieldUse& use : pod.uses) {
    if (use.needs) wants.emplace_back(use.path, *use.needs);
  }
  for (size_t i = 0; i < static_cast<size_t>(Capability::kCount); ++i) {
    const auto capability = static_cast<Capability>(i);
    const bool named = std::any_of(wants.begin(), wants.end(), [&](const auto& w) { return w.second == capability; });
    if (requirements.capabilities.has(capability) && !named) wants.emplace_back("spec", capability);
  }
  for (const auto& [path, capability] : wants) {
    std::string lacking;
    for (const ProviderAbility& provider : providers) {
      if (!provider.capabilities.has(capability)) lacking += (lacking.empty() ? "" : ", ") + provider.name;
    }
    if (!lacking.empty())
      add(fmt::format("{}: needs {}, which provider {} lacks", path, to_string(capability), lacking));
  }
  return message;
}

}  // namespace spillway::core
