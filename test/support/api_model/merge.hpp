// The two patch types that a client may send as a difference.
//
// Pure. The strategic one follows apimachinery/pkg/util/strategicpatch: which lists merge, by which key, in which
// order, and the directives $patch, $setElementOrder, $deleteFromPrimitiveList and $retainKeys.
#pragma once

#include <nlohmann/json.hpp>

#include "test/support/api_model/api_error.hpp"
#include "test/support/api_model/object.hpp"

namespace spillway::test::api_model {

/// RFC 7386.
void json_merge(Draft& into, nlohmann::json patch);

/// Nothing is said about `into` if it fails.
Outcome<void> strategic_merge(Draft& into, nlohmann::json patch);

}  // namespace spillway::test::api_model
