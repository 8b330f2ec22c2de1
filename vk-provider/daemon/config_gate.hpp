// `gate:` of the configuration: the capacity gates, and the Prometheus that they may ask.
#pragma once

#include "vk-provider/daemon/config_reader.hpp"

namespace spillway::daemon {

/// `read` has the nodes that gates may name, and their GPUs.
GateConfig read_gate(Reader& reader, const At& at, const Config& read);

/// The PromQL for free GPUs at home, of the series of kube-state-metrics, and the one for the
/// age of its newest sample.
std::string default_free_query(model::GpuResource resource);
std::string default_freshness_query(model::GpuResource resource);

}  // namespace spillway::daemon
