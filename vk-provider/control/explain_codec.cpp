#include "vk-provider/control/explain_codec.hpp"

#include <chrono>
#include <numeric>

#include "vk-provider/core/explain_text.hpp"

namespace spillway::control {
namespace {

std::string rfc3339(base::TimePoint at, base::Now now) {
  return base::to_rfc3339(now.wall + std::chrono::duration_cast<base::WallTime::duration>(at - now.steady));
}

double seconds(base::Duration d) { return std::chrono::duration<double>(d).count(); }

void write_opening(kube::JsonWriter& out, const core::Opening& opening, base::Now now) {
  if (opening.why == core::Closed::kNo) return;
  out.key("closed").open_object().field("why", to_string(opening.why)).field("until", rfc3339(opening.at, now));
  out.close_object();
}

void write_parts(kube::JsonWriter& out, const core::IndexParts& parts) {
  out.key("partsMicros").open_object();
  out.field_number("rent", core::whole_micros(parts.rent)).field_number("start", core::whole_micros(parts.start));
  out.field_number("loss", core::whole_micros(parts.loss)).field_number("tries", core::whole_micros(parts.tries));
  out.field_number("wait", core::whole_micros(parts.wait)).close_object();
}

}  // namespace

void write_offer_fields(kube::JsonWriter& out, const model::Offer& o) {
  out.field("provider", o.provider.str()).field("offer", o.id.str()).field_if("region", o.region);
  out.field_if("country", o.country).field_if("gpuModel", o.gpu_model).field_number("gpus", o.gpu_count);
  if (o.gpu_memory > 0) out.field_number("gpuMemoryBytes", o.gpu_memory);
  if (o.cpu_milli > 0) out.field_number("cpuMilli", o.cpu_milli);
  if (o.memory > 0) out.field_number("memoryBytes", o.memory);
  out.field("capacityType", to_string(o.capacity_type)).field("trust", to_string(o.trust));
  if (o.price_per_hour) out.field_number("pricePerHourMicros", o.price_per_hour->micros());
}

void write_candidate(kube::JsonWriter& out, const core::Candidate& c, base::Now now) {
  out.open_object();
  write_offer_fields(out, c.offer);
  out.field_number("indexMicros", c.index.micros());
  write_parts(out, c.parts);
  out.field_real("chance", c.chance).field_real("readiness", c.readiness).field_real("interruptionsPerHour", c.hazard);
  out.field_real("startSeconds", seconds(c.start));
  write_opening(out, c.opening, now);
  out.field_if("lostBy", to_string(c.lost_by));
  out.close_object();
}

void write_candidates(kube::JsonWriter& out, const std::vector<core::Candidate>& candidates, base::Now now) {
  out.open_array();
  for (const core::Candidate& c : candidates) write_candidate(out, c, now);
  out.close_array();
}

void write_explanation(kube::JsonWriter& out, const core::Explanation& all, const core::Shape& shape, base::Now now) {
  const auto rejected = std::accumulate(all.rejected.begin(), all.rejected.end(), size_t{0});
  out.open_object().field("decision", to_string(all.decision.kind));
  if (all.decision.again_at) out.field("againAt", rfc3339(*all.decision.again_at, now));
  if (all.decision.best) {
    out.key("best");
    write_candidate(out, *all.decision.best, now);
  }
  out.key("next");
  write_candidates(out, all.next, now);
  out.field_number("offers", static_cast<std::int64_t>(all.offers));
  out.field_number("fit", static_cast<std::int64_t>(all.offers - rejected));
  out.key("rejected").open_object();
  for (size_t i = 0; i < all.rejected.size(); ++i) {
    if (all.rejected.at(i) > 0) out.field_number(to_string(static_cast<core::Filter>(i)), all.rejected.at(i));
  }
  out.close_object().key("changes").open_array();
  for (const core::NearMiss& miss : all.near) {
    out.open_object().field("filter", to_string(miss.filter)).field("text", describe(miss, shape, now));
    write_offer_fields(out, miss.offer);
    out.close_object();
  }
  out.close_array().close_object();
}

}  // namespace spillway::control
