#include "vk-provider/core/service_variables.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace spillway::core {
namespace {

std::string variable_name(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    if (c == '-') return '_';
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return text;
}

std::string_view upper(model::Protocol protocol) {
  switch (protocol) {
    case model::Protocol::kUdp: return "UDP";
    case model::Protocol::kSctp: return "SCTP";
    case model::Protocol::kTcp: break;
  }
  return "TCP";
}

std::string_view lower(model::Protocol protocol) {
  switch (protocol) {
    case model::Protocol::kUdp: return "udp";
    case model::Protocol::kSctp: return "sctp";
    case model::Protocol::kTcp: break;
  }
  return "tcp";
}

void add_service(std::map<std::string, std::string>& out, const model::Service& service) {
  const std::string prefix = variable_name(service.name);
  const bool ipv6 = service.cluster_ip.find(':') != std::string::npos;
  const std::string host = ipv6 ? "[" + service.cluster_ip + "]" : service.cluster_ip;
  out.emplace(prefix + "_SERVICE_HOST", service.cluster_ip);
  bool first = true;
  for (const model::ServicePort& port : service.ports) {
    const std::string number = std::to_string(port.port);
    const std::string url = fmt::format("{}://{}:{}", lower(port.protocol), host, number);
    if (std::exchange(first, false)) {
      out.emplace(prefix + "_SERVICE_PORT", number);
      out.emplace(prefix + "_PORT", url);
    }
    if (!port.name.empty()) out.emplace(prefix + "_SERVICE_PORT_" + variable_name(port.name), number);
    const std::string link = fmt::format("{}_PORT_{}_{}", prefix, number, upper(port.protocol));
    out.emplace(link, url);
    out.emplace(link + "_PROTO", lower(port.protocol));
    out.emplace(link + "_PORT", number);
    out.emplace(link + "_ADDR", service.cluster_ip);
  }
}

}  // namespace

std::map<std::string, std::string> service_variables(const std::vector<model::Service>& services) {
  std::map<std::string, std::string> out;
  for (const model::Service& service : services) {
    if (!service.cluster_ip.empty()) add_service(out, service);
  }
  return out;
}

}  // namespace spillway::core
