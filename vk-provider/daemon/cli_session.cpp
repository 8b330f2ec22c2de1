#include "vk-provider/daemon/cli_session.hpp"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <random>
#include <utility>

#include "vk-provider/daemon/version.hpp"
#include "vk-provider/kube/client.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::daemon {

CliSession::CliSession(const kube::ClusterAccess& access)
    : random_(std::random_device{}()),
      http_(reactor_.executor(), reactor_.timers()),
      credentials_(access, reactor_.timers()) {
  surroundings_.timers = &reactor_.timers();
  surroundings_.http = &http_;
}

base::Result<std::unique_ptr<CliSession>> CliSession::open(const Config& config, const provider::Registry& registry,
                                                           const kube::ClusterAccess& access) {
  std::unique_ptr<CliSession> session(new CliSession(access));
  if (auto done = session->connect(access); !done) return base::fail(std::move(done.error()));
  if (auto done = session->make_providers(config, registry); !done) return base::fail(std::move(done.error()));
  return session;
}

base::Result<std::unique_ptr<CliSession>> CliSession::open(const Config& config, const provider::Registry& registry) {
  std::unique_ptr<CliSession> session(new CliSession(kube::ClusterAccess()));
  if (auto done = session->make_providers(config, registry); !done) return base::fail(std::move(done.error()));
  return session;
}

base::Result<std::unique_ptr<CliSession>> CliSession::open(const kube::ClusterAccess& access) {
  std::unique_ptr<CliSession> session(new CliSession(access));
  if (auto done = session->connect(access); !done) return base::fail(std::move(done.error()));
  return session;
}

base::Result<void> CliSession::connect(const kube::ClusterAccess& access) {
  auto client = http_.make(access.endpoint);
  if (!client) return base::fail(std::move(client.error()));
  client_ = std::move(*client);
  api_ = std::make_unique<kube::HttpKubeApi>(*client_, credentials_, access.path_prefix,
                                             "spillway/" + std::string(kVersion));
  surroundings_.api = api_.get();
  surroundings_.server = client_.get();
  return {};
}

base::Result<void> CliSession::make_providers(const Config& config, const provider::Registry& registry) {
  provider::ProviderDeps deps;
  deps.executor = reactor_.executor();
  deps.timers = &reactor_.timers();
  deps.random = &random_;
  deps.http = &http_;
  for (const ProviderConfig& entry : config.providers) {
    auto made = registry.at(entry.type).make(entry.name, *entry.config, deps);
    if (!made) {
      made.error().message = "provider " + entry.name.str() + ": " + made.error().message;
      return base::fail(std::move(made.error()));
    }
    providers_.push_back(std::move(*made));
  }
  for (const auto& made : providers_) surroundings_.providers.push_back(made.get());
  return {};
}

void CliSession::run(boost::asio::awaitable<void> work) {
  std::exception_ptr error;
  boost::asio::co_spawn(reactor_.context(), then_stop(std::move(work)), [this, &error](const std::exception_ptr& e) {
    error = e;
    reactor_.stop();
  });
  reactor_.run();
  if (error) std::rethrow_exception(error);
}

boost::asio::awaitable<void> CliSession::then_stop(boost::asio::awaitable<void> work) {
  co_await std::move(work);
  for (const auto& made : providers_) co_await made->stop();
}

model::Ownership make_ownership(const std::string& cluster_id, const std::string& installation) {
  return model::Ownership(net::sha256(cluster_id + "/" + installation));
}

async::Task<std::string> find_cluster_id(std::string configured, kube::KubeApi& api, base::Deadline deadline) {
  if (!configured.empty()) co_return configured;
  kube::Client client(api);
  co_return co_await client.get_cluster_uid(deadline);
}

}  // namespace spillway::daemon
