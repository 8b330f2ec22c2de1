#include "vk-provider/control/debug_codec.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

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

}  // namespace spillway::control
