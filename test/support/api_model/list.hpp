// Lists, whole or in pages.
//
// Pure but for the store that it reads.
#pragma once

#include <string>

#include "test/support/api_model/api_error.hpp"
#include "test/support/api_model/store.hpp"

namespace spillway::test::api_model {

/// The body of the answer. A page that goes on shows the state of the first one, as long as the history reaches back to
/// it; then 410 with a token that goes on all the same, without that promise.
Outcome<std::string> list(const Store& store, const Target& target, bool metadata_only);

/// 422 for parameters that do not go together, of a list or a watch.
Outcome<void> check_list_options(const Target& target, bool watch);

}  // namespace spillway::test::api_model
