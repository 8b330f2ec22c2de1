// How a configuration entry becomes a provider over the cloud that it names.
#include "providers/fake/config.hpp"
#include "providers/fake/fake_provider.hpp"
#include "providers/fake/http_cloud.hpp"
#include "providers/fake/in_process_cloud.hpp"

namespace spillway::providers::fake {
namespace {

base::Result<std::unique_ptr<provider::Provider>> make(base::ProviderName name, const nlohmann::json& json,
                                                       const provider::ProviderDeps& deps) {
  ConfigReading reading = read_config(json);
  if (!reading.faults.empty()) {
    return base::fail(base::ErrorKind::kInvalid, reading.faults.front().path + ": " + reading.faults.front().message);
  }
  std::unique_ptr<FakeCloud> cloud;
  std::unique_ptr<FakeCloudApi> api;
  if (reading.config.mode == Mode::kSocket) {
    net::Endpoint endpoint;
    endpoint.scheme = net::Endpoint::Scheme::kUnix;
    endpoint.unix_path = reading.config.socket;
    auto http = deps.http->make(std::move(endpoint));
    if (!http) return base::fail(http.error());
    api = std::make_unique<HttpCloud>(std::move(*http));
  } else {
    cloud = std::make_unique<FakeCloud>(std::move(reading.config.cloud), deps.timers->both());
    api = std::make_unique<InProcessCloud>(*cloud, *deps.timers);
  }
  return std::make_unique<FakeProvider>(std::move(name), std::move(cloud), std::move(api), *deps.timers,
                                        reading.config.settle_time, std::move(reading.config.pod_ip));
}

}  // namespace

provider::ProviderType provider_type() {
  provider::ProviderType type;
  type.capabilities = capabilities();
  type.costs_money = false;
  type.validate = [](const nlohmann::json& config) { return validate_config(config); };
  type.make = make;
  return type;
}

}  // namespace spillway::providers::fake
