// What people and tests send to the fake cloud: read strictly, because a fault that was misspelt proves nothing.
#include <array>

#include <nlohmann/json.hpp>

#include "providers/fake/codec.hpp"
#include "providers/fake/orders.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;
using nlohmann::json;

// Sets a field from a value; false if the value is none that it can have.
template <class T>
using Setter = bool (*)(T&, const json&);
template <class T>
struct Field {
  std::string_view key;
  Setter<T> set;
  std::string_view expected;
};

template <auto Member, class T>
bool set_text(T& out, const json& v) {
  if (!v.is_string()) return false;
  out.*Member = v.template get<std::string>();
  return true;
}
template <auto Member, class T>
bool set_int(T& out, const json& v) {
  if (!v.is_number_integer() || v.template get<std::int64_t>() < 0 || v.template get<std::int64_t>() > 1'000'000)
    return false;
  out.*Member = v.template get<int>();
  return true;
}
template <auto Member, class T>
bool set_duration(T& out, const json& v) {
  const auto d = v.is_string() ? parse_duration(v.get_ref<const std::string&>()) : std::nullopt;
  if (d) out.*Member = *d;
  return d.has_value();
}

constexpr std::string_view kText = "a text";
constexpr std::string_view kNumber = "a whole number from 0 to 1000000";
constexpr std::string_view kDuration = "a duration such as \"500ms\" or \"2s\"";

constexpr std::array kFaultFields = {
    Field<FaultRule>{
        "effect",
        [](FaultRule& r, const json& v) {
          const auto e = v.is_string() ? parse_effect(v.get_ref<const std::string&>()) : std::nullopt;
          if (e) r.effect = *e;
          return e.has_value();
        },
        "error, lose_request, lose_answer, delay, ghost, partial_list, empty_list, lagging_list, sold_out, "
        "image_error, stuck_termination or overcharge"},
    Field<FaultRule>{"call",
                     [](FaultRule& r, const json& v) {
                       const auto c = v.is_string() ? parse_call(v.get_ref<const std::string&>()) : std::nullopt;
                       if (c) r.call = *c;
                       return c.has_value();
                     },
                     "any, list_offers, create, get, list_owned, terminate, control_container, read_log or samples"},
    Field<FaultRule>{"kind",
                     [](FaultRule& r, const json& v) {
                       const auto k = v.is_string() ? parse_error_kind(v.get_ref<const std::string&>()) : std::nullopt;
                       if (k) r.kind = *k;
                       return k.has_value();
                     },
                     "an error kind such as unavailable, rate_limited or no_capacity"},
    Field<FaultRule>{"retryAfter",
                     [](FaultRule& r, const json& v) {
                       const auto d = v.is_string() ? parse_duration(v.get_ref<const std::string&>()) : std::nullopt;
                       if (d) r.retry_after = std::chrono::duration_cast<std::chrono::milliseconds>(*d);
                       return d.has_value();
                     },
                     kDuration},
    Field<FaultRule>{"skip", set_int<&FaultRule::skip>, kNumber},
    Field<FaultRule>{"times", set_int<&FaultRule::times>, kNumber},
    Field<FaultRule>{"probability", set_int<&FaultRule::probability>, kNumber},
    Field<FaultRule>{"percent", set_int<&FaultRule::percent>, kNumber},
    Field<FaultRule>{"lasts", set_duration<&FaultRule::lasts>, kDuration},
    Field<FaultRule>{"duration", set_duration<&FaultRule::duration>, kDuration},
    Field<FaultRule>{"tag", set_text<&FaultRule::tag>, kText},
    Field<FaultRule>{"offer", set_text<&FaultRule::offer>, kText},
    Field<FaultRule>{"image", set_text<&FaultRule::image>, kText},
    Field<FaultRule>{"message", set_text<&FaultRule::message>, kText},
};

constexpr std::array kKillFields = {
    Field<KillOrder>{"how",
                     [](KillOrder& k, const json& v) {
                       if (v == "remove") {
                         k.how = KillOrder::How::kRemove;
                       } else if (v == "preempt") {
                         k.how = KillOrder::How::kPreempt;
                       } else if (v == "crash") {
                         k.how = KillOrder::How::kCrash;
                       } else {
                         return false;
                       }
                       return true;
                     },
                     "remove, preempt or crash"},
    Field<KillOrder>{"notice", set_duration<&KillOrder::notice>, kDuration},
    Field<KillOrder>{"exitCode", set_int<&KillOrder::exit_code>, "an exit code"},
    Field<KillOrder>{"oom",
                     [](KillOrder& k, const json& v) {
                       if (v.is_boolean()) k.oom = v.get<bool>();
                       return v.is_boolean();
                     },
                     "true or false"},
};

template <class T, size_t N>
base::Result<T> read(const json& j, const std::array<Field<T>, N>& fields, std::string_view noun) {
  if (!j.is_object()) return base::fail(ErrorKind::kInvalid, std::string(noun) + " is a JSON object");
  T out;
  for (const auto& [key, value] : j.items()) {
    std::vector<std::string_view> known;
    const Field<T>* field = nullptr;
    for (const Field<T>& f : fields) {
      known.push_back(f.key);
      if (f.key == key) field = &f;
    }
    if (field == nullptr) {
      return base::fail(ErrorKind::kInvalid, "unknown key " + key + " in " + std::string(noun) + "; did you mean " +
                                                 nearest(key, known) + "?");
    }
    if (!field->set(out, value)) {
      return base::fail(ErrorKind::kInvalid, key + ": found " +
                                                 value.dump(-1, ' ', false, json::error_handler_t::replace) +
                                                 ", expected " + std::string(field->expected));
    }
  }
  return out;
}

}  // namespace

base::Result<std::vector<FaultRule>> decode_faults(std::string_view s) {
  json j = json::parse(s, nullptr, false);
  if (j.is_discarded()) return base::fail(ErrorKind::kInvalid, "the body is not JSON");
  if (!j.is_array()) j = json::array({std::move(j)});
  std::vector<FaultRule> rules;
  for (const json& item : j) {
    if (item.is_object() && !item.contains("effect"))
      return base::fail(ErrorKind::kInvalid, "a fault without an effect");
    auto rule = read(item, kFaultFields, "a fault");
    if (!rule) return base::fail(rule.error());
    rules.push_back(std::move(*rule));
  }
  return rules;
}

base::Result<KillOrder> decode_kill(std::string_view s) {
  if (s.empty()) return KillOrder();
  const json j = json::parse(s, nullptr, false);
  return read(j, kKillFields, "a kill");
}

base::Result<std::string> decode_foreign(std::string_view s) {
  if (s.empty()) return std::string();
  const json j = json::parse(s, nullptr, false);
  if (!j.is_object()) return base::fail(ErrorKind::kInvalid, "the body is not a JSON object");
  const auto tag = j.find("tag");
  if (tag == j.end()) return std::string();
  if (!tag->is_string()) return base::fail(ErrorKind::kInvalid, "tag: expected a text");
  return tag->get<std::string>();
}

}  // namespace spillway::providers::fake
