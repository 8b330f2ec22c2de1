// `spillway sweep`: finds instances of this installation that no living pod owns, and ends them.
//
// Stands alone: works while the daemon is down, and beside one that runs. Absence counts only in complete listings and
// twice; what cannot be asked is never taken for gone.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/daemon/cli_output.hpp"
#include "vk-provider/daemon/cli_session.hpp"

namespace spillway::daemon {

struct SweepOptions {
  SweepOptions() = default;
  std::string installation;
  std::string cluster_id;  // empty: the UID of kube-system
  bool dry_run = false;
};

struct SweptInstance {
  SweptInstance() = default;
  model::Instance instance;
  model::Ownership::Parsed owner;
  /// orphan (dry run), spared (not an orphan at the second look), gone, ending (asked for, not gone yet), failed.
  std::string outcome;
  std::string message;
};

struct SweepReport {
  SweepReport() = default;
  int exit_code = kExitDone;
  std::string problem;        // why nothing was done; empty if all was asked
  std::size_t instances = 0;  // of this installation, that were seen
  std::vector<SweptInstance> found;
};

/// What `spillway sweep` does between its input and its output. Waits 10 s between the two looks.
boost::asio::awaitable<SweepReport> sweep(Surroundings in, SweepOptions options);

std::string to_text(const SweepReport& report, Output output);

}  // namespace spillway::daemon
