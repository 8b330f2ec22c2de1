// From a configuration entry `providers[]{name, type, config}` to a Provider.
//
// The table of types is made by providers/CMakeLists.txt (providers/builtin.cpp) and handed to the daemon by main.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <nlohmann/json_fwd.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/net/http.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::provider {

/// What a provider may use; all of it outlives the provider.
struct ProviderDeps {
  boost::asio::any_io_executor executor;
  async::Timers* timers = nullptr;
  base::Random* random = nullptr;
  net::HttpClientFactory* http = nullptr;
};

/// One thing that is wrong with a `config:` mapping.
struct ConfigFault {
  ConfigFault() = default;
  ConfigFault(std::string p, std::string m) : path(std::move(p)), message(std::move(m)) {}
  std::string path;     // below config, e.g. hosts[0].pricePerHour
  std::string message;  // what was found and what is allowed
};

struct ProviderType {
  /// What providers of this type can honour, whatever their config: ProviderInfo::capabilities.
  model::CapabilitySet capabilities = {};
  /// Checks a `config:` mapping and reports all faults at once. A message never holds the value of a secret.
  std::function<std::vector<ConfigFault>(const nlohmann::json& config)> validate;
  /// Makes the provider from a valid config. kInvalid if something outside the file is wrong (no such socket folder).
  std::function<base::Result<std::unique_ptr<Provider>>(base::ProviderName name, const nlohmann::json& config,
                                                        const ProviderDeps& deps)>
      make;
  /// False: what it sells is the user's own, or does not exist. Others may be used only under a cap on money.
  bool costs_money = true;
  /// Paths below config whose values are secrets: `apiKey`, `hosts[].password`. In the file such a key holds
  /// {fromFile: path} or {fromEnv: NAME}, never the value; validate() and make() receive the value as a string.
  std::vector<std::string> secret_keys = {};
};

using Registry = std::map<std::string, ProviderType>;

}  // namespace spillway::provider
