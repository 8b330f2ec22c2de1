// The image of the sandbox containers: two static programs of some kilobytes, carried in this binary.
//
// Constant data, any thread. Does not talk to an engine. x86_64 only: sandbox_pause.S and the system calls of
// sandbox_relay.c have to be written again for arm64.
#pragma once

#include <string>
#include <string_view>

namespace spillway::providers::docker {

inline constexpr std::string_view kSandboxRepository = "spillway.dev/sandbox";
/// Raised with each change of the programs, so that engines take the new ones. Sandboxes that run keep what they have.
inline constexpr std::string_view kSandboxTag = "2";
/// Where the programs lie in the image: what a sandbox runs, and what joins a port of its network to an exec.
inline constexpr std::string_view kSandboxProgram = "/pause";
inline constexpr std::string_view kSandboxRelay = "/relay";
/// As an engine calls it (GET /version).
inline constexpr std::string_view kSandboxArchitecture = "amd64";

std::string sandbox_image_name();

/// The root file system as a tar, for POST /images/create?fromSrc=-.
std::string sandbox_image_tar();

}  // namespace spillway::providers::docker
