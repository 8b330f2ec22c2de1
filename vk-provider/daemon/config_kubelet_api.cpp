#include "vk-provider/daemon/config_kubelet_api.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "vk-provider/model/quantity.hpp"

namespace spillway::daemon {
namespace {

using api::CertificateSource;
using std::chrono::hours;
using std::chrono::seconds;

constexpr int kMaxPort = 65535;
constexpr int kMaxConnections = 100000;
constexpr std::int64_t kMinBytes = 4096;
constexpr std::int64_t kMaxBytes = std::int64_t{64} * 1024 * 1024;

const std::vector<std::pair<std::string, net::TlsVersion>>& tls_versions() {
  static const std::vector<std::pair<std::string, net::TlsVersion>> words = {{"VersionTLS12", net::TlsVersion::k12},
                                                                             {"VersionTLS13", net::TlsVersion::k13}};
  return words;
}

/// A file that stands beside the configuration, unless its path is absolute. A fault if it cannot be read.
void read_file(Section& section, std::string_view key, std::string& out) {
  const At at = section.get(key);
  std::string text;
  if (!section.reader().text(at, text, "the path of a file")) return;
  const auto path = std::filesystem::path(section.reader().file()).parent_path() / text;
  std::ifstream stream(path, std::ios::binary);
  if (!stream || stream.peek() == std::ifstream::traits_type::eof()) {
    section.reader().fault(at, "found no readable text in the file " + path.string() + "; allowed: a PEM file");
  }
  out = path.string();
}

void read_bytes(Section& section, std::string_view key, std::size_t& out) {
  const std::string allowed = "a quantity such as 128Ki, from 4Ki to 64Mi";
  const At at = section.get(key);
  std::string text;
  if (!section.reader().text(at, text, allowed)) return;
  const auto bytes = model::quantity_value(text);
  if (!bytes || *bytes < kMinBytes || *bytes > kMaxBytes) {
    section.reader().fault(at, "found " + describe(at.node) + "; allowed: " + allowed);
    return;
  }
  out = static_cast<std::size_t>(*bytes);
}

api::KubeletCertificateConfig read_certificate(Reader& reader, const At& at) {
  api::KubeletCertificateConfig out;
  Section section(reader, at);
  section.one_of<CertificateSource>("source",
                                    {{"self-signed", CertificateSource::kSelfSigned},
                                     {"csr", CertificateSource::kCsr},
                                     {"files", CertificateSource::kFiles}},
                                    out.source);
  read_file(section, "certFile", out.cert_file);
  read_file(section, "keyFile", out.key_file);
  section.text("signer", out.signer, "the name of a signer such as kubernetes.io/kubelet-serving");
  const bool with_files = out.source == CertificateSource::kFiles;
  for (const char* key : {"certFile", "keyFile"}) {
    const At file = section.get(key);
    if (with_files && !file.present) {
      reader.fault(file, "found nothing; allowed: the path of a PEM file (it is required by source: files)");
    } else if (!with_files && file.present) {
      reader.fault(file, "found a file that would not be used; allowed: with source: files only");
    }
  }
  const At signer = section.get("signer");
  if (out.signer.find('/') == std::string::npos || !is_qualified_name(out.signer)) {
    reader.fault(signer, "found " + describe(signer.node) + "; allowed: a name such as kubernetes.io/kubelet-serving");
  }
  section.finish();
  return out;
}

api::KubeletLimits read_limits(Reader& reader, const At& at) {
  api::KubeletLimits out;
  Section section(reader, at);
  section.integer("connections", 1, kMaxConnections, out.connections);
  section.integer("streams", 1, kMaxConnections, out.streams);
  read_bytes(section, "header", out.header);
  read_bytes(section, "body", out.body);
  section.duration("idle", seconds(1), hours(24 * 7), out.idle);
  section.finish();
  return out;
}

void check_ports(Reader& reader, Section& section, const api::KubeletApiConfig& config, std::size_t nodes) {
  if (config.port == 0 || nodes == 0) return;
  const std::size_t last = config.port + nodes - 1;
  if (last <= kMaxPort) return;
  reader.fault(section.get("port"), "found " + std::to_string(config.port) + ", and each of " + std::to_string(nodes) +
                                        " nodes needs a port of its own; allowed: at most " +
                                        std::to_string(kMaxPort + 1 - static_cast<int>(nodes)));
}

}  // namespace

base::Result<net::TlsVersion> parse_tls_version(const std::string& word) {
  std::vector<std::string> names;
  for (const auto& [name, version] : tls_versions()) {
    if (name == word) return version;
    names.push_back(name);
  }
  return base::fail(base::ErrorKind::kInvalid, "found \"" + word + "\"; allowed: " + join(names));
}

api::KubeletApiConfig read_kubelet_api(Reader& reader, const At& at, std::size_t nodes) {
  api::KubeletApiConfig out;
  Section section(reader, at);
  section.boolean("enabled", out.enabled);
  const At address = section.get("address");
  const std::string allowed = "an IP address to listen on, such as 0.0.0.0";
  if (reader.text(address, out.address, allowed) && !is_ip_address(out.address)) {
    reader.fault(address, "found " + describe(address.node) + "; allowed: " + allowed);
  }
  int port = out.port;
  section.integer("port", 0, kMaxPort, port);
  out.port = static_cast<std::uint16_t>(port);
  check_ports(reader, section, out, nodes);
  out.certificate = read_certificate(reader, section.get("certificate"));
  read_file(section, "clientCaFile", out.client_ca_file);
  section.boolean("anonymous", out.anonymous);
  section.one_of<net::TlsVersion>("tlsMinVersion", tls_versions(), out.tls_min_version);
  section.strings("tlsCipherSuites", out.tls_cipher_suites,
                  "a list of IANA names such as TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
  if (const auto known = net::check_cipher_suites(out.tls_cipher_suites); !known) {
    reader.fault(section.get("tlsCipherSuites"), known.error().message);
  }
  out.limits = read_limits(reader, section.get("limits"));
  section.finish();
  return out;
}

}  // namespace spillway::daemon
