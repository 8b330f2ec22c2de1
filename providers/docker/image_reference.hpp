// The name of a container image: `[registry/]path[:tag][@digest]`.
//
// Pure. Checks the grammar, so that a malformed name is told from an image that is not there, and never becomes part of
// a request's path.
#pragma once

#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"

namespace spillway::providers::docker {

struct ImageReference {
  ImageReference() = default;
  std::string repository;  // as written: busybox, registry.example:5000/team/app
  std::string tag;         // `latest` if neither tag nor digest was written
  std::string digest;      // sha256:..., empty if none

  /// What the engine is asked for: the digest if there is one, else the tag.
  const std::string& version() const { return digest.empty() ? tag : digest; }
};

/// kImage, with the words of a kubelet, if it is malformed.
base::Result<ImageReference> parse_image(std::string_view name);

}  // namespace spillway::providers::docker
