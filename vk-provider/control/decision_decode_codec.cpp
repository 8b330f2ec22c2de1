// Reading what decision_codec.cpp writes.
#include <charconv>

#include <nlohmann/json.hpp>

#include "vk-provider/control/decision_codec.hpp"

namespace spillway::control {
namespace {

using nlohmann::json;

// A field that is missing or of another type throws json::exception; decode_line is the fence.

std::string text(const json& object, const char* key) { return object.value(key, std::string()); }

std::int64_t number(const json& object, const char* key) { return object.value(key, std::int64_t{0}); }

bool flag(const json& object, const char* key) { return object.value(key, false); }

base::TimePoint at(const json& object) { return base::TimePoint(base::Duration(object.at("at").get<std::int64_t>())); }

std::uint64_t hash(const json& object, const char* key) {
  const std::string digits = object.at(key).get<std::string>();
  std::uint64_t out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

std::optional<base::Money> money(const json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return base::Money::from_micros(object.at(key).get<std::int64_t>());
}

std::optional<base::Duration> duration(const json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return base::Duration(object.at(key).get<std::int64_t>());
}

template <class T>
std::vector<T> list(const json& object, const char* key) {
  std::vector<T> out;
  if (!object.contains(key)) return out;
  for (const json& item : object.at(key)) out.emplace_back(item.get<std::string>());
  return out;
}

/// The one of an enumeration's values, from 0 to before `count`, that has this word.
template <class E>
E word(const std::string& text, int count) {
  for (int i = 0; i < count; ++i) {
    if (to_string(static_cast<E>(i)) == text) return static_cast<E>(i);
  }
  throw json::other_error::create(501, "no such word: " + text, nullptr);
}

model::CapacityType capacity_type(const std::string& text) { return word<model::CapacityType>(text, 3); }
model::Trust trust(const std::string& text) { return word<model::Trust>(text, 2); }

std::vector<model::CapacityType> capacity_types(const json& object) {
  std::vector<model::CapacityType> out;
  for (const std::string& text : list<std::string>(object, "capacityTypes")) out.push_back(capacity_type(text));
  return out;
}

model::CapabilitySet capabilities(const json& words) {
  model::CapabilitySet out;
  for (const json& item : words) {
    out.add(word<model::Capability>(item.get<std::string>(), static_cast<int>(model::Capability::kCount)));
  }
  return out;
}

core::PoolKey pool(const json& object) {
  const json& p = object.at("pool");
  core::PoolKey key;
  key.provider = base::ProviderName(text(p, "provider"));
  key.region = text(p, "region");
  key.gpu_model = text(p, "gpuModel");
  key.gpu_count = static_cast<int>(number(p, "gpus"));
  key.cpu_milli = number(p, "cpuMilli");
  key.capacity_type = capacity_type(text(p, "capacityType"));
  key.trust = trust(text(p, "trust"));
  return key;
}

model::Offer offer(const json& o) {
  model::Offer out;
  out.id = base::OfferId(text(o, "id"));
  out.region = text(o, "region");
  out.country = text(o, "country");
  out.host = text(o, "host");
  out.gpu_model = text(o, "gpuModel");
  out.gpu_count = static_cast<int>(number(o, "gpus"));
  out.gpu_memory = number(o, "gpuMemory");
  out.cuda_version = static_cast<int>(number(o, "cuda"));
  out.cpu_milli = number(o, "cpuMilli");
  out.memory = number(o, "memory");
  out.capacity_type = capacity_type(text(o, "capacityType"));
  out.trust = trust(text(o, "trust"));
  out.price_per_hour = money(o, "priceMicros");
  out.price_unreadable = flag(o, "priceUnreadable");
  out.setup_price = base::Money::from_micros(number(o, "setupMicros"));
  out.billing_grain = std::chrono::seconds(number(o, "grain"));
  out.billing_minimum = std::chrono::seconds(number(o, "minimum"));
  out.boot_billed = !flag(o, "bootFree");
  out.available = !flag(o, "soldOut");
  out.stock = static_cast<model::Stock>(number(o, "stock"));
  return out;
}

line::Begin begin(const json& object) {
  line::Begin out;
  for (const json& provider : object.at("providers")) {
    core::ProviderAbility& ability = out.abilities.emplace_back();
    ability.name = text(provider, "name");
    ability.capabilities = capabilities(provider.at("can"));
  }
  return out;
}

line::Listed listed(const json& object) {
  line::Listed out;
  out.provider = base::ProviderName(text(object, "provider"));
  out.at = at(object);
  out.own_machines = flag(object, "ownMachines");
  out.whole = flag(object, "whole");
  for (const json& o : object.at("offers")) out.offers.push_back(offer(o));
  out.gone = list<base::OfferId>(object, "gone");
  return out;
}

line::Learnt learnt(const json& object) {
  line::Learnt out;
  out.pool = pool(object);
  out.at = at(object);
  core::Beliefs::Report& r = out.report;
  r.result = word<core::LaunchResult>(text(object, "result"), static_cast<int>(core::LaunchResult::kCount));
  r.offer = base::OfferId(text(object, "offer"));
  r.host = text(object, "host");
  r.who = base::InstanceTag(text(object, "who"));
  r.took = base::Duration(number(object, "tookNs"));
  r.at_least = base::Duration(number(object, "atLeastNs"));
  r.had_run = flag(object, "hadRun");
  r.whole_provider = flag(object, "wholeProvider");
  r.pods = hash(object, "pods");
  r.digest = hash(object, "digest");
  return out;
}

model::Wishes wishes(const json& w) {
  model::Wishes out;
  out.gpu_models = list<std::string>(w, "gpuModels");
  out.min_vram = number(w, "minVram");
  out.cuda_min = static_cast<int>(number(w, "cudaMin"));
  out.max_price = money(w, "maxPriceMicros");
  out.value_of_time = money(w, "valueOfTimeMicros");
  out.expected_runtime = duration(w, "runtimeNs");
  out.capacity_types = capacity_types(w);
  out.checkpoint_interval = duration(w, "checkpointNs");
  out.image_size = number(w, "imageSize");
  out.regions = list<std::string>(w, "regions");
  out.countries = list<std::string>(w, "countries");
  out.providers = list<base::ProviderName>(w, "providers");
  if (w.contains("tier")) out.tier = word<model::Tier>(text(w, "tier"), 4);
  if (w.contains("trust")) out.trust = trust(text(w, "trust"));
  return out;
}

line::Shape shape(const json& object) {
  core::Shape s;
  s.hash = hash(object, "hash");
  s.gpu_count = static_cast<int>(number(object, "gpus"));
  s.gpu_resource = text(object, "gpuResource");
  s.cpu_milli = number(object, "cpuMilli");
  s.memory = number(object, "memory");
  s.capabilities = capabilities(object.at("needs"));
  const json& node = object.at("node");
  s.node.providers = list<base::ProviderName>(node, "providers");
  s.node.regions = list<std::string>(node, "regions");
  s.node.gpu_models = list<std::string>(node, "gpuModels");
  s.node.min_gpu_memory = number(node, "minGpuMemory");
  s.node.capacity_types = capacity_types(node);
  s.node_cap = money(object, "nodeCapMicros");
  s.pod = wishes(object.at("pod"));
  s.spot_tolerated = flag(object, "spot");
  s.strangers_tolerated = flag(object, "strangers");
  s.worth.value_of_time = base::Money::from_micros(number(object, "valueOfTimeMicros"));
  s.worth.runtime = base::Duration(number(object, "runtimeNs"));
  s.worth.checkpoint = duration(object, "checkpointNs");
  return {std::move(s)};
}

line::Decided decided(const json& object) {
  line::Decided out;
  out.at = at(object);
  out.shape = hash(object, "shape");
  out.query.pods = hash(object, "pods");
  out.query.has_run = base::Duration(number(object, "hasRunNs"));
  for (const json& b : object.value("budgets", json::array())) {
    out.query.budgets.push_back({base::ProviderName(text(b, "provider")),
                                 base::Money::from_micros(number(b, "atMostMicros")), b.at("factor").get<double>()});
  }
  out.query.avoid = list<base::OfferId>(object, "avoid");
  return out;
}

DecisionLine line_of(const json& object) {
  const std::string type = object.at("t").get<std::string>();
  if (type == "part") return line::Part{static_cast<std::uint64_t>(number(object, "part"))};
  if (type == "begin") return begin(object);
  if (type == "listed") return listed(object);
  if (type == "asked") return line::Asked{pool(object), base::InstanceTag(text(object, "who")), at(object)};
  if (type == "learnt") return learnt(object);
  if (type == "shape") return shape(object);
  if (type == "decided") return decided(object);
  throw json::other_error::create(501, "no such line: " + type, nullptr);
}

}  // namespace

base::Result<DecisionLine> decode_line(std::string_view text) {
  try {
    return line_of(json::parse(text));
  } catch (const json::exception& e) {
    return base::fail(base::ErrorKind::kInvalid, e.what());
  }
}

}  // namespace spillway::control
