// Reads `providers[]` of the configuration: YAML to the JSON that a provider's type checks and takes.
//
// Used by config.cpp on main's thread. Resolves the secrets that the type names; knows no provider.
#pragma once

#include <vector>

#include "vk-provider/daemon/config.hpp"
#include "vk-provider/daemon/config_reader.hpp"

namespace spillway::daemon {

std::vector<ProviderConfig> read_providers(Reader& reader, const At& providers, const ConfigSources& sources);

}  // namespace spillway::daemon
