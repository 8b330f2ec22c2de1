#include "vk-provider/api/kubelet_api.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/base/log.hpp"

namespace spillway::api {
namespace log = base::log;

namespace {

/// One certificate for all: each node is found by its address and its name.
net::CertificateSubject subject_of(const std::vector<KubeletNode>& nodes) {
  net::CertificateSubject subject;
  subject.organizations = {"system:nodes"};
  if (!nodes.empty()) subject.common_name = "system:node:" + nodes.front().name;
  const auto add = [](std::vector<std::string>& list, const std::string& text) {
    if (!text.empty() && std::ranges::find(list, text) == list.end()) list.push_back(text);
  };
  for (const KubeletNode& node : nodes) {
    add(subject.dns_names, node.name);
    add(subject.ip_addresses, node.address);
  }
  return subject;
}

/// A CA that has signed nothing: whether clients are asked for certificates cannot change later, and until the real CA
/// is known none is to be believed. Its key is forgotten here.
base::Result<std::string> nobodys_ca(base::WallTime now) {
  auto key = net::make_key();
  if (!key) return base::fail(std::move(key.error()));
  net::CertificateSubject subject;
  subject.common_name = "nobody";
  return net::self_sign(*key, subject, now - std::chrono::hours(1), now + std::chrono::hours(1));
}

}  // namespace

KubeletApi::KubeletApi(boost::asio::any_io_executor executor, KubeletApiConfig config, std::vector<KubeletNode> nodes,
                       const std::string& installation, KubeletSources sources)
    : config_(std::move(config)),
      nodes_(std::move(nodes)),
      sources_(std::move(sources)),
      authn_(*sources_.api, *sources_.timers, *sources_.metrics, config_.anonymous),
      certificate_(config_.certificate, subject_of(nodes_), "spillway-" + installation + "-", *sources_.api,
                   *sources_.timers, *sources_.metrics),
      client_ca_(config_.client_ca_file, *sources_.api, *sources_.timers),
      group_(executor) {
  for (const KubeletNode& node : nodes_) {
    servers_.push_back(std::make_unique<KubeletServer>(executor, sources_, authn_, config_, node.name, node.max_pods,
                                                       [this] { client_ca_.doubt(); }));
  }
}

base::Result<void> KubeletApi::prepare_tls() {
  auto pair = certificate_.first();
  if (!pair) return base::fail(pair.error().kind, "kubeletApi.certificate: " + pair.error().message);
  auto ca = nobodys_ca(sources_.timers->wall());
  if (!ca) return base::fail(std::move(ca.error()));
  tls_.cert_pem = std::move(pair->cert_pem);
  tls_.key_pem = std::move(pair->key_pem);
  tls_.client_ca_pem = std::move(*ca);
  tls_.min_version = config_.tls_min_version;
  tls_.cipher_suites = config_.tls_cipher_suites;
  return {};
}

base::Result<void> KubeletApi::start() {
  if (auto prepared = prepare_tls(); !prepared) return prepared;
  if (config_.anonymous) {
    log::warn("callers of the kubelet API without credentials are let in as system:anonymous, by the rights it has",
              {{"key", "kubeletApi.anonymous"}});
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    const auto port = static_cast<std::uint16_t>(config_.port == 0 ? 0 : config_.port + i);
    if (auto started = servers_[i]->start(port, tls_); !started) {
      return base::fail(started.error().kind, "kubeletApi.address " + config_.address + ", kubeletApi.port " +
                                                  std::to_string(port) + ": " + started.error().message);
    }
    log::info("the kubelet API listens",
              {{"node", nodes_[i].name}, {"address", config_.address}, {"port", servers_[i]->port()}});
  }
  group_.spawn(certificate_.run([this](const CertificatePair& pair) { return use_certificate(pair); }));
  group_.spawn(client_ca_.run([this](const std::string& ca_pem) { return use_client_ca(ca_pem); }));
  return {};
}

base::Result<void> KubeletApi::replace_tls(net::ServerTls tls) {
  // What the first one takes the others take, too: they are alike.
  for (const auto& server : servers_) {
    if (auto replaced = server->replace_tls(tls); !replaced) return replaced;
  }
  tls_ = std::move(tls);
  return {};
}

base::Result<void> KubeletApi::use_certificate(const CertificatePair& pair) {
  net::ServerTls tls = tls_;
  tls.cert_pem = pair.cert_pem;
  tls.key_pem = pair.key_pem;
  return replace_tls(std::move(tls));
}

base::Result<void> KubeletApi::use_client_ca(const std::string& ca_pem) {
  net::ServerTls tls = tls_;
  tls.client_ca_pem = ca_pem;
  return replace_tls(std::move(tls));
}

std::uint16_t KubeletApi::port(const std::string& node) const {
  const auto it = std::ranges::find(servers_, node, [](const auto& server) { return server->node(); });
  return it == servers_.end() ? std::uint16_t{0} : (*it)->port();
}

std::string KubeletApi::problem() const {
  if (client_ca_.problem().empty()) return {};
  return "client certificates are not believed, and the API server shows one: " + client_ca_.problem();
}

boost::asio::awaitable<void> KubeletApi::stop(base::Deadline deadline) {
  co_await group_.stop();
  for (const auto& server : servers_) co_await server->stop(deadline);
}

}  // namespace spillway::api
