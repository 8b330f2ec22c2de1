// Server-side apply and the bookkeeping of who wrote which field (metadata.managedFields).
//
// Pure. Follows structured-merge-diff for the shapes that Nodes have: maps are granular, lists merge by the key that
// the schema gives them (conditions and addresses by type) or count as one value (taints).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "test/support/api_model/api_error.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::test::api_model {

/// Who writes, and how.
struct Writer {
  Writer() = default;
  std::string manager;
  std::string api_version;
  std::string subresource;
  base::WallTime now;
};

/// `live` with what `config` says, without what this manager applied before and no longer does. 409 if another manager
/// owns one of the fields with another value and `force` is not set.
Outcome<nlohmann::json> apply(const nlohmann::json& live, const nlohmann::json& config, const Writer& writer,
                              bool force);

/// Notes in `wanted` who owns what after any other write made it out of `live` (empty for a new object).
void note_update(const nlohmann::json& live, nlohmann::json& wanted, const Writer& writer);

/// Equal but for when the fields were written: such a write is none.
bool same_but_for_managed_times(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace spillway::test::api_model
