// `spend:` of the configuration: the caps on money, and whether every provider that costs money is under one.
#pragma once

#include "vk-provider/daemon/config_reader.hpp"

namespace spillway::daemon {

/// `read` has the nodes and providers that caps may name; `retention` is how long the ledger is kept.
core::SpendPolicy read_spend(Reader& reader, const At& at, const Config& read, base::Duration& retention);

/// A fault for each provider that costs money and has no cap in dollars per hour: neither its own nor one of all.
void require_caps(Reader& reader, const At& providers, const Config& read, const ConfigSources& sources);

}  // namespace spillway::daemon
