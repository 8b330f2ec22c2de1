// Writing; decision_decode_codec.cpp reads.
#include "vk-provider/control/decision_codec.hpp"

#include "vk-provider/kube/json_writer.hpp"

namespace spillway::control {
namespace {

using kube::JsonWriter;

constexpr std::int64_t kVersion = 1;

std::int64_t nanos(base::TimePoint t) { return t.time_since_epoch().count(); }

JsonWriter begin(std::string_view type) {
  JsonWriter out;
  out.open_object().field("t", type);
  return out;
}

JsonWriter begin(std::string_view type, base::TimePoint at) {
  JsonWriter out = begin(type);
  out.field_number("at", nanos(at));
  return out;
}

std::string end(JsonWriter& out) { return out.close_object().take(); }

/// 64 bits do not fit into a number of every reader.
void field_hash(JsonWriter& out, std::string_view name, std::uint64_t hash) { out.field(name, std::to_string(hash)); }

template <class List>
void field_list(JsonWriter& out, std::string_view name, const List& list) {
  if (list.empty()) return;
  out.key(name).open_array();
  for (const auto& item : list) {
    if constexpr (requires { item.str(); }) {
      out.string(item.str());
    } else if constexpr (requires { to_string(item); }) {
      out.string(to_string(item));
    } else {
      out.string(item);
    }
  }
  out.close_array();
}

void field_money(JsonWriter& out, std::string_view name, const std::optional<base::Money>& money) {
  if (money) out.field_number(name, money->micros());
}

void field_duration(JsonWriter& out, std::string_view name, const std::optional<base::Duration>& d) {
  if (d) out.field_number(name, d->count());
}

void field_if_set(JsonWriter& out, std::string_view name, std::int64_t value) {
  if (value != 0) out.field_number(name, value);
}

void field_flag(JsonWriter& out, std::string_view name, bool value) {
  if (value) out.field_bool(name, true);
}

void field_capabilities(JsonWriter& out, std::string_view name, const model::CapabilitySet& set) {
  out.key(name).open_array();
  for (size_t i = 0; i < static_cast<size_t>(model::Capability::kCount); ++i) {
    if (const auto c = static_cast<model::Capability>(i); set.has(c)) out.string(to_string(c));
  }
  out.close_array();
}

void field_pool(JsonWriter& out, const core::PoolKey& pool) {
  out.key("pool").open_object().field("provider", pool.provider.str()).field_if("region", pool.region);
  out.field_if("gpuModel", pool.gpu_model);
  field_if_set(out, "gpus", pool.gpu_count);
  field_if_set(out, "cpuMilli", pool.cpu_milli);
  out.field("capacityType", to_string(pool.capacity_type)).field("trust", to_string(pool.trust)).close_object();
}

/// Of a listing's provider; all that core reads of it.
void write_offer(JsonWriter& out, const model::Offer& o) {
  out.open_object().field("id", o.id.str()).field_if("region", o.region).field_if("country", o.country);
  out.field_if("host", o.host).field_if("gpuModel", o.gpu_model);
  field_if_set(out, "gpus", o.gpu_count);
  field_if_set(out, "gpuMemory", o.gpu_memory);
  field_if_set(out, "cuda", o.cuda_version);
  field_if_set(out, "cpuMilli", o.cpu_milli);
  field_if_set(out, "memory", o.memory);
  out.field("capacityType", to_string(o.capacity_type)).field("trust", to_string(o.trust));
  field_money(out, "priceMicros", o.price_per_hour);
  field_flag(out, "priceUnreadable", o.price_unreadable);
  field_if_set(out, "setupMicros", o.setup_price.micros());
  out.field_number("grain", o.billing_grain.count());
  field_if_set(out, "minimum", o.billing_minimum.count());
  field_flag(out, "bootFree", !o.boot_billed);
  field_flag(out, "soldOut", !o.available);
  field_if_set(out, "stock", static_cast<std::int64_t>(o.stock));
  out.close_object();
}

void field_wishes(JsonWriter& out, const model::Wishes& w) {
  out.key("pod").open_object();
  field_list(out, "gpuModels", w.gpu_models);
  field_if_set(out, "minVram", w.min_vram);
  field_if_set(out, "cudaMin", w.cuda_min);
  field_money(out, "maxPriceMicros", w.max_price);
  field_money(out, "valueOfTimeMicros", w.value_of_time);
  field_duration(out, "runtimeNs", w.expected_runtime);
  field_list(out, "capacityTypes", w.capacity_types);
  field_duration(out, "checkpointNs", w.checkpoint_interval);
  field_if_set(out, "imageSize", w.image_size);
  field_list(out, "regions", w.regions);
  field_list(out, "countries", w.countries);
  field_list(out, "providers", w.providers);
  if (w.tier) out.field("tier", to_string(*w.tier));
  if (w.trust) out.field("trust", to_string(*w.trust));
  out.close_object();
}

void field_node(JsonWriter& out, const model::OfferFilter& node) {
  out.key("node").open_object();
  field_list(out, "providers", node.providers);
  field_list(out, "regions", node.regions);
  field_list(out, "gpuModels", node.gpu_models);
  field_if_set(out, "minGpuMemory", node.min_gpu_memory);
  field_list(out, "capacityTypes", node.capacity_types);
  out.close_object();
}

void field_query(JsonWriter& out, const core::Query& query) {
  field_hash(out, "shape", query.shape->hash);
  field_hash(out, "pods", query.pods);
  field_if_set(out, "hasRunNs", query.has_run.count());
  if (!query.budgets.empty()) {
    out.key("budgets").open_array();
    for (const core::ProviderBudget& b : query.budgets) {
      out.open_object().field("provider", b.provider.str()).field_number("atMostMicros", b.at_most.micros());
      out.field_real("factor", b.price_factor).close_object();
    }
    out.close_array();
  }
  field_list(out, "avoid", query.avoid);
}

}  // namespace

std::string encode_offer(const model::Offer& offer) {
  JsonWriter out;
  write_offer(out, offer);
  return out.take();
}

std::string encode_line(const line::Part& part) {
  JsonWriter out = begin("part");
  out.field_number("v", kVersion).field_number("part", static_cast<std::int64_t>(part.number));
  return end(out);
}

std::string encode_line(const line::Begin& line) {
  JsonWriter out = begin("begin");
  out.key("providers").open_array();
  for (const core::ProviderAbility& ability : line.abilities) {
    out.open_object().field("name", ability.name);
    field_capabilities(out, "can", ability.capabilities);
    out.close_object();
  }
  out.close_array();
  return end(out);
}

std::string encode_line(const line::Listed& listed) {
  JsonWriter out = begin("listed", listed.at);
  out.field("provider", listed.provider.str());
  field_flag(out, "ownMachines", listed.own_machines);
  out.field_bool("whole", listed.whole).key("offers").open_array();
  for (const model::Offer& offer : listed.offers) write_offer(out, offer);
  out.close_array();
  field_list(out, "gone", listed.gone);
  return end(out);
}

std::string encode_line(const line::Asked& asked) {
  JsonWriter out = begin("asked", asked.at);
  field_pool(out, asked.pool);
  out.field("who", asked.who.str());
  return end(out);
}

std::string encode_line(const line::Learnt& learnt) {
  const core::Beliefs::Report& r = learnt.report;
  JsonWriter out = begin("learnt", learnt.at);
  field_pool(out, learnt.pool);
  out.field("result", to_string(r.result)).field_if("offer", r.offer.str()).field_if("host", r.host);
  out.field_if("who", r.who.str());
  field_if_set(out, "tookNs", r.took.count());
  field_if_set(out, "atLeastNs", r.at_least.count());
  field_flag(out, "hadRun", r.had_run);
  field_flag(out, "wholeProvider", r.whole_provider);
  field_hash(out, "pods", r.pods);
  field_hash(out, "digest", r.digest);
  return end(out);
}

std::string encode_line(const line::Shape& line) {
  const core::Shape& s = line.shape;
  JsonWriter out = begin("shape");
  field_hash(out, "hash", s.hash);
  field_if_set(out, "gpus", s.gpu_count);
  out.field_if("gpuResource", s.gpu_resource);
  field_if_set(out, "cpuMilli", s.cpu_milli);
  field_if_set(out, "memory", s.memory);
  field_capabilities(out, "needs", s.capabilities);
  field_node(out, s.node);
  field_money(out, "nodeCapMicros", s.node_cap);
  field_wishes(out, s.pod);
  field_flag(out, "spot", s.spot_tolerated);
  field_flag(out, "strangers", s.strangers_tolerated);
  out.field_number("valueOfTimeMicros", s.worth.value_of_time.micros())
      .field_number("runtimeNs", s.worth.runtime.count());
  field_duration(out, "checkpointNs", s.worth.checkpoint);
  return end(out);
}

std::string encode_decided(const core::Query& query, const core::Decision& decision, base::TimePoint at) {
  JsonWriter out = begin("decided", at);
  field_query(out, query);
  out.field("decision", to_string(decision.kind));
  if (decision.again_at) out.field_number("againAt", nanos(*decision.again_at));
  if (decision.best) {
    const core::Candidate& c = *decision.best;
    out.field("provider", c.offer.provider.str()).field("offer", c.offer.id.str());
    field_money(out, "priceMicros", c.offer.price_per_hour);
    out.field_number("indexMicros", c.index.micros()).field_real("chance", c.chance);
    out.field_real("readiness", c.readiness).field_real("hazard", c.hazard).field_number("startNs", c.start.count());
    out.field_real("rent", c.parts.rent).field_real("start", c.parts.start).field_real("loss", c.parts.loss);
    out.field_real("tries", c.parts.tries).field_real("wait", c.parts.wait);
    if (c.opening.why != core::Closed::kNo) out.field("closed", to_string(c.opening.why));
  }
  return end(out);
}

}  // namespace spillway::control
