// Reads the section kubeletApi. Main's thread, during one parse_config().
#pragma once

#include <cstddef>

#include "vk-provider/api/kubelet_config.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/daemon/config_reader.hpp"

namespace spillway::daemon {

/// `nodes`: how many there are, each of which needs a port.
api::KubeletApiConfig read_kubelet_api(Reader& reader, const At& at, std::size_t nodes);

/// A word of the kubelet's: VersionTLS12, VersionTLS13. kInvalid names those that there are.
base::Result<net::TlsVersion> parse_tls_version(const std::string& word);

}  // namespace spillway::daemon
