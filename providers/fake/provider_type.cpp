// How a configuration entry becomes a provider over the cloud that it names.
#include "providers/fake/config.hpp"
#include "providers/fake/fake_provider.hpp"
#include "providers/fake/in_process_cloud.hpp"

namespace spillway::providers::fake {
namespace {

using ProviderPtr = std::unique_ptr<provider::Provider>;

base::Result<ProviderPtr> make(base::ProviderName name, const nlohmann::json& json,
                               const provider::ProviderDeps& deps) {
  ConfigReading reading = read_config(json);
  if (!reading.faults.empty()) {
    return base::fail(base::ErrorKind::kInvalid, reading.faults.front().path + ": " + reading.faults.front().message);
  }
  if (reading.config.mode == Mode::kSocket) {
    return base::fail(base::ErrorKind::kUnsupported, "mode: the fake cloud cannot be reached by a socket yet");
  }
  auto cloud = std::make_unique<FakeCloud>(std::move(reading.config.cloud), deps.timers->both());
  auto api = std::make_unique<InProcessCloud>(*cloud, *deps.timers);
  return std::make_unique<FakeProvider>(std::move(name), std::move(cloud), std::move(api), *deps.timers,
                                        reading.config.settle_time);
}

}  // namespace

provider::ProviderType provider_type() {
  provider::ProviderType type;
  type.validate = [](const nlohmann::json& config) { return validate_config(config); };
  type.make = make;
  return type;
}

}  // namespace spillway::providers::fake
