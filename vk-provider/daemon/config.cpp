#include "vk-provider/daemon/config.hpp"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "vk-provider/daemon/config_gate.hpp"
#include "vk-provider/daemon/config_kubelet_api.hpp"
#include "vk-provider/daemon/config_profile.hpp"
#include "vk-provider/daemon/config_provider_codec.hpp"
#include "vk-provider/daemon/config_reader.hpp"
#include "vk-provider/daemon/config_spend.hpp"
#include "vk-provider/daemon/config_values.hpp"

namespace spillway::daemon {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::string_view kApiVersion = "spillway.dev/v1";
constexpr std::size_t kMaxFile = 4 * 1024 * 1024;
constexpr int kMaxPort = 65535;

std::unexpected<std::vector<Fault>> whole_file_fault(const std::string& file, int line, std::string message) {
  Fault fault;
  fault.file = file;
  fault.line = line;
  fault.message = std::move(message);
  return std::unexpected(std::vector{fault});
}

/// Remembers where a document begins.
class DocumentStart final : public YAML::EventHandler {
 public:
  int line = 0;

 private:
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

/// 0 if there is none. Not LoadAll(): yaml-cpp 0.7 makes documents without end of a stray comma (its pull request
/// 1319).
int line_of_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart first;
  DocumentStart second;
  return parser.HandleNextDocument(first) && parser.HandleNextDocument(second) ? second.line : 0;
}

void read_installation(Reader& reader, const At& at, InstallationConfig& out) {
  Section section(reader, at);
  const auto name_like = [&](std::string_view key, std::string& into) {
    const At value = section.get(key);
    if (reader.text(value, into) && !is_dns_label(into)) {
      reader.fault(value, "found " + describe(value.node) +
                              "; allowed: at most 63 of a-z, 0-9 and '-', a letter or digit at both ends");
    }
  };
  name_like("name", out.name);
  name_like("namespace", out.ns);
  section.text("clusterId", out.cluster_id, "a text that no other cluster has");
  section.finish();
}

void read_placement(Reader& reader, const At& at, PlacementConfig& out) {
  constexpr int kMaxAttempts = 100;
  Section section(reader, at);
  section.duration("startDeadline", minutes(1), hours(24), out.start_deadline);
  section.integer("maxStartAttempts", 1, kMaxAttempts, out.max_start_attempts);
  // A create must end within the installation's lease of 30 s, or a second daemon could buy the same pod again.
  section.duration("createDeadline", seconds(1), seconds(20), out.create_deadline);
  section.duration("orphanGrace", seconds(1), hours(24), out.orphan_grace);
  section.finish();
}

void read_endpoints(Reader& reader, const At& at, EndpointMode& out) {
  Section section(reader, at);
  section.one_of<EndpointMode>("mode", {{"none", EndpointMode::kNone}, {"direct", EndpointMode::kDirect}}, out);
  section.finish();
}

void read_admin(Reader& reader, const At& at, AdminConfig& out) {
  Section section(reader, at);
  const At address = section.get("address");
  if (reader.text(address, out.address, "an IP address to listen on") && !is_ip_address(out.address)) {
    reader.fault(address, "found " + describe(address.node) + "; allowed: an IP address to listen on, such as 0.0.0.0");
  }
  int port = out.port;
  section.integer("port", 0, kMaxPort, port);
  out.port = static_cast<std::uint16_t>(port);
  section.boolean("debug", out.debug);
  section.finish();
}

void read_log(Reader& reader, const At& at, LogConfig& out) {
  using base::log::Format;
  using base::log::Level;
  Section section(reader, at);
  section.one_of<Level>(
      "level", {{"debug", Level::kDebug}, {"info", Level::kInfo}, {"warn", Level::kWarn}, {"error", Level::kError}},
      out.level);
  section.one_of<Format>("format", {{"text", Format::kText}, {"json", Format::kJson}}, out.format);
  section.finish();
}

void read_document(Reader& reader, const At& document, const ConfigSources& sources, Config& out) {
  Section section(reader, document);
  const At version = section.require("apiVersion", std::string(kApiVersion));
  std::string text;
  if (reader.text(version, text, kApiVersion) && text != kApiVersion) {
    reader.fault(version, "found " + describe(version.node) + "; allowed: " + std::string(kApiVersion));
  }
  read_installation(reader, section.get("installation"), out.installation);
  const At nodes = section.require("nodes", "a list of at least one node profile");
  const At providers = section.require("providers", "a list of at least one provider");
  for (const At& list : {nodes, providers}) {
    if (list.present && list.node.IsSequence() && list.node.size() == 0) {
      reader.fault(list, "found an empty list; allowed: at least one entry");
    }
  }
  out.providers = read_providers(reader, providers, sources);
  std::vector<std::string> names;
  names.reserve(out.providers.size());
  for (const ProviderConfig& entry : out.providers) names.push_back(entry.name.str());
  out.nodes = read_profiles(reader, nodes, names, sources);
  read_placement(reader, section.get("placement"), out.placement);
  out.spend = read_spend(reader, section.get("spend"), out, out.ledger_retention);
  require_caps(reader, providers, out, sources);
  out.gate = read_gate(reader, section.get("gate"), out);
  read_endpoints(reader, section.get("endpoints"), out.endpoints);
  out.kubelet_api = read_kubelet_api(reader, section.get("kubeletApi"), out.nodes.size());
  read_admin(reader, section.get("admin"), out.admin);
  read_log(reader, section.get("log"), out.log);
  section.finish();
}

}  // namespace

std::string Fault::to_string() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  out += ": ";
  if (!path.empty()) out += path + ": ";
  return out + message;
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::expected<Config, std::vector<Fault>> parse_config(std::string_view yaml, const std::string& file,
                                                       const ConfigSources& sources) {
  // yaml-cpp throws on bad syntax (and on some of what is walked later): the fence.
  try {
    const std::string text(yaml);
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) {
      return whole_file_fault(
          file, 1, "found an empty document; allowed: one that begins with apiVersion: " + std::string(kApiVersion));
    }
    if (const int line = line_of_second_document(text); line > 0) {
      return whole_file_fault(file, line, "found more after the end of the document; allowed: one document");
    }
    At document;
    document.node.reset(root);
    document.line = root.Mark().line + 1;
    document.present = true;
    Reader reader(file, sources.known_keys);
    Config config;
    read_document(reader, document, sources, config);
    if (reader.faulty()) return std::unexpected(reader.take_faults());
    return config;
  } catch (const YAML::Exception& e) {
    const int line = e.mark.is_null() ? 0 : e.mark.line + 1;
    return whole_file_fault(file, line, "found invalid YAML (" + e.msg + "); allowed: YAML 1.2");
  }
}

std::expected<Config, std::vector<Fault>> load_config(const std::string& file, const ConfigSources& sources) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  if (stream) text.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  if (!stream) {
    const std::string why = errno == 0 ? "no readable file" : std::strerror(errno);
    return whole_file_fault(file, 0, "found " + why + "; allowed: a readable file");
  }
  if (text.size() > kMaxFile) {
    return whole_file_fault(file, 0, "found more than 4 MiB; allowed: less");
  }
  return parse_config(text, file, sources);
}

base::Result<void> override_node_name(Config& config, const std::string& name) {
  if (config.nodes.size() != 1) {
    return base::fail(base::ErrorKind::kInvalid, "--node-name: found " + std::to_string(config.nodes.size()) +
                                                     " profiles under nodes[]; allowed: exactly one, or the names in "
                                                     "the file");
  }
  const std::string problem = node_name_problem(name);
  if (!problem.empty()) return base::fail(base::ErrorKind::kInvalid, "--node-name: " + problem);
  for (control::GateSettings& gate : config.gate.gates) {
    for (core::VirtualNode& node : gate.home.virtual_nodes) node.name = name;
  }
  config.nodes.front().name = name;
  return {};
}

base::Result<void> override_tls_min_version(Config& config, const std::string& version) {
  const auto parsed = parse_tls_version(version);
  if (!parsed) return base::fail(base::ErrorKind::kInvalid, "--tls-min-version: " + parsed.error().message);
  config.kubelet_api.tls_min_version = *parsed;
  return {};
}

}  // namespace spillway::daemon
