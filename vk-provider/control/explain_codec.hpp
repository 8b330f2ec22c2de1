// Decisions of placement as JSON: for the admin port, and for commands.
//
// Pure. Money in micro-dollars; names, numbers and times only.
#pragma once

#include "vk-provider/base/clock.hpp"
#include "vk-provider/core/selector.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::control {

/// {"provider","offer","region",...,"pricePerHourMicros"}: what is sold.
void write_offer_fields(kube::JsonWriter& out, const model::Offer& offer);
/// An object: the offer, what is believed of it, the index with its parts and, of one that stood next, "lostBy".
void write_candidate(kube::JsonWriter& out, const core::Candidate& candidate, base::Now now);
void write_candidates(kube::JsonWriter& out, const std::vector<core::Candidate>& candidates, base::Now now);
/// An object: decision, best, next, offers, fit, rejected by filter, and what would change it.
void write_explanation(kube::JsonWriter& out, const core::Explanation& all, const core::Shape& shape, base::Now now);

}  // namespace spillway::control
