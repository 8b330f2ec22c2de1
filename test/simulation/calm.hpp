// What must be so once faults are over and some time has passed.
//
// Pure functions over the facts; each returns what is not so yet, or nothing.
#pragma once

#include <string>

#include "test/simulation/cloud_site.hpp"
#include "test/simulation/facts.hpp"
#include "test/simulation/users.hpp"

namespace spillway::simulation {

/// With users still there: every pod runs on its one instance, has ended, is one that never will run, or is held as
/// others like it fail; no instance is without a pod. `scarce`: there need not be something to buy for everybody.
std::string unsettled(const Facts& facts, const Users& users, bool scarce);

/// After the users have left: no pod, and no instance but foreign ones.
std::string remains(const Facts& facts);

/// The invoice, which knows nothing of our facts: no meter runs but foreign ones.
std::string still_billed(CloudSite& site, base::TimePoint now);

}  // namespace spillway::simulation
