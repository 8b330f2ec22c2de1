// DELETE: grace periods, preconditions, finalizers.
//
// Pure but for the store that it writes to. Follows rest.BeforeDelete and Store.Delete of apiserver: a graceful
// deletion that may be carried out at once is two changes, one that sets deletionTimestamp and one that removes the
// object. Collecting dependents is not done here: finalizers of propagation are set, whoever plays the collector takes
// them off.
#pragma once

#include <nlohmann/json.hpp>

#include "test/support/api_model/api_error.hpp"
#include "test/support/api_model/store.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::test::api_model {

struct Deleted {
  ObjectPtr object;  // as it is now, or was at the end
  bool gone = false;
};

Outcome<Deleted> remove(Store& store, const Target& target, const nlohmann::json& options, base::WallTime now);

}  // namespace spillway::test::api_model
