#include "vk-provider/api/configz.hpp"

#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::api {

std::string to_configz(const KubeletApiConfig& config, std::uint16_t port, const std::string& max_pods) {
  kube::JsonWriter out;
  out.open_object().key("kubeletconfig").open_object();
  out.field("kind", "KubeletConfiguration").field("apiVersion", "kubelet.config.k8s.io/v1beta1");
  out.field("address", config.address).field_number("port", port);
  out.field("tlsMinVersion", config.tls_min_version == net::TlsVersion::k13 ? "VersionTLS13" : "VersionTLS12");
  out.key("tlsCipherSuites").open_array();
  for (const std::string& suite : config.tls_cipher_suites) out.string(suite);
  out.close_array();
  out.field_bool("serverTLSBootstrap", config.certificate.source == CertificateSource::kCsr);
  out.key("authentication").open_object();
  out.key("x509").open_object().field_if("clientCAFile", config.client_ca_file).close_object();
  out.key("webhook").open_object().field_bool("enabled", true).field("cacheTTL", "2m0s").close_object();
  out.key("anonymous").open_object().field_bool("enabled", config.anonymous).close_object();
  out.close_object();
  out.key("authorization").open_object().field("mode", "Webhook");
  out.key("webhook").open_object();
  out.field("cacheAuthorizedTTL", "5m0s").field("cacheUnauthorizedTTL", "30s");
  out.close_object().close_object();
  out.field("nodeStatusUpdateFrequency", "10s").field("nodeStatusReportFrequency", "5m0s");
  out.field_number("nodeLeaseDurationSeconds", 40);
  out.field_number("maxPods", model::quantity_value(max_pods).value_or(0));
  out.field_bool("enableServer", true).field_bool("enableDebuggingHandlers", true);
  out.close_object().close_object();
  return out.take();
}

}  // namespace spillway::api
