// What the configuration says about the kubelet API (its section kubeletApi). A value, made and checked by
// daemon/config.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/net/http_server.hpp"

namespace spillway::api {

/// Where the serving certificate comes from.
enum class CertificateSource : std::uint8_t {
  kSelfSigned,  // made at the start; nobody can verify it
  kCsr,         // asked for with a CertificateSigningRequest; self-signed until it is issued
  kFiles,       // read from files, and again when they change
};
std::string_view to_string(CertificateSource source);

struct KubeletCertificateConfig {
  KubeletCertificateConfig() = default;
  CertificateSource source = CertificateSource::kSelfSigned;
  std::string cert_file;  // kFiles: both
  std::string key_file;
  std::string signer{"kubernetes.io/kubelet-serving"};  // kCsr
  bool operator==(const KubeletCertificateConfig&) const = default;
};

struct KubeletLimits {
  KubeletLimits() = default;
  int connections = 1000;  // of each node
  int streams = 500;       // of them: logs, exec, attach, port-forward
  std::size_t header = std::size_t{128} * 1024;
  std::size_t body = std::size_t{64} * 1024;   // nothing that a kubelet is asked has one
  base::Duration idle{std::chrono::hours(4)};  // of a stream through which nothing goes
  bool operator==(const KubeletLimits&) const = default;
};

struct KubeletApiConfig {
  KubeletApiConfig() = default;
  bool enabled = false;
  std::string address = "0.0.0.0";
  /// Of the first node; the others have those after it. 0: a free one for each.
  std::uint16_t port = 10250;
  KubeletCertificateConfig certificate;
  std::string client_ca_file;  // empty: the cluster's, kube-system/extension-apiserver-authentication
  bool anonymous = false;
  net::TlsVersion tls_min_version = net::TlsVersion::k12;
  std::vector<std::string> tls_cipher_suites;  // IANA names; empty: the usual ones
  KubeletLimits limits;
  bool operator==(const KubeletApiConfig&) const = default;
};

}  // namespace spillway::api
