// From an entry of the configuration to a provider: endpoints, certificates, clear refusals.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "test/unit/providers/docker/docker_rig.hpp"

using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
using nlohmann::json;

namespace {

class RecordingFactory final : public net::HttpClientFactory {
 public:
  explicit RecordingFactory(DockerEngineModel& engine) : engine_(engine) {}
  base::Result<std::unique_ptr<net::HttpClient>> make(net::Endpoint endpoint) override {
    endpoints.push_back(std::move(endpoint));
    return engine_.client();
  }
  std::vector<net::Endpoint> endpoints;

 private:
  DockerEngineModel& engine_;
};

struct TypeFixture {
  TypeFixture() : engine(reactor.timers), factory(engine) {
    std::string pattern = (std::filesystem::temp_directory_path() / "spw-docker-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
  }
  ~TypeFixture() { std::filesystem::remove_all(folder); }

  std::string file(const std::string& name, const std::string& content) const {
    const std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  base::Result<std::unique_ptr<provider::Provider>> make(const json& config) {
    provider::ProviderDeps deps;
    deps.executor = reactor.ctx.get_executor();
    deps.timers = &reactor.timers;
    deps.http = &factory;
    return providers::docker::provider_type().make(base::ProviderName("lab"), config, deps);
  }

  VirtualReactor reactor;
  DockerEngineModel engine;
  RecordingFactory factory;
  std::string folder;
};

json tls_config(const std::string& ca, const std::string& cert, const std::string& key) {
  return {{"hosts",
           {{{"name", "far"},
             {"endpoint", "tcp://gpu.example:2376"},
             {"pricePerHour", 1},
             {"tls", {{"caFile", ca}, {"certFile", cert}, {"keyFile", key}}}}}}};
}

}  // namespace

TEST_CASE_METHOD(TypeFixture, "docker type: a provider of the configured name, one client per host") {
  const json config = {
      {"hosts",
       {{{"name", "near"}, {"endpoint", "unix:///run/docker.sock"}, {"pricePerHour", "0.05"}, {"region", "here"}},
        {{"name", "loop"}, {"endpoint", "tcp://127.0.0.1:2375"}, {"pricePerHour", "0.06"}}}}};
  CHECK(providers::docker::provider_type().validate(config).empty());
  auto made = make(config);
  REQUIRE(made);
  provider::Provider& provider = **made;
  CHECK(provider.info().name.str() == "lab");
  CHECK(provider.info().type == "docker");
  CHECK(provider.info().settle_time == std::chrono::seconds(5));
  CHECK_FALSE(provider.info().address_routable);
  using model::Capability;
  for (const Capability c : {Capability::kMultiContainer,
                             Capability::kInitContainers,
                             Capability::kFiles,
                             Capability::kVolumes,
                             Capability::kShm,
                             Capability::kSecurityContext,
                             Capability::kSharedProcesses,
                             Capability::kHostname,
                             Capability::kHostAliases,
                             Capability::kDnsConfig,
                             Capability::kStopSignal,
                             Capability::kTerminationMessage,
                             Capability::kTty,
                             Capability::kRegistryAuth,
                             Capability::kExitCode,
                             Capability::kRestartContainer,
                             Capability::kKeepStopped,
                             Capability::kPortsTcp,
                             Capability::kPortsHttp,
                             Capability::kStopGrace,
                             Capability::kRegions,
                             Capability::kEntrypoint,
                             Capability::kWorkingDir,
                             Capability::kExec,
                             Capability::kAttach,
                             Capability::kDial,
                             Capability::kLogs,
                             Capability::kSamples}) {
    CHECK(provider.info().capabilities.has(c));
  }
  REQUIRE(factory.endpoints.size() == 2);
  CHECK(factory.endpoints[0].unix_path == "/run/docker.sock");
  CHECK(factory.endpoints[1].scheme == net::Endpoint::Scheme::kHttp);
  const auto offers = reactor.run(provider.list_offers(reactor.timers.now() + std::chrono::seconds(1)));
  REQUIRE(offers);
  REQUIRE(offers->size() == 2);
  CHECK(offers->at(0).provider.str() == "lab");
  CHECK(offers->at(1).id.str() == "loop/cpu");
  reactor.run(provider.stop());
}

TEST_CASE_METHOD(TypeFixture, "docker type: certificates are read from their files") {
  const auto made = make(tls_config(file("ca", "CA"), file("cert", "CERT"), file("key", "KEY")));
  REQUIRE(made);
  REQUIRE(factory.endpoints.size() == 1);
  const net::Endpoint& endpoint = factory.endpoints[0];
  CHECK(endpoint.scheme == net::Endpoint::Scheme::kHttps);
  CHECK(endpoint.host == "gpu.example");
  CHECK(endpoint.ca_pem == "CA");
  CHECK(endpoint.client_cert_pem == "CERT");
  CHECK(endpoint.client_key_pem.reveal() == "KEY");
}

TEST_CASE_METHOD(TypeFixture, "docker type: a certificate that cannot be read is named") {
  const auto absent = make(tls_config(file("ca", "CA"), folder + "/absent", file("key", "KEY")));
  REQUIRE_FALSE(absent);
  CHECK(absent.error().kind == ErrorKind::kInvalid);
  CHECK(absent.error().message == "docker host far: tls.certFile: " + folder + "/absent cannot be read or is empty");
  CHECK_FALSE(make(tls_config(file("empty", ""), file("cert", "CERT"), file("key", "KEY"))));
  CHECK(factory.endpoints.empty());
}

TEST_CASE_METHOD(TypeFixture, "docker type: an invalid configuration makes nothing") {
  const auto made = make({{"hosts", json::array()}});
  REQUIRE_FALSE(made);
  CHECK(made.error().message == "hosts is []; allowed is a list of at least one host");
  CHECK(providers::docker::provider_type().validate(json::object()).size() == 1);
}
