#include "vk-provider/control/debug_codec.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

#include "vk-provider/control/explain_codec.hpp"

namespace spillway::control {
namespace {

using nlohmann::json;

json ages(const model::PodRecord& record, base::TimePoint now) {
  json entered = json::object();
  for (size_t i = 0; i < model::kStageCount; ++i) {
    if (record.entered.at(i) == base::TimePoint{}) continue;
    entered[std::string(model::kStageNames.at(i))] =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - record.entered.at(i)).count();
  }
  return entered;
}

json encode(const PodEntry& entry, base::Now now) {
  const model::PodRecord& r = entry.record;
  json pod{{"namespace", r.key().ns},
           {"name", r.key().name},
           {"uid", r.key().uid.str()},
           {"node", entry.profile->name},
           {"stage", model::stage_name(r.stage)},
           {"attempt", r.attempt},
           {"ran", r.ran},
           {"deleting", r.deleting},
           {"missingListings", r.missing},
           {"enteredMillisecondsAgo", ages(r, now.steady)}};
  if (const auto* waiting = std::get_if<model::Waiting>(&r.stage)) {
    pod["waiting"] = {{"reason", to_string(waiting->why)}, {"message", waiting->message}};
  }
  if (r.placement) {
    pod["placement"] = {{"provider", r.placement->provider.str()},
                        {"offer", r.placement->offer.str()},
                        {"tag", r.placement->tag.str()},
                        {"pricePerHour", r.placement->price_per_hour.to_dollars()}};
  }
  for (const model::ContainerRecord& c : r.containers) {
    pod["containers"].push_back(
        {{"name", c.claim.name}, {"restarts", c.restarts}, {"crashesInARow", c.crashes_in_a_row}});
  }
  if (r.outcome) pod["outcome"] = {{"phase", to_string(r.outcome->phase)}, {"reason", r.outcome->reason}};
  return pod;
}

}  // namespace

std::string encode_debug_pods(const PodStore& pods, base::Now now) {
  json list = json::array();
  for (const auto& [uid, entry] : pods) list.push_back(encode(entry, now));
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string encode_debug_placement(const PodEntry& entry, Placer& placer, base::Now now) {
  const model::PodRecord& r = entry.record;
  kube::JsonWriter out;
  out.open_object().field("namespace", r.key().ns).field("name", r.key().name).field("uid", r.key().uid.str());
  out.field("node", entry.profile->name).field("stage", model::stage_name(r.stage)).field_number("attempt", r.attempt);
  if (const auto* waiting = std::get_if<model::Waiting>(&r.stage)) {
    out.key("waiting").open_object().field("reason", to_string(waiting->why)).field("message", waiting->message);
    out.close_object();
  }
  if (r.placement) {
    out.key("placement").open_object().field("provider", r.placement->provider.str());
    out.field("offer", r.placement->offer.str()).field("tag", r.placement->tag.str());
    out.field_number("pricePerHourMicros", r.placement->price_per_hour.micros()).close_object();
  }
  for (auto it = placer.decided().rbegin(); it != placer.decided().rend(); ++it) {
    if (it->pod != r.key().uid) continue;
    out.key("decided").open_object().field("at", base::to_rfc3339(it->at)).key("best");
    write_candidate(out, it->best, now);
    out.key("next");
    write_candidates(out, it->next, now);
    out.close_object();
    break;
  }
  const core::Requirements needs = core::compute_requirements(*r.spec, entry.profile->public_ports);
  const core::Shape shape = core::make_shape(needs, *entry.profile, r.spec->owner.kind.str());
  out.key("now");
  write_explanation(out, placer.explain(entry, shape, now), shape, now);
  return out.close_object().take();
}

}  // namespace spillway::control
