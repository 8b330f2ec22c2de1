// Which of a pod's credentials are for which image, and what of a pull's failure to tell whom.
//
// Pure. The values hold secrets: they are given to the engine, and to nobody else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/secret.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::providers::docker {

/// The registry that a repository (as in ImageReference) is of: `registry.example:5000`, or `docker.io`, which goes by
/// several names and stands for names without a registry.
std::string registry_of(std::string_view repository);

/// The credentials to try, one after the other: those of the repository's registry, the longest path first, then in the
/// order of the pod. A registry may be written as dockerconfigjson allows: with a scheme, with `/v1/` or `/v2/` behind
/// it, and with `*` for a part of its name. As a kubelet does it, but that a path ends at a slash.
std::vector<model::PullAuth> matching_auth(const std::vector<model::PullAuth>& all, std::string_view repository);

/// Value of the X-Registry-Auth header. Empty if name or password are not UTF-8: JSON cannot carry them.
base::Secret encode_registry_auth(const model::PullAuth& auth, const std::string& registry);

/// The text without the password, should the other side have repeated it.
std::string without_secret(std::string text, const base::Secret& password);

}  // namespace spillway::providers::docker
