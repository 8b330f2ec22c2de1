// What the daemons have written down of money, against what the clouds ask for.
//
// Pure functions over the API server's objects, the invoices and the facts; each returns what is not so, or nothing.
#pragma once

#include <map>
#include <set>
#include <string>

#include "test/simulation/cloud_site.hpp"
#include "test/simulation/facts.hpp"
#include "test/support/api_server_model.hpp"
#include "vk-provider/core/ledger.hpp"

namespace spillway::simulation {

using LedgerRows = std::map<core::LedgerKey, core::LedgerEntry>;

/// What stands in the ConfigMaps of the installation.
base::Result<LedgerRows> read_ledger(const test::ApiServerModel& api);

/// Once everything is gone: each instance that a daemon knew of has one entry, that entry is closed, and it is not
/// below the invoice. `harmed`: daemons that were killed or frozen; what only those knew may have died with them.
std::string misbilled(const Facts& facts, CloudSite& site, const LedgerRows& ledger,
                      const std::set<std::string>& harmed, base::TimePoint now);

}  // namespace spillway::simulation
