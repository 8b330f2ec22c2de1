// The ownership tag of an instance: `spw-<13 base32>-<26 base32>-<attempt>`.
//
// The first part names the installation (64 bits of SHA-256 over "<cluster id>/<installation>"), the second the pod's
// UID, the third the attempt. At most 63 characters of [a-z0-9-], so that it fits any provider's name, label or tag.
// Pure; the hash is handed in because OpenSSL lives in net/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/base/ids.hpp"

namespace spillway::model {

class Ownership {
 public:
  Ownership() = default;
  /// `digest` is SHA-256 of "<cluster id>/<installation>"; its first eight bytes count.
  explicit Ownership(const std::array<std::uint8_t, 32>& digest);

  /// `spw-xxxxxxxxxxxxx-`: what all tags of this installation begin with.
  const std::string& prefix() const { return prefix_; }

  /// Empty if the UID is not a UUID (only static pods have such) or the attempt is not in 1..99999.
  std::optional<base::InstanceTag> make_tag(const base::PodUid& uid, int attempt) const;

  struct Parsed {
    base::PodUid uid;
    int attempt = 0;
  };
  /// What a tag of this installation says; empty for every other text.
  std::optional<Parsed> parse(const base::InstanceTag& tag) const;

 private:
  std::string prefix_;
};

}  // namespace spillway::model
