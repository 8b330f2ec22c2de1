#include "vk-provider/core/endpoint_slices.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "vk-provider/core/container_order.hpp"
#include "vk-provider/core/pod_status.hpp"

namespace spillway::core {
namespace {

using model::Endpoint;
using model::EndpointPort;
using model::EndpointService;
using model::EndpointServicePort;
using model::EndpointSlice;

/// The slices of one Service, before they have names: by address family and ports.
using PortSets = std::map<std::pair<bool, std::vector<EndpointPort>>, std::vector<Endpoint>>;

/// FNV-1a, with a mark after each part.
class NameHash {
 public:
  NameHash& mix(std::string_view text) {
    for (const char c : text) step(static_cast<unsigned char>(c));
    return step(0xff);
  }
  NameHash& mix(std::size_t number) { return mix(std::to_string(number)); }
  std::uint64_t value() const { return hash_; }

 private:
  NameHash& step(unsigned char byte) {
    constexpr std::uint64_t kPrime = 1099511628211ULL;
    hash_ = (hash_ ^ byte) * kPrime;
    return *this;
  }
  std::uint64_t hash_ = 14695981039346656037ULL;
};

bool selects(const EndpointService& service, const EndpointPod& pod) {
  if (service.selector.empty() || pod.spec->key.ns != service.ns) return false;
  return std::ranges::all_of(service.selector, [&](const auto& label) {
    return pod.labels.find("," + label.first + "=" + label.second + ",") != std::string::npos;
  });
}

/// Those that run as long as the pod does: main containers, then sidecars, as the built-in controller looks.
template <class Visit>
void each_lasting_port(const model::PodSpec& pod, Visit visit) {
  for (const model::ContainerSpec& container : pod.containers) {
    for (const model::ContainerPort& port : container.ports) visit(port);
  }
  for (const model::ContainerSpec& container : init_containers(pod)) {
    if (container.restart_policy != model::RestartPolicy::kAlways) continue;
    for (const model::ContainerPort& port : container.ports) visit(port);
  }
}

/// 0: the pod has no port of that name.
int target_of(const EndpointServicePort& port, const model::PodSpec& pod) {
  if (port.target != 0) return port.target;
  int found = 0;
  each_lasting_port(pod, [&](const model::ContainerPort& own) {
    if (found == 0 && own.name == port.target_name && own.protocol == port.protocol) found = own.port;
  });
  return found;
}

/// A port is published with the protocol that a container declares; undeclared it is TCP.
bool speaks(const model::PodSpec& pod, int target, model::Protocol protocol) {
  bool declared = false;
  bool same = false;
  each_lasting_port(pod, [&](const model::ContainerPort& own) {
    if (own.port != target) return;
    declared = true;
    same = same || own.protocol == protocol;
  });
  return declared ? same : protocol == model::Protocol::kTcp;
}

void set_conditions(Endpoint& endpoint, const EndpointService& service, bool serving, bool terminating) {
  endpoint.serving = serving;
  endpoint.terminating = terminating;
  endpoint.ready = service.publish_not_ready || (serving && !terminating);
}

/// Works out one Service, pod by pod.
class Planner {
 public:
  Planner(const EndpointScope& scope, const EndpointService& service) : scope_(scope), service_(service) {
    gaps_.resize(service.ports.size());
    reached_.resize(service.ports.size(), false);
  }

  void add(const EndpointPod& pod) {
    std::map<std::pair<bool, std::string>, std::vector<EndpointPort>> by_address;
    for (size_t i = 0; i < service_.ports.size(); ++i) add_port(pod, i, by_address);
    for (auto& [address, ports] : by_address) {
      std::ranges::sort(ports);
      Endpoint endpoint = of(pod);
      endpoint.address = address.second;
      set_conditions(endpoint, service_, pod.ready, pod.terminating);
      sets_[{address.first, std::move(ports)}].push_back(std::move(endpoint));
    }
  }

  /// As it stands in our slices, as far as the Service still has its ports.
  void keep(const EndpointPod& pod, const std::vector<const EndpointSlice*>& existing) {
    unknown_ = true;
    for (const EndpointSlice* slice : existing) {
      if (slice->ns != service_.ns || slice->service != service_.name || slice->service_uid != service_.uid) continue;
      std::vector<EndpointPort> ports = slice->ports;
      std::erase_if(ports, [this](const EndpointPort& port) { return !has_port(port); });
      if (ports.empty()) continue;
      for (const Endpoint& was : slice->endpoints) {
        if (was.pod_uid != pod.spec->key.uid) continue;
        Endpoint endpoint = was;
        set_conditions(endpoint, service_, was.serving, pod.terminating);
        sets_[{slice->ipv6, ports}].push_back(std::move(endpoint));
      }
    }
  }

  EndpointPlan finish() {
    EndpointPlan plan;
    for (auto& [key, endpoints] : sets_) {
      std::ranges::sort(endpoints);
      const auto same = std::ranges::unique(endpoints);
      endpoints.erase(same.begin(), same.end());
      for (size_t begin = 0; begin < endpoints.size(); begin += kEndpointsPerSlice) {
        EndpointSlice& slice = plan.slices.emplace_back(make_slice(key.first, key.second, begin / kEndpointsPerSlice));
        const size_t end = std::min(endpoints.size(), begin + kEndpointsPerSlice);
        for (size_t i = begin; i < end; ++i) slice.endpoints.push_back(std::move(endpoints[i]));
      }
    }
    std::ranges::sort(plan.slices, {}, &EndpointSlice::name);
    for (size_t i = 0; i < gaps_.size(); ++i) {
      if (gaps_[i] && !reached_[i] && !unknown_) plan.gaps.push_back(std::move(*gaps_[i]));
    }
    return plan;
  }

 private:
  using ByAddress = std::map<std::pair<bool, std::string>, std::vector<EndpointPort>>;

  void add_port(const EndpointPod& pod, size_t index, ByAddress& by_address) {
    const EndpointServicePort& wanted = service_.ports[index];
    const int target = target_of(wanted, *pod.spec);
    if (target == 0) return;
    bool published = false;
    for (const model::InstancePort& port : pod.ports) {
      if (port.container_port != target) continue;
      published = true;
      if (!speaks(*pod.spec, target, wanted.protocol)) {
        note_gap(index, EndpointGap::Why::kProtocol, target);
        continue;
      }
      const auto address = endpoint_address(port.host);
      if (!address || !(address->ipv6 ? service_.ipv6 : service_.ipv4)) {
        note_gap(index, EndpointGap::Why::kAddress, target, port.host);
        continue;
      }
      reached_[index] = true;
      EndpointPort out;
      out.name = wanted.name;
      out.protocol = wanted.protocol;
      out.port = port.public_port;
      out.app_protocol = wanted.app_protocol;
      by_address[{address->ipv6, address->text}].push_back(std::move(out));
    }
    if (!published && !pod.terminating) note_gap(index, EndpointGap::Why::kNotPublished, target);
  }

  /// Of several reasons the one that is nearest to being reached; of equal ones the first in order of their words, so
  /// that the order of the pods has no effect.
  void note_gap(size_t index, EndpointGap::Why why, int target, std::string detail = {}) {
    EndpointGap gap;
    gap.why = why;
    gap.service = &service_;
    gap.port = index;
    gap.target = target;
    gap.detail = std::move(detail);
    auto& known = gaps_[index];
    const auto rank = [](const EndpointGap& g) { return std::tuple(-static_cast<int>(g.why), g.target, g.detail); };
    if (!known || rank(gap) < rank(*known)) known = std::move(gap);
  }

  bool has_port(const EndpointPort& port) const {
    return std::ranges::any_of(service_.ports, [&](const EndpointServicePort& own) {
      return own.name == port.name && own.protocol == port.protocol;
    });
  }

  Endpoint of(const EndpointPod& pod) const {
    Endpoint endpoint;
    endpoint.pod_name = pod.spec->key.name;
    endpoint.pod_uid = pod.spec->key.uid;
    endpoint.node = pod.spec->node_name;
    if (const auto zone = scope_.zones.find(endpoint.node); zone != scope_.zones.end()) endpoint.zone = zone->second;
    // Its name in the DNS: a pod of a StatefulSet, for one.
    const auto& extras = pod.spec->extras;
    if (extras && extras->subdomain == service_.name) endpoint.hostname = extras->hostname;
    return endpoint;
  }

  EndpointSlice make_slice(bool ipv6, const std::vector<EndpointPort>& ports, size_t number) const {
    EndpointSlice slice;
    slice.ns = service_.ns;
    slice.service = service_.name;
    slice.service_uid = service_.uid;
    slice.managed_by = kEndpointManager;
    slice.installation = scope_.installation;
    slice.headless = service_.headless;
    slice.ipv6 = ipv6;
    slice.ports = ports;
    NameHash hash;
    hash.mix(scope_.installation).mix(service_.uid).mix(ipv6 ? "6" : "4").mix(number);
    for (const EndpointPort& port : ports) {
      hash.mix(port.name).mix(static_cast<size_t>(port.protocol)).mix(static_cast<size_t>(port.port));
      hash.mix(port.app_protocol);
    }
    slice.name = fmt::format("{}-{:016x}", service_.name, hash.value());
    return slice;
  }

  const EndpointScope& scope_;
  const EndpointService& service_;
  PortSets sets_;
  std::vector<std::optional<EndpointGap>> gaps_;
  std::vector<bool> reached_;
  bool unknown_ = false;
};

bool is_usable_v4(const in_addr& address) {
  const std::uint32_t host = ntohl(address.s_addr);
  const std::uint32_t first = host >> 24U;
  const bool link_local = (host >> 16U) == 0xa9feU;  // 169.254/16
  constexpr std::uint32_t kLoopback = 127;
  constexpr std::uint32_t kMulticast = 224;  // and all above it, up to broadcast
  return first != 0 && first != kLoopback && !link_local && first < kMulticast;
}

bool is_usable_v6(const in6_addr& address) {
  return !IN6_IS_ADDR_UNSPECIFIED(&address) && !IN6_IS_ADDR_LOOPBACK(&address) && !IN6_IS_ADDR_LINKLOCAL(&address) &&
         !IN6_IS_ADDR_MULTICAST(&address) && !IN6_IS_ADDR_V4MAPPED(&address);
}

std::string port_text(const EndpointServicePort& port) {
  return port.name.empty() ? std::to_string(port.port) : fmt::format("{} ({})", port.name, port.port);
}

}  // namespace

std::optional<EndpointAddress> endpoint_address(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    if (!is_usable_v4(v4)) return std::nullopt;
    return EndpointAddress{host, false};
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1 || !is_usable_v6(v6)) return std::nullopt;
  // One spelling for one address.
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_ntop(AF_INET6, &v6, text.data(), text.size()) == nullptr) return std::nullopt;
  return EndpointAddress{text.data(), true};
}

std::optional<EndpointPod> endpoint_pod(const model::PodRecord& record, const base::SharedText& labels, base::Now now) {
  if (record.api_gone || record.outcome || record.placeholder || labels.empty()) return std::nullopt;
  EndpointPod out;
  out.spec = record.spec;
  out.labels = labels;
  out.terminating = record.deleting;
  const bool shown_running = record.observed.status.phase == model::PodPhase::kRunning;
  if (const auto* running = std::get_if<model::Running>(&record.stage)) {
    if (record.provider.address_routable && !running->instance.address.empty()) return std::nullopt;
    if (const auto status = wanted_status(record, {}, now)) {
      if (status->phase != model::PodPhase::kRunning) return std::nullopt;
      out.known = true;
      out.ready = status->condition(model::ConditionType::kReady).status == model::PodCondition::Status::kTrue;
      out.ports = running->instance.ports;
      std::ranges::sort(out.ports, {}, [](const model::InstancePort& port) {
        return std::tie(port.container_port, port.host, port.public_port);
      });
      return out;
    }
  } else if (const auto* stopping = std::get_if<model::Stopping>(&record.stage)) {
    // It drains: what has connected is served until the provider has ended it.
    if (stopping->why != model::StopReason::kDeleted || stopping->gone) return std::nullopt;
  } else if (const auto* creating = std::get_if<model::Creating>(&record.stage)) {
    if (!creating->known) return std::nullopt;
  } else if (const auto* waiting = std::get_if<model::Waiting>(&record.stage)) {
    if (waiting->why != model::WaitReason::kUnreadableState) return std::nullopt;
  } else if (!std::holds_alternative<model::Admitted>(record.stage) &&
             !std::holds_alternative<model::Booting>(record.stage)) {
    return std::nullopt;
  }
  // It ran when this process began, or its provider has no word for it at the moment.
  if (!shown_running || !record.observed.status.pod_ip.empty()) return std::nullopt;
  return out;
}

std::string explain(const EndpointGap& gap) {
  const std::string port = port_text(gap.service->ports[gap.port]);
  switch (gap.why) {
    case EndpointGap::Why::kNotPublished: break;
    case EndpointGap::Why::kProtocol:
      return fmt::format(
          "port {} reaches no rented pod: their port {} is not published with the Service's protocol; declare it under "
          "the container's ports with that protocol",
          port, gap.target);
    case EndpointGap::Why::kAddress:
      return fmt::format(
          "port {} reaches no rented pod: their port {} is published at {}, which is no address of the Service's IP "
          "families that an endpoint may have",
          port, gap.target, gap.detail);
  }
  return fmt::format(
      "port {} reaches no rented pod: none publishes its port {}; to publish it, put the annotation "
      "spillway.dev/public-ports: \"{}\" on the pod template, or the port into publicPorts of the node's profile",
      port, gap.target, gap.target);
}

EndpointPlan plan_endpoints(const EndpointScope& scope, const model::EndpointService& service,
                            const std::vector<const EndpointPod*>& pods,
                            const std::vector<const model::EndpointSlice*>& existing) {
  Planner planner(scope, service);
  for (const EndpointPod* pod : pods) {
    if (!selects(service, *pod)) continue;
    if (pod->known) {
      planner.add(*pod);
    } else {
      planner.keep(*pod, existing);
    }
  }
  return planner.finish();
}

}  // namespace spillway::core
