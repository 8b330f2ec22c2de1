// The text of state.spillway.dev/placement, version 1:
//
//   {"v":1,"uid":"<pod>","provider":"...","offer":"...","region":"...","gpus":1,"capacityType":"on-demand",
//    "pricePerHourMicros":2390000,"tag":"spw-...","attempt":1,"instance":"...","ran":true}
//
// `instance` is absent while it is only intended, `ran` unless the pod was Running once. A reader that meets another
// version must do nothing with the pod; a field may be added without a new version only if it may be ignored.
#include <utility>

#include <nlohmann/json.hpp>
#include "vk-provider/kube/json_writer.hpp"
#include "vk-provider/kube/pod_codec.hpp"

namespace spillway::kube {
namespace {

using Json = nlohmann::json;
using model::StateAnnotation;

constexpr std::int64_t kVersion = 1;

std::optional<std::string> text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

std::optional<std::int64_t> number_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  return it->get<std::int64_t>();
}

std::optional<model::CapacityType> capacity_type(std::string_view word) {
  for (const auto type : {model::CapacityType::kOnDemand, model::CapacityType::kSpot, model::CapacityType::kReserved}) {
    if (word == to_string(type)) return type;
  }
  return std::nullopt;
}

StateAnnotation unreadable(std::string problem) {
  StateAnnotation out;
  out.kind = StateAnnotation::Kind::kUnreadable;
  out.problem = std::move(problem);
  return out;
}

/// The name of the first field that is missing or no sensible value; empty if all is well.
std::string read_record(const Json& object, const base::PodUid& uid, model::StateRecord& out) {
  const auto provider = text_of(object, "provider");
  const auto offer = text_of(object, "offer");
  const auto tag = text_of(object, "tag");
  const auto attempt = number_of(object, "attempt");
  const auto price = number_of(object, "pricePerHourMicros");
  const auto gpus = number_of(object, "gpus");
  const auto type = capacity_type(text_of(object, "capacityType").value_or(std::string()));
  if (!provider || provider->empty()) return "provider";
  if (!offer) return "offer";
  if (!tag || tag->empty()) return "tag";
  if (!attempt || *attempt < 1 || !std::in_range<int>(*attempt)) return "attempt";
  if (!price || *price < 0) return "pricePerHourMicros";
  if (!gpus || *gpus < 0 || !std::in_range<int>(*gpus)) return "gpus";
  if (!type) return "capacityType";

  out.placement.pod = uid;
  out.placement.provider = base::ProviderName(*provider);
  out.placement.offer = base::OfferId(*offer);
  out.placement.region = text_of(object, "region").value_or(std::string());
  out.placement.gpu_count = static_cast<int>(*gpus);
  out.placement.capacity_type = *type;
  out.placement.price_per_hour = base::Money::from_micros(*price);
  out.placement.tag = base::InstanceTag(*tag);
  out.placement.attempt = static_cast<int>(*attempt);
  out.instance = base::InstanceId(text_of(object, "instance").value_or(std::string()));
  const auto ran = object.find("ran");
  out.ran = ran != object.end() && ran->is_boolean() && ran->get<bool>();
  return {};
}

}  // namespace

std::string encode_state(const model::StateRecord& record) {
  const model::Placement& placement = record.placement;
  JsonWriter out;
  out.open_object();
  out.field_number("v", kVersion);
  out.field("uid", placement.pod.str());
  out.field("provider", placement.provider.str());
  out.field("offer", placement.offer.str());
  out.field_if("region", placement.region);
  out.field_number("gpus", placement.gpu_count);
  out.field("capacityType", to_string(placement.capacity_type));
  out.field_number("pricePerHourMicros", placement.price_per_hour.micros());
  out.field("tag", placement.tag.str());
  out.field_number("attempt", placement.attempt);
  out.field_if("instance", record.instance.str());
  if (record.ran) out.field_bool("ran", true);
  out.close_object();
  return out.take();
}

StateAnnotation decode_state(std::string_view text, const base::PodUid& uid) {
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return unreadable("it is no JSON object");
  const auto owner = text_of(object, "uid");
  if (!owner) return unreadable("it has no uid");
  StateAnnotation out;
  if (*owner != uid.str()) {
    out.kind = StateAnnotation::Kind::kForeign;
    return out;
  }
  const auto version = number_of(object, "v");
  if (version != kVersion) {
    return unreadable("its version is " + (version ? std::to_string(*version) : std::string("missing")) +
                      ", and this Spillway knows only " + std::to_string(kVersion));
  }
  model::StateRecord record;
  const std::string bad = read_record(object, uid, record);
  if (!bad.empty()) return unreadable("its field " + bad + " is missing or wrong");
  out.kind = StateAnnotation::Kind::kRecord;
  out.record = std::move(record);
  return out;
}

}  // namespace spillway::kube
