#include "vk-provider/daemon/config_profile.hpp"

#include <algorithm>
#include <array>

#include "vk-provider/daemon/config_promises.hpp"
#include "vk-provider/daemon/config_values.hpp"
#include "vk-provider/model/gpu_catalog.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::daemon {
namespace {

constexpr std::int64_t kMilli = 1000;
constexpr int kMaxPort = 65535;
constexpr std::size_t kMaxNodeName = 63;  // it is the value of the label kubernetes.io/hostname as well

struct Resource {
  std::string_view name;
  std::string_view fallback;  // empty: left out unless configured
  bool whole;                 // the API server takes whole numbers only
};
// How much may be bound to the node at once. There is no default for GPUs: how many may be rented is a matter of money.
constexpr std::array<Resource, 6> kResources{{{"cpu", "1000", false},
                                              {"memory", "4Ti", false},
                                              {"pods", "110", true},
                                              {"ephemeral-storage", "4Ti", false},
                                              {model::kResourceNvidiaGpu, "", true},
                                              {model::kResourceAmdGpu, "", true}}};

std::map<std::string, std::string> read_capacity(Reader& reader, const At& at) {
  std::map<std::string, std::string> out;
  Section section(reader, at);
  for (const Resource& resource : kResources) {
    const std::string allowed = resource.whole ? "a whole number" : "a quantity such as 64 or 500m or 256Gi";
    std::string text(resource.fallback);
    const At value = section.get(resource.name);
    if (reader.text(value, text, allowed)) {
      const auto milli = model::quantity_milli(text);
      // A quantity of 9 exabytes has no thousandths in 64 bits; its whole units do.
      const auto units = model::quantity_value(text);
      const bool fraction = milli && *milli % kMilli != 0;
      if (!units || *units < 0 || (resource.whole && fraction)) {
        reader.fault(value, "found " + describe(value.node) + "; allowed: " + allowed);
      }
    }
    if (!text.empty()) out[std::string(resource.name)] = text;
  }
  section.finish();
  return out;
}

using Entries = std::vector<std::pair<std::string, At>>;

std::map<std::string, std::string> read_labels(Reader& reader, const Entries& entries) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : entries) {
    std::string text;
    if (!reader.text(value, text, "text")) continue;
    if (!is_qualified_name(key)) {
      reader.fault(value, "found an invalid label name; allowed: name or example.com/name");
    } else if (!is_label_value(text)) {
      reader.fault(value,
                   "found " + describe(value.node) +
                       "; allowed: at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends");
    } else {
      out[key] = text;
    }
  }
  return out;
}

std::map<std::string, std::string> read_annotations(Reader& reader, const At& at) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : reader.entries(at, "a mapping of annotation to value")) {
    std::string text;
    if (!reader.text(value, text, "text")) continue;
    if (!is_qualified_name(key)) {
      reader.fault(value, "found an invalid annotation name; allowed: name or example.com/name");
    } else if (key.starts_with(model::kStatePrefix)) {
      reader.fault(value, "found an annotation that only the daemon writes; allowed: names that do not begin with " +
                              std::string(model::kStatePrefix));
    } else {
      out[key] = text;
    }
  }
  return out;
}

std::vector<model::CapacityType> read_capacity_types(Section& section) {
  using model::CapacityType;
  const std::vector<CapacityType> all = {CapacityType::kOnDemand, CapacityType::kSpot, CapacityType::kReserved};
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const CapacityType type : all) names.emplace_back(to_string(type));
  const std::string allowed = "a list of " + join(names);

  const At at = section.get("capacityTypes");
  Reader& reader = section.reader();
  std::vector<CapacityType> out;
  for (const At& entry : reader.list(at, allowed)) {
    std::string word;
    if (!reader.text(entry, word, allowed)) continue;
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) {
      reader.fault(entry, "found " + describe(entry.node) + "; allowed: " + join(names));
      continue;
    }
    out.push_back(all[static_cast<std::size_t>(found - names.begin())]);
  }
  if (at.present && at.node.IsSequence() && at.node.size() == 0) {
    reader.fault(at, "found an empty list; allowed: at least one of " + join(names));
  }
  return out.empty() ? model::OfferFilter().capacity_types : out;
}

/// Canonical names alone: an alias would promise more, or less, than what is then enforced. A name that the catalogue
/// does not have is taken as it is; an operator's own machines may have such GPUs.
void read_gpu_models(Section& section, std::vector<std::string>& out) {
  section.strings("gpuModels", out, "a list of GPU models such as H100 or L4");
  const At at = section.get("gpuModels");
  for (const std::string& name : out) {
    std::vector<std::string> meant;
    for (const model::GpuModel& gpu : model::gpu_models()) {
      const bool same = gpu.name == name || model::find_gpu(name) == &gpu || model::find_gpu(name, gpu.memory) == &gpu;
      if (same) meant.emplace_back(gpu.name);
    }
    if (meant.empty() || std::ranges::find(meant, name) != meant.end()) continue;
    section.reader().fault(at, "found \"" + name + "\"; allowed: " + join(meant));
  }
}

model::OfferFilter read_filter(Reader& reader, const At& at, const std::vector<std::string>& providers) {
  model::OfferFilter out;
  Section section(reader, at);
  std::vector<std::string> names;
  section.strings("providers", names, "a list of names of providers[]");
  for (const std::string& name : names) {
    if (std::ranges::find(providers, name) == providers.end()) {
      const std::string known = providers.empty() ? "names of providers[]" : join(providers);
      reader.fault(section.get("providers"),
                   std::string("found the provider \"").append(name).append("\"; allowed: ").append(known));
    }
    out.providers.emplace_back(name);
  }
  section.strings("regions", out.regions, "a list of regions");
  read_gpu_models(section, out.gpu_models);
  std::string memory;
  const At memory_at = section.get("minGpuMemory");
  const std::string allowed = "a quantity such as 24Gi";
  if (reader.text(memory_at, memory, allowed)) {
    const auto bytes = model::quantity_value(memory);
    if (!bytes || *bytes < 0) reader.fault(memory_at, "found " + describe(memory_at.node) + "; allowed: " + allowed);
    out.min_gpu_memory = std::max<std::int64_t>(bytes.value_or(0), 0);
  }
  out.capacity_types = read_capacity_types(section);
  section.finish();
  return out;
}

std::vector<int> read_ports(Section& section) {
  const std::string allowed = "a list of port numbers from 1 to 65535";
  std::vector<std::string> words;
  section.strings("publicPorts", words, allowed);
  std::vector<int> out;
  for (const std::string& word : words) {
    const bool number = word.size() <= 5 && word.find_first_not_of("0123456789") == std::string::npos;
    const int port = number ? std::stoi(word) : 0;
    if (port < 1 || port > kMaxPort) {
      section.reader().fault(section.get("publicPorts"),
                             std::string("found \"").append(word).append("\"; allowed: ").append(allowed));
    } else {
      out.push_back(port);
    }
  }
  return out;
}

std::string read_internal_ip(Section& section, const ConfigSources& sources) {
  std::string ip = "127.0.0.1";
  std::string from = "internalIP";
  for (const char* name : {"POD_IP", "SPILLWAY_NODE_IP"}) {
    const auto value = sources.environment ? sources.environment(name) : std::nullopt;
    if (!value || value->empty()) continue;
    ip = *value;
    from = name;
  }
  const At at = section.get("internalIP");
  if (section.reader().text(at, ip, "an IP address")) from = "internalIP";
  if (!is_ip_address(ip)) {
    const std::string where = from == "internalIP" ? "" : " in the environment variable " + from;
    section.reader().fault(at, "found \"" + ip + "\"" + where + "; allowed: an IPv4 or IPv6 address");
  }
  return ip;
}

model::NodeProfile read_profile(Reader& reader, const At& at, const std::vector<std::string>& providers,
                                const ConfigSources& sources) {
  model::NodeProfile out;
  Section section(reader, at);
  const At name = section.require("name", "a name for the node");
  if (reader.text(name, out.name)) {
    const std::string problem = node_name_problem(out.name);
    if (!problem.empty()) reader.fault(name, problem);
  }
  const Entries labels = reader.entries(section.get("labels"), "a mapping of label to value");
  out.labels = read_labels(reader, labels);
  out.annotations = read_annotations(reader, section.get("annotations"));
  out.capacity = read_capacity(reader, section.get("capacity"));
  section.boolean("providerTaint", out.provider_taint);
  out.internal_ip = read_internal_ip(section, sources);

  std::string price;
  const At price_at = section.get("maxPricePerHour");
  const std::string allowed = "dollars per hour such as 2.50, of at most 6 decimals";
  if (reader.text(price_at, price, allowed)) {
    out.max_price_per_hour = base::Money::from_dollars(price);
    if (!out.max_price_per_hour) {
      reader.fault(price_at, "found " + describe(price_at.node) + "; allowed: " + allowed);
    }
  }
  out.offers = read_filter(reader, section.get("offers"), providers);
  out.public_ports = read_ports(section);
  section.finish();

  for (const BrokenPromise& promise : broken_promises(out)) {
    const auto entry = std::ranges::find(labels, promise.label, &Entries::value_type::first);
    reader.fault(entry->second, promise.message);
  }
  return out;
}

}  // namespace

std::string node_name_problem(const std::string& name) {
  if (is_dns_subdomain(name) && name.size() <= kMaxNodeName) return "";
  return "found \"" + name + "\"; allowed: at most 63 of a-z, 0-9, '-' and '.', a letter or digit at both ends";
}

std::vector<model::NodeProfile> read_profiles(Reader& reader, const At& nodes,
                                              const std::vector<std::string>& providers, const ConfigSources& sources) {
  std::vector<model::NodeProfile> out;
  for (const At& at : reader.list(nodes, "a list of node profiles")) {
    model::NodeProfile profile = read_profile(reader, at, providers, sources);
    if (!profile.name.empty() && std::ranges::find(out, profile.name, &model::NodeProfile::name) != out.end()) {
      reader.fault(at,
                   "found the name \"" + profile.name + "\" a second time; allowed: a name of its own for each node");
    }
    out.push_back(std::move(profile));
  }
  return out;
}

}  // namespace spillway::daemon
