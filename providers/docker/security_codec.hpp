// What a pod says about users and rights, in an engine's words.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "providers/docker/codec.hpp"

namespace spillway::providers::docker {

/// True if `User` of the image is needed to make the container: it decides whether it would run as root, or joins a
/// group that the pod sets.
bool needs_image_user(const model::ResolvedContainer& container);

/// Why the container must not start, in a kubelet's words (verifyRunAsNonRoot); empty if it may. `image_user` is
/// `Config.User` of the image.
std::string breach_of_non_root(const InstancePlan& plan, const model::ResolvedContainer& container,
                               std::string_view image_user);

/// Fills User of `body`, and the rest of `host_config`.
void put_security(nlohmann::json& body, nlohmann::json& host_config, const InstancePlan& plan,
                  const model::ResolvedContainer& container, std::string_view image_user);

}  // namespace spillway::providers::docker
