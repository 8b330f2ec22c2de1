// One purchase of a pod, from the choice until nothing of it can cost anything any more.
//
// A value in PodEntry, kept by Placer alone.
#pragma once

#include <optional>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/ids.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/core/pool.hpp"

namespace spillway::control {

struct Launch {
  base::InstanceTag tag;  // its money is reserved under it
  base::ProviderName provider;
  bool chosen = false;  // the record knows of it; until then it is not missed there
  // What is to be told of how it goes; not known of what an earlier process chose.
  std::optional<core::PoolId> pool{};
  base::OfferId offer{};
  base::SharedText host{};
  base::SharedText why{};  // that offer, in one line: for the intent, and for the event once it is accepted
  std::uint64_t pods = 0;  // core::Query::pods
  std::uint64_t digest = 0;
  std::optional<base::TimePoint> reserved{};  // by this process: nothing was bought under the tag before
  base::TimePoint asked{};                    // the last create call
  bool unanswered = true;                     // nothing was heard of it yet
  std::optional<base::TimePoint> accepted{};  // when the provider had it
  bool ran = false;
  bool told = false;     // how it failed
  bool stopped = false;  // we asked for its end
};

}  // namespace spillway::control
