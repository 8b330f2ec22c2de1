// `spillway fake-cloud`: a fake cloud in a process of its own, which outlives daemons.
//
// Called by main's sub-command; runs a reactor until SIGTERM or SIGINT. Its instances die with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::providers::fake {

struct FakeCloudOptions {
  FakeCloudOptions() = default;
  std::string socket;                 // --socket: where to listen
  std::optional<std::uint64_t> seed;  // --seed: wins over the file
  std::string config_file;            // --config: JSON, keys as in config.hpp; empty: the defaults
};

/// The exit code: 0 stopped by a signal, 1 cannot listen, 2 bad configuration. Says why on stderr.
int run_fake_cloud(const FakeCloudOptions& options);

}  // namespace spillway::providers::fake
