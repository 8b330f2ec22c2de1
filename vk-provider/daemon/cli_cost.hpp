// `spillway cost`: what was spent, by the ledger in the ConfigMaps of the installation.
//
// Stands alone: works while the daemon is down, and beside one that runs. What runs is counted until now, as if it
// ended now. The daemon writes what changes within a second or two.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/core/ledger.hpp"
#include "vk-provider/daemon/cli_output.hpp"
#include "vk-provider/daemon/cli_session.hpp"

namespace spillway::daemon {

enum class CostBy : std::uint8_t { kNamespace, kOwner, kProvider, kNode, kPod };
std::string_view word_of(CostBy by);

struct CostOptions {
  CostOptions() = default;
  std::string ns;            // of the installation
  std::string installation;  // its name
  CostBy by = CostBy::kNamespace;
  std::optional<base::WallTime> since;  // empty: all that the ledger holds
};

struct CostRow {
  CostRow() = default;
  std::string name;
  int instances = 0;
  int running = 0;       // that are billed now
  base::Money per_hour;  // of those
  base::Money spent;
};

struct CostReport {
  CostReport() = default;
  int exit_code = kExitDone;
  std::string problem;
  CostBy by = CostBy::kNamespace;
  std::optional<base::WallTime> since;
  std::vector<CostRow> rows;  // the dearest first
  CostRow total;
};

/// `24h`, `7d`, `2026-12-01`, `2026-12-01T08:00:00Z`. kInvalid with what is allowed.
base::Result<base::WallTime> parse_since(std::string_view text, base::WallTime now);

/// Pure: the rows of a table from entries.
CostReport sum_up(const std::vector<core::LedgerEntry>& entries, const CostOptions& options, base::WallTime now);

boost::asio::awaitable<CostReport> gather_cost(Surroundings in, CostOptions options);

std::string to_text(const CostReport& report, Output output);

}  // namespace spillway::daemon
