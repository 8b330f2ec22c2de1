// The image of the sandbox containers: one static program of a few hundred bytes, carried in this binary.
//
// Constant data, any thread. Does not talk to an engine. x86_64 only: sandbox_pause.S has to be written again for
// arm64.
#pragma once

#include <string>
#include <string_view>

namespace spillway::providers::docker {

inline constexpr std::string_view kSandboxRepository = "spillway.dev/sandbox";
/// Raised with each change of the program, so that engines take the new one.
inline constexpr std::string_view kSandboxTag = "1";
/// Where the program lies in the image.
inline constexpr std::string_view kSandboxProgram = "/pause";
/// As an engine calls it (GET /version).
inline constexpr std::string_view kSandboxArchitecture = "amd64";

std::string sandbox_image_name();

/// The root file system as a tar, for POST /images/create?fromSrc=-.
std::string sandbox_image_tar();

}  // namespace spillway::providers::docker
