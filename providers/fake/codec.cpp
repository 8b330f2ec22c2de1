#include "providers/fake/codec.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "providers/fake/orders.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;
using nlohmann::json;

std::string text_of(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

const json* find(const json& j, const char* key) {
  if (!j.is_object()) return nullptr;
  const auto it = j.find(key);
  return it == j.end() || it->is_null() ? nullptr : &*it;
}
std::string text(const json& j, const char* key) {
  const json* v = find(j, key);
  return v != nullptr && v->is_string() ? v->get<std::string>() : std::string();
}
std::optional<std::int64_t> number(const json& j, const char* key) {
  const json* v = find(j, key);
  if (v == nullptr || !v->is_number_integer()) return std::nullopt;
  return v->get<std::int64_t>();
}
bool flag(const json& j, const char* key, bool otherwise = false) {
  const json* v = find(j, key);
  return v != nullptr && v->is_boolean() ? v->get<bool>() : otherwise;
}
const json& list(const json& j, const char* key) {
  static const json empty = json::array();
  const json* v = find(j, key);
  return v != nullptr && v->is_array() ? *v : empty;
}

json time_json(const std::optional<base::WallTime>& t) { return t ? json(base::to_rfc3339_micro(*t)) : json(); }
std::optional<base::WallTime> time(const json& j, const char* key) { return base::from_rfc3339(text(j, key)); }
json money_json(const std::optional<base::Money>& m) { return m ? json(m->micros()) : json(); }
std::optional<base::Money> money(const json& j, const char* key) {
  const auto n = number(j, key);
  return n ? std::optional(base::Money::from_micros(*n)) : std::nullopt;
}

// The enumerator whose word it is; enumerators count from 0 to `last`.
template <class Enum, class ToString>
Enum word(const std::string& w, Enum last, Enum otherwise, ToString to_word) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_word(static_cast<Enum>(i)) == w) return static_cast<Enum>(i);
  }
  return otherwise;
}

std::string_view container_word(model::ContainerState s) {
  constexpr std::array<std::string_view, 3> kWords = {"waiting", "running", "exited"};
  return kWords.at(static_cast<size_t>(s));
}

base::Result<json> parse_object(std::string_view s) {
  json j = json::parse(s, nullptr, false);
  if (!j.is_object()) return base::fail(ErrorKind::kInvalid, "the body is not a JSON object");
  return j;
}

// What is empty is left out: a listing of all instances is polled, and most of its fields are empty.
json container_json(const model::InstanceContainer& c) {
  json j = {
      {"name", c.name}, {"state", container_word(c.state)}, {"imageId", c.image_id}, {"containerId", c.container_id}};
  if (c.started_at) j["startedAt"] = time_json(c.started_at);
  if (c.finished_at) j["finishedAt"] = time_json(c.finished_at);
  if (!c.reason.empty()) j["reason"] = c.reason;
  if (!c.message.empty()) j["message"] = c.message;
  if (c.exit_code) j["exitCode"] = *c.exit_code;
  if (c.oom_killed) j["oomKilled"] = true;
  if (c.created) j["created"] = true;
  if (c.restarts != 0) j["restarts"] = c.restarts;
  return j;
}

model::InstanceContainer to_container(const json& j) {
  model::InstanceContainer c;
  c.name = text(j, "name");
  c.state = word(text(j, "state"), model::ContainerState::kExited, model::ContainerState::kWaiting, container_word);
  c.reason = text(j, "reason");
  c.message = text(j, "message");
  if (const auto code = number(j, "exitCode")) c.exit_code = static_cast<int>(*code);
  c.oom_killed = flag(j, "oomKilled");
  c.created = flag(j, "created");
  c.restarts = static_cast<int>(number(j, "restarts").value_or(0));
  c.started_at = time(j, "startedAt");
  c.finished_at = time(j, "finishedAt");
  c.image_id = text(j, "imageId");
  c.container_id = text(j, "containerId");
  return c;
}

json instance_json(const model::Instance& i) {
  json containers = json::array();
  for (const auto& c : i.containers) containers.push_back(container_json(c));
  json j = {{"id", i.ref.id.str()},
            {"tag", i.tag.str()},
            {"state", model::to_string(i.state)},
            {"containers", std::move(containers)},
            {"billing",
             {{"from", time_json(i.billing.from)},
              {"grainSeconds", i.billing.grain.count()},
              {"minimumSeconds", i.billing.minimum.count()}}}};
  if (i.price_per_hour) j["pricePerHourMicros"] = i.price_per_hour->micros();
  if (i.created_at) j["createdAt"] = time_json(i.created_at);
  if (!i.message.empty()) j["message"] = i.message;
  if (i.image_error) j["imageError"] = true;
  if (i.preempted) j["preempted"] = true;
  if (!i.address.empty()) j["address"] = i.address;
  for (const auto& p : i.ports) {
    j["ports"].push_back({{"containerPort", p.container_port}, {"host", p.host}, {"publicPort", p.public_port}});
  }
  return j;
}

base::Result<model::Instance> to_instance(const json& j) {
  model::Instance i;
  i.ref.id = base::InstanceId(text(j, "id"));
  if (i.ref.id.empty()) return base::fail(ErrorKind::kInvalid, "an instance without an id");
  i.tag = base::InstanceTag(text(j, "tag"));
  i.state = word(text(j, "state"), model::InstanceState::kUnknown, model::InstanceState::kUnknown,
                 [](model::InstanceState s) { return model::to_string(s); });
  i.message = text(j, "message");
  i.image_error = flag(j, "imageError");
  i.preempted = flag(j, "preempted");
  for (const json& c : list(j, "containers")) i.containers.push_back(to_container(c));
  i.address = text(j, "address");
  for (const json& p : list(j, "ports")) {
    model::InstancePort port;
    port.container_port = static_cast<int>(number(p, "containerPort").value_or(0));
    port.host = text(p, "host");
    port.public_port = static_cast<int>(number(p, "publicPort").value_or(0));
    i.ports.push_back(std::move(port));
  }
  i.price_per_hour = money(j, "pricePerHourMicros");
  if (const json* b = find(j, "billing")) {
    i.billing.from = time(*b, "from");
    i.billing.grain = std::chrono::seconds(number(*b, "grainSeconds").value_or(1));
    i.billing.minimum = std::chrono::seconds(number(*b, "minimumSeconds").value_or(0));
  }
  i.created_at = time(j, "createdAt");
  return i;
}

model::Offer to_offer(const json& j) {
  model::Offer o;
  o.id = base::OfferId(text(j, "id"));
  o.region = text(j, "region");
  o.gpu_model = text(j, "gpuModel");
  o.gpu_count = static_cast<int>(number(j, "gpuCount").value_or(0));
  o.gpu_memory = number(j, "gpuMemory").value_or(0);
  o.cpu_milli = number(j, "cpuMilli").value_or(0);
  o.memory = number(j, "memory").value_or(0);
  o.capacity_type = word(text(j, "capacityType"), model::CapacityType::kReserved, model::CapacityType::kOnDemand,
                         [](model::CapacityType t) { return model::to_string(t); });
  o.trust = text(j, "trust") == "community" ? model::Trust::kCommunity : model::Trust::kDatacenter;
  o.price_per_hour = money(j, "pricePerHourMicros");
  o.available = flag(j, "available");
  return o;
}

}  // namespace

std::string encode_offers(const std::vector<model::Offer>& offers) {
  json out = json::array();
  for (const model::Offer& o : offers) {
    out.push_back({{"id", o.id.str()},
                   {"region", o.region},
                   {"gpuModel", o.gpu_model},
                   {"gpuCount", o.gpu_count},
                   {"gpuMemory", o.gpu_memory},
                   {"cpuMilli", o.cpu_milli},
                   {"memory", o.memory},
                   {"capacityType", model::to_string(o.capacity_type)},
                   {"trust", o.trust == model::Trust::kCommunity ? "community" : "datacenter"},
                   {"pricePerHourMicros", money_json(o.price_per_hour)},
                   {"available", o.available}});
  }
  return text_of({{"offers", std::move(out)}});
}

base::Result<std::vector<model::Offer>> decode_offers(std::string_view s) {
  const auto j = parse_object(s);
  if (!j) return base::fail(j.error());
  std::vector<model::Offer> offers;
  for (const json& o : list(*j, "offers")) {
    offers.push_back(to_offer(o));
    if (offers.back().id.empty()) return base::fail(ErrorKind::kInvalid, "an offer without an id");
  }
  return offers;
}

std::string encode_create(const CreateRequest& r) {
  json containers = json::array();
  for (const auto& c : r.containers) containers.push_back({{"name", c.name}, {"image", c.image}, {"start", c.start}});
  return text_of({{"tag", r.tag},
                  {"offer", r.offer},
                  {"pod", r.pod},
                  {"containers", std::move(containers)},
                  {"publicPorts", r.public_ports},
                  {"orders", r.orders}});
}

base::Result<CreateRequest> decode_create(std::string_view s) {
  const auto j = parse_object(s);
  if (!j) return base::fail(j.error());
  CreateRequest r;
  r.tag = text(*j, "tag");
  r.offer = text(*j, "offer");
  r.pod = text(*j, "pod");
  for (const json& c : list(*j, "containers")) {
    CreateRequest::Container container;
    container.name = text(c, "name");
    container.image = text(c, "image");
    container.start = flag(c, "start", true);
    r.containers.push_back(std::move(container));
  }
  for (const json& p : list(*j, "publicPorts")) {
    if (p.is_number_integer()) r.public_ports.push_back(p.get<int>());
  }
  if (const json* orders = find(*j, "orders"); orders != nullptr && orders->is_object()) {
    for (const auto& [key, value] : orders->items()) {
      if (value.is_string()) r.orders.emplace(key, value.get<std::string>());
    }
  }
  return r;
}

std::string encode_instance(const model::Instance& instance) { return text_of(instance_json(instance)); }

base::Result<model::Instance> decode_instance(std::string_view s) {
  const auto j = parse_object(s);
  if (!j) return base::fail(j.error());
  return to_instance(*j);
}

std::string encode_list(const provider::OwnedList& owned) {
  json instances = json::array();
  for (const auto& i : owned.instances) instances.push_back(instance_json(i));
  json j = {{"instances", std::move(instances)}, {"complete", owned.complete}};
  if (!owned.incomplete_why.empty()) j["incompleteWhy"] = owned.incomplete_why;
  return text_of(j);
}

base::Result<provider::OwnedList> decode_list(std::string_view s) {
  const auto j = parse_object(s);
  if (!j) return base::fail(j.error());
  const json* instances = find(*j, "instances");
  // A list that is not there is not an empty one.
  if (instances == nullptr || !instances->is_array())
    return base::fail(ErrorKind::kInvalid, "a listing without instances");
  provider::OwnedList owned;
  for (const json& i : *instances) {
    auto instance = to_instance(i);
    if (!instance) return base::fail(instance.error());
    owned.instances.push_back(std::move(*instance));
  }
  owned.complete = flag(*j, "complete");
  owned.incomplete_why = text(*j, "incompleteWhy");
  return owned;
}

std::string encode_log_page(const LogPage& page) {
  json lines = json::array();
  for (const LogLine& line : page.lines) {
    lines.push_back({{"at", base::to_rfc3339_micro(line.at)},
                     {"stderr", line.channel == provider::LogChannel::kStderr},
                     {"text", line.text}});
  }
  return text_of({{"lines", std::move(lines)}, {"next", page.next}, {"ended", page.ended}});
}

base::Result<LogPage> decode_log_page(std::string_view s) {
  const auto j = parse_object(s);
  if (!j) return base::fail(j.error());
  LogPage page;
  for (const json& l : list(*j, "lines")) {
    LogLine& line = page.lines.emplace_back();
    const auto at = time(l, "at");
    if (!at) return base::fail(ErrorKind::kInvalid, "a line of a log without a time");
    line.at = *at;
    line.channel = flag(l, "stderr") ? provider::LogChannel::kStderr : provider::LogChannel::kStdout;
    line.text = text(l, "text");
  }
  const auto next = number(*j, "next");
  if (!next) return base::fail(ErrorKind::kInvalid, "a page of a log without next");
  page.next = static_cast<std::uint64_t>(*next);
  page.ended = flag(*j, "ended");
  return page;
}

std::string encode_samples(const std::vector<provider::Sample>& samples) {
  json out = json::array();
  for (const provider::Sample& s : samples) {
    json one = {{"instance", s.instance.id.str()}, {"container", s.container}, {"at", base::to_rfc3339_micro(s.at)}};
    if (s.cpu_ns) one["cpuNs"] = *s.cpu_ns;
    if (s.working_set) one["workingSet"] = *s.working_set;
    out.push_back(std::move(one));
  }
  return text_of({{"samples", std::move(out)}});
}

base::Result<std::vector<provider::Sample>> decode_samples(std::string_view s) {
  const auto j = parse_object(s);
  if (!j) return base::fail(j.error());
  std::vector<provider::Sample> samples;
  for (const json& one : list(*j, "samples")) {
    provider::Sample& sample = samples.emplace_back();
    sample.instance.id = base::InstanceId(text(one, "instance"));
    sample.container = text(one, "container");
    const auto at = time(one, "at");
    if (!at || sample.instance.id.empty()) return base::fail(ErrorKind::kInvalid, "a sample without instance or time");
    sample.at = *at;
    if (const auto cpu = number(one, "cpuNs")) sample.cpu_ns = static_cast<std::uint64_t>(*cpu);
    if (const auto memory = number(one, "workingSet")) sample.working_set = static_cast<std::uint64_t>(*memory);
  }
  return samples;
}

std::string encode_error(const base::Error& error) {
  json j = {{"kind", base::to_string(error.kind)}, {"message", error.message}};
  if (error.retry_after) j["retryAfterMs"] = error.retry_after->count();
  return text_of({{"error", std::move(j)}});
}

std::optional<base::Error> decode_error(std::string_view s) {
  const json j = json::parse(s, nullptr, false);
  const json* e = find(j, "error");
  if (e == nullptr) return std::nullopt;
  const auto kind = parse_error_kind(text(*e, "kind"));
  if (!kind) return std::nullopt;
  base::Error error(*kind, text(*e, "message"));
  if (const auto wait = number(*e, "retryAfterMs")) error.retry_after = std::chrono::milliseconds(*wait);
  return error;
}

std::string encode_fault_numbers(const std::vector<std::uint64_t>& numbers) { return text_of({{"faults", numbers}}); }
std::string encode_id(const std::string& id) { return text_of({{"id", id}}); }

std::string encode_invoice(const std::vector<InvoiceLine>& lines) {
  json out = json::array();
  base::Money total;
  for (const InvoiceLine& l : lines) {
    total = total + l.amount;
    out.push_back({{"instance", l.instance},
                   {"tag", l.tag},
                   {"offer", l.offer},
                   {"pricePerHourMicros", l.price_per_hour.micros()},
                   {"billedSeconds", l.billed.count()},
                   {"amountMicros", l.amount.micros()},
                   {"running", l.running}});
  }
  return text_of({{"lines", std::move(out)}, {"totalMicros", total.micros()}});
}

std::string encode_audit(const Audit& audit) {
  json instances = json::array();
  for (const AuditEntry& e : audit.instances) {
    instances.push_back({{"id", e.id},
                         {"tag", e.tag},
                         {"offer", e.offer},
                         {"foreign", e.foreign},
                         {"created", time_json(e.created)},
                         {"gone", time_json(e.gone)},
                         {"endedBy", e.ended_by},
                         {"terminateCalls", e.terminate_calls}});
  }
  json calls = json::object();
  for (size_t i = 1; i < kCalls; ++i) calls[std::string(to_string(static_cast<Call>(i)))] = audit.calls.at(i);
  return text_of({{"instances", std::move(instances)}, {"creates", audit.creates}, {"calls", std::move(calls)}});
}

}  // namespace spillway::providers::fake
