// Keeps the state of the owner brake over restarts, in the ConfigMap spillway-brake-<installation>.
//
// Owned by the daemon, outlived by the brake; reactor thread only. Reads it once, before anything is launched, and
// writes what has changed every few seconds while the installation lease is ours. data.version is "1"; with another one
// it neither guesses nor overwrites. A row is `owner failures raised last-failure next-launch refusals hold-until
// namespace failed...`, the last ones those of failed launches, with times as micro-seconds since 1970 and `-` for no
// namespace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/core/owner_brake.hpp"
#include "vk-provider/kube/config_map_client.hpp"

namespace spillway::control {

class BrakeKeeper {
 public:
  BrakeKeeper(core::OwnerBrake& brake, kube::KubeApi& api, std::string ns, const std::string& installation,
              async::Timers& timers, std::function<bool()> holds_lease);

  /// One try to read it.
  boost::asio::awaitable<void> first_look();
  /// Until it is cancelled.
  async::Loop run();

 private:
  async::Task<void> load();
  async::Task<void> write();

  core::OwnerBrake& brake_;
  kube::ConfigMapClient maps_;
  std::string name_;
  async::Timers& timers_;
  std::function<bool()> holds_lease_;
  bool loaded_ = false;
  bool foreign_ = false;  // of another version
  std::string version_;   // of the object; empty: there is none
  std::uint64_t written_ = 0;
  bool failing_ = false;
};

std::string encode_brake(const std::vector<core::OwnerBrake::Kept>& state);
/// kInvalid with the line that is none.
base::Result<std::vector<core::OwnerBrake::Kept>> decode_brake(std::string_view rows);

}  // namespace spillway::control
