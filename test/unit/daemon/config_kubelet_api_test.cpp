#include "vk-provider/daemon/config_kubelet_api.hpp"

#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vk-provider/daemon/config.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using api::CertificateSource;
using daemon::Config;
using daemon::Fault;

namespace {

/// A directory of its own, gone with it.
struct Scratch {
  Scratch() : path(std::filesystem::temp_directory_path() / ("spillway-config-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path / name) << text; }

  std::filesystem::path path;
};

std::expected<Config, std::vector<Fault>> parse(const std::string& section, const Scratch& beside,
                                                const std::string& nodes = "[{name: burst}]") {
  provider::Registry registry;
  provider::ProviderType type;
  type.costs_money = false;
  type.validate = [](const nlohmann::json&) { return std::vector<provider::ConfigFault>(); };
  registry["cloud"] = type;
  daemon::ConfigSources sources;
  sources.providers = &registry;
  return daemon::parse_config(
      "apiVersion: spillway.dev/v1\nproviders: [{name: c, type: cloud}]\nnodes: " + nodes + "\nkubeletApi:\n" + section,
      (beside.path / "spillway.yaml").string(), sources);
}

api::KubeletApiConfig good(const std::string& section, const Scratch& beside) {
  auto config = parse(section, beside);
  if (!config) {
    for (const Fault& fault : config.error()) UNSCOPED_INFO(fault.to_string());
    FAIL("the document has faults");
  }
  return config->kubelet_api;
}

/// path and message of each
std::vector<std::string> bad(const std::string& section, const Scratch& beside,
                             const std::string& nodes = "[{name: burst}]") {
  const auto config = parse(section, beside, nodes);
  REQUIRE_FALSE(config.has_value());
  std::vector<std::string> out;
  for (const Fault& fault : config.error()) out.push_back(fault.path + ": " + fault.message);
  return out;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the kubelet API is off unless it is asked for, and then closed to the nameless") {
  const Scratch beside;
  CHECK(good("  {}\n", beside) == api::KubeletApiConfig());
  CHECK_FALSE(api::KubeletApiConfig().enabled);
  CHECK_FALSE(api::KubeletApiConfig().anonymous);
  CHECK(good("  enabled: true\n", beside).port == 10250);
}

TEST_CASE("every key of the kubelet API is read") {
  const Scratch beside;
  beside.write("tls.crt", "pem");
  beside.write("tls.key", "pem");
  beside.write("ca.crt", "pem");
  const api::KubeletApiConfig config = good(R"(
  enabled: true
  address: "::"
  port: 0
  certificate: {source: files, certFile: tls.crt, keyFile: tls.key, signer: example.com/serving}
  clientCaFile: ca.crt
  anonymous: true
  tlsMinVersion: VersionTLS13
  tlsCipherSuites: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  limits: {connections: 10, streams: 5, header: 8Ki, body: 64Ki, idle: 90s}
)",
                                            beside);
  CHECK(config.enabled);
  CHECK(config.address == "::");
  CHECK(config.port == 0);
  CHECK(config.certificate.source == CertificateSource::kFiles);
  CHECK(config.certificate.cert_file == (beside.path / "tls.crt").string());
  CHECK(config.certificate.key_file == (beside.path / "tls.key").string());
  CHECK(config.certificate.signer == "example.com/serving");
  CHECK(config.client_ca_file == (beside.path / "ca.crt").string());
  CHECK(config.anonymous);
  CHECK(config.tls_min_version == net::TlsVersion::k13);
  CHECK(config.tls_cipher_suites == Lines{"TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"});
  CHECK(config.limits.connections == 10);
  CHECK(config.limits.streams == 5);
  CHECK(config.limits.header == 8192);
  CHECK(config.limits.body == 65536);
  CHECK(config.limits.idle == 90s);
}

TEST_CASE("what is wrong with the kubelet API is told at once, each with its remedy") {
  const Scratch beside;
  CHECK(bad(R"(
  enabled: "yes"
  address: localhost
  certificate: {source: letsencrypt}
  tlsMinVersion: VersionTLS11
  tlsCipherSuites: [TLS_RSA_WITH_ROT13]
  limits: {connections: 0, header: 1Ki, idle: 0s, speed: 1}
  port: 65536
)",
            beside) ==
        Lines{"kubeletApi.enabled: found \"yes\"; allowed: true, false",
              "kubeletApi.address: found \"localhost\"; allowed: an IP address to listen on, such as 0.0.0.0",
              "kubeletApi.certificate.source: found \"letsencrypt\"; allowed: self-signed, csr, files",
              "kubeletApi.tlsMinVersion: found \"VersionTLS11\"; allowed: VersionTLS12, VersionTLS13",
              "kubeletApi.tlsCipherSuites: there is no cipher suite \"TLS_RSA_WITH_ROT13\"; they are called as by "
              "IANA, for example TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
              "kubeletApi.limits.connections: found \"0\"; allowed: a whole number from 1 to 100000",
              "kubeletApi.limits.header: found \"1Ki\"; allowed: a quantity such as 128Ki, from 4Ki to 64Mi",
              "kubeletApi.limits.idle: found \"0s\"; allowed: a duration such as 20s, 5m or 1h30m, from 1s to 168h",
              "kubeletApi.limits.speed: found an unknown key; allowed: connections, streams, header, body, idle",
              "kubeletApi.port: found \"65536\"; allowed: a whole number from 0 to 65535"});
}

TEST_CASE("a certificate of files needs both files, and other sources need none") {
  const Scratch beside;
  beside.write("tls.crt", "pem");
  const std::string missing = (beside.path / "tls.key").string();
  CHECK(
      bad("  certificate: {source: files, certFile: tls.crt, keyFile: tls.key}\n", beside) ==
      Lines{"kubeletApi.certificate.keyFile: found no readable text in the file " + missing + "; allowed: a PEM file"});
  CHECK(bad("  certificate: {source: files, certFile: tls.crt}\n", beside) ==
        Lines{"kubeletApi.certificate.keyFile: found nothing; allowed: the path of a PEM file (it is required by "
              "source: files)"});
  CHECK(bad("  certificate: {source: csr, certFile: tls.crt}\n", beside) ==
        Lines{"kubeletApi.certificate.certFile: found a file that would not be used; allowed: with source: files "
              "only"});
  CHECK(bad("  certificate: {source: csr, signer: mine}\n", beside) ==
        Lines{"kubeletApi.certificate.signer: found \"mine\"; allowed: a name such as "
              "kubernetes.io/kubelet-serving"});
}

TEST_CASE("each node needs a port of its own") {
  const Scratch beside;
  CHECK(bad("  port: 65535\n", beside, "[{name: a}, {name: b}]") ==
        Lines{"kubeletApi.port: found 65535, and each of 2 nodes needs a port of its own; allowed: at most 65534"});
  CHECK(good("  port: 65535\n", beside).port == 65535);
}

TEST_CASE("the flag for the TLS version wins over the file") {
  const Scratch beside;
  auto config = parse("  tlsMinVersion: VersionTLS12\n", beside);
  REQUIRE(config.has_value());
  CHECK(daemon::override_tls_min_version(*config, "VersionTLS13").has_value());
  CHECK(config->kubelet_api.tls_min_version == net::TlsVersion::k13);
  CHECK(daemon::override_tls_min_version(*config, "1.3").error().message ==
        "--tls-min-version: found \"1.3\"; allowed: VersionTLS12, VersionTLS13");
}
