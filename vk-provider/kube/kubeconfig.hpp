// Reads a kubeconfig: the current context's cluster and user.
//
// Pure, but for the files that it names. What Spillway does not do (exec plugins, passwords, proxies, unverified TLS,
// impersonation) is refused by name, never skipped: a daemon with other rights than its operator believes is worse than
// none.
#pragma once

#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/kube/credentials.hpp"

namespace spillway::kube {

/// kInvalid; the message lists every fault, each with its key path.
base::Result<ClusterAccess> load_kubeconfig(const std::string& path);

/// The same for a text; relative paths in it begin at `directory`, `name` stands in messages.
base::Result<ClusterAccess> parse_kubeconfig(std::string_view text, const std::string& directory,
                                             const std::string& name);

}  // namespace spillway::kube
