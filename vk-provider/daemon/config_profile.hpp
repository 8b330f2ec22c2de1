// Reads `nodes[]` of the configuration.
//
// Used by config.cpp on main's thread. Checks all that can be said without asking a provider.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/daemon/config.hpp"
#include "vk-provider/daemon/config_reader.hpp"

namespace spillway::daemon {

/// Why a node cannot have this name, as `found X; allowed: Y`; empty if it can.
std::string node_name_problem(const std::string& name);

/// `providers` are the names that offers.providers may mention.
std::vector<model::NodeProfile> read_profiles(Reader& reader, const At& nodes,
                                              const std::vector<std::string>& providers, const ConfigSources& sources);

}  // namespace spillway::daemon
