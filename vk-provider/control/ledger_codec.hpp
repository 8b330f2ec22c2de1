// The ledger as ConfigMaps: one row of text for each entry, and shards of rows.
//
// Pure. A shard is the ConfigMap spillway-ledger-<installation>-<UTC day>[-<number>]; an entry stands in the shard of
// the day on which it was opened, and its row is replaced there until it is gone. data.version is "1"; whoever meets
// another one must neither guess nor overwrite. A row is one line of 19 words parted by blanks:
//
//   provider instance tag pod-uid namespace pod owner-kind owner-name node offer price grain minimum settled billed
//   opened begin since until[!]
//
// in micro-dollars (per hour), seconds, micro-dollars and micro-seconds; times are micro-seconds since 1970, `-` means
// none, a `!` at the end that it is gone. In words %, blanks and control characters stand as %XX.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/core/ledger.hpp"
#include "vk-provider/kube/config_map_client.hpp"

namespace spillway::control {

inline constexpr std::string_view kLedgerVersion = "1";
inline constexpr std::string_view kLabelLedger = "spillway.dev/ledger";             // the installation
inline constexpr std::string_view kLabelLedgerDay = "spillway.dev/ledger-day";      // 2026-12-01
inline constexpr std::string_view kLabelLedgerMonth = "spillway.dev/ledger-month";  // 2026-12
inline constexpr std::string_view kLabelLedgerOpen = "spillway.dev/ledger-open";    // true, while not all are gone

std::string encode_row(const core::LedgerEntry& entry);
std::optional<core::LedgerEntry> decode_row(std::string_view row);

/// 2026-12-01, of UTC.
std::string day_of(base::WallTime time);

/// kInvalid with the name of the object and what is wrong: another version, or a row that cannot be read.
base::Result<std::vector<core::LedgerEntry>> decode_shard(const kube::ConfigMap& map);

/// Of several shards, the entries of each instance once: the latest shard counts.
base::Result<std::map<core::LedgerKey, core::LedgerEntry>> decode_shards(std::vector<kube::ConfigMap> maps);

/// As the object that is to be written.
kube::ConfigMap encode_shard(const std::string& installation, const std::string& day, int number,
                             const std::map<core::LedgerKey, std::string>& rows, bool open);

/// The selector of all shards of an installation.
std::string ledger_selector(const std::string& installation);

}  // namespace spillway::control
