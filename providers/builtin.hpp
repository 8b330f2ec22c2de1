// The providers that are part of the program.
//
// The only place that knows all of them; main hands the table to the daemon, which knows none.
#pragma once

#include "vk-provider/provider/registry.hpp"

namespace spillway::providers {

/// `type` of providers[] in the configuration -> what makes it.
provider::Registry builtin_providers();

}  // namespace spillway::providers
