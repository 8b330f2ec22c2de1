#include "providers/docker/config.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <boost/asio/ip/address.hpp>

#include "providers/docker/config_fields.hpp"
#include "vk-provider/model/gpu_catalog.hpp"

namespace spillway::providers::docker {
namespace {

namespace asio = boost::asio;

constexpr int kMostGpus = 64;
constexpr int kMostInstances = 10'000;
constexpr std::int64_t kLeastLogLimit = 1LL << 20;
// The kernel's limit of a unix socket's path, less its final zero.
constexpr size_t kLongestSocketPath = 107;

bool is_label(std::string_view text, size_t longest, bool upper_and_dots) {
  const auto alnum = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (upper_and_dots && c >= 'A' && c <= 'Z');
  };
  if (text.empty() || text.size() > longest || !alnum(text.front()) || !alnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return alnum(c) || c == '-' || (upper_and_dots && (c == '.' || c == '_')); });
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

/// `host:port` or `[::1]:port`.
bool split_host_port(std::string_view text, net::Endpoint& endpoint) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]/@") != std::string_view::npos) {
    return false;
  }
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || error != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535) {
    return false;
  }
  endpoint.host = host;
  endpoint.port = static_cast<std::uint16_t>(number);
  return true;
}

void read_tls(Fields& fields, HostConfig& host, std::vector<provider::ConfigFault>& faults, bool& present) {
  const nlohmann::json* const node = fields.find("tls");
  present = node != nullptr;
  if (!present) return;
  if (!node->is_object()) {
    fields.fault("tls", "is " + shown(*node) + "; allowed is a mapping with caFile, certFile and keyFile");
    return;
  }
  Fields tls(*node, fields.path_of("tls"), faults);
  host.tls.ca = tls.text("caFile").value_or("");
  host.tls.cert = tls.text("certFile").value_or("");
  host.tls.key = tls.text("keyFile").value_or("");
  if (host.tls.cert.empty() != host.tls.key.empty()) {
    tls.fault(host.tls.cert.empty() ? "certFile" : "keyFile",
              "is missing; a client certificate needs both certFile and keyFile");
  }
  tls.finish();
}

void read_endpoint(Fields& fields, HostConfig& host, std::vector<provider::ConfigFault>& faults) {
  const std::string_view wanted = "unix:///path/of/the/socket or tcp://host:port";
  bool tls = false;
  read_tls(fields, host, faults, tls);
  const auto text = fields.text("endpoint", true);
  if (!text) return;
  constexpr std::string_view kUnix = "unix://";
  constexpr std::string_view kTcp = "tcp://";
  if (text->starts_with(kUnix)) {
    host.endpoint.scheme = net::Endpoint::Scheme::kUnix;
    host.endpoint.unix_path = text->substr(kUnix.size());
    if (!host.endpoint.unix_path.starts_with('/')) {
      fields.fault("endpoint", "is " + *text + "; the path of a socket must be absolute: unix:///var/run/docker.sock");
    } else if (host.endpoint.unix_path.size() > kLongestSocketPath) {
      fields.fault("endpoint", "names a path of " + std::to_string(host.endpoint.unix_path.size()) +
                                   " bytes; the kernel allows " + std::to_string(kLongestSocketPath));
    }
    if (tls) fields.fault("tls", "stands beside a unix socket; it is for tcp:// endpoints");
    return;
  }
  if (!text->starts_with(kTcp) || !split_host_port(std::string_view(*text).substr(kTcp.size()), host.endpoint)) {
    fields.fault("endpoint", "is " + *text + "; allowed is " + std::string(wanted));
    return;
  }
  host.endpoint.scheme = tls ? net::Endpoint::Scheme::kHttps : net::Endpoint::Scheme::kHttp;
  if (!tls && !is_loopback(host.endpoint.host)) {
    fields.fault("tls", "is missing; whoever reaches an engine owns its machine, so " + *text +
                            " needs tls with caFile, certFile and keyFile (plain http is for loopback only)");
  }
}

void read_gpu_model(Fields& fields, HostConfig& host) {
  const auto text = fields.text("gpuModel");
  if (!text) {
    if (host.gpu_count > 0) fields.fault("gpuModel", "is missing; a host with GPUs must name their model");
    return;
  }
  if (const model::GpuModel* const known = model::find_gpu(*text, host.gpu_memory)) {
    host.gpu_model = known->name;
    if (host.gpu_memory == 0) host.gpu_memory = known->memory;
    return;
  }
  const auto models = model::gpu_models();
  const bool other_memory = std::any_of(models.begin(), models.end(), [&](const model::GpuModel& m) {
    return model::find_gpu(*text, m.memory) != nullptr;
  });
  if (other_memory) {
    fields.fault("gpuModel", "is " + *text +
                                 ", which exists with several sizes of memory; set gpuMemory to the size of "
                                 "one GPU, such as 80Gi");
  } else if (!is_label(*text, 63, true)) {
    fields.fault("gpuModel", "is " + *text + "; allowed is a name of at most 63 letters, digits, '-', '_' and '.'");
  }
  host.gpu_model = *text;
}

void read_publish_address(Fields& fields, HostConfig& host) {
  const auto text = fields.text("publishAddress");
  if (!text) return;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(*text, error);
  if (error || address.is_unspecified()) {
    fields.fault("publishAddress", "is " + *text + "; allowed is one IP address of the host, at which its published " +
                                       "ports can be reached");
    return;
  }
  host.publish_address = *text;
}

HostConfig read_host(const nlohmann::json& node, const std::string& path, std::vector<provider::ConfigFault>& faults) {
  HostConfig host;
  if (!node.is_object()) {
    faults.emplace_back(path, "is " + shown(node) + "; allowed is a mapping that describes one engine");
    return host;
  }
  Fields fields(node, path, faults);
  host.name = fields.text("name", true).value_or("");
  if (!host.name.empty() && !is_label(host.name, 63, false)) {
    fields.fault("name", "is " + host.name + "; allowed are lower-case letters, digits and '-', at most 63");
  }
  read_endpoint(fields, host, faults);
  host.region = fields.text("region").value_or("");
  host.gpu_count = fields.count("gpuCount", 0, kMostGpus).value_or(0);
  host.gpu_memory = fields.bytes("gpuMemory").value_or(0);
  read_gpu_model(fields, host);
  host.price_per_hour = fields.price("pricePerHour", true).value_or(base::Money());
  host.price_per_gpu_hour = fields.price("pricePerGpuHour", host.gpu_count > 0).value_or(base::Money());
  host.max_instances = fields.count("maxInstances", 1, kMostInstances).value_or(host.max_instances);
  host.cpu_milli = fields.cpu_milli("cpu").value_or(0);
  host.memory = fields.bytes("memory").value_or(0);
  host.log_limit = fields.bytes("logLimit").value_or(host.log_limit);
  if (host.log_limit < kLeastLogLimit) fields.fault("logLimit", "is too small to be of use; allowed is 1Mi or more");
  read_publish_address(fields, host);
  const auto request = fields.choice("gpuRequest", {"deviceRequests", "environment"});
  if (request) host.gpu_request = static_cast<GpuRequest>(*request);
  const auto variable = fields.text("gpuEnvironmentVariable");
  if (variable) host.gpu_environment_variable = *variable;
  if (variable && variable->find('=') != std::string::npos) {
    fields.fault("gpuEnvironmentVariable", "is " + *variable + "; allowed is the name of an environment variable");
  }
  fields.finish();
  return host;
}

}  // namespace

ParsedConfig parse_config(const nlohmann::json& node) {
  ParsedConfig parsed;
  if (!node.is_object()) {
    parsed.faults.emplace_back("", "is " + shown(node) + "; allowed is a mapping with hosts");
    return parsed;
  }
  Fields fields(node, "", parsed.faults);
  const nlohmann::json* const hosts = fields.find("hosts", true);
  if (hosts != nullptr && (!hosts->is_array() || hosts->empty())) {
    fields.fault("hosts", "is " + shown(*hosts) + "; allowed is a list of at least one host");
  } else if (hosts != nullptr) {
    std::set<std::string> names;
    for (size_t i = 0; i < hosts->size(); ++i) {
      const std::string path = "hosts[" + std::to_string(i) + "]";
      HostConfig host = read_host((*hosts)[i], path, parsed.faults);
      if (!host.name.empty() && !names.insert(host.name).second) {
        parsed.faults.emplace_back(path + ".name",
                                   "is " + host.name + ", which an earlier host has; names must differ");
      }
      parsed.config.hosts.push_back(std::move(host));
    }
  }
  parsed.config.pull_progress_timeout =
      fields.duration("pullProgressTimeout").value_or(parsed.config.pull_progress_timeout);
  parsed.config.disk_usage_every = fields.duration("diskUsageEvery").value_or(parsed.config.disk_usage_every);
  const auto scheme = fields.text("containerScheme");
  if (scheme && !is_label(*scheme, 63, false)) {
    fields.fault("containerScheme", "is " + *scheme + "; allowed are lower-case letters, digits and '-'");
  }
  parsed.config.container_scheme = scheme.value_or(parsed.config.container_scheme);
  fields.finish();
  return parsed;
}

}  // namespace spillway::providers::docker
