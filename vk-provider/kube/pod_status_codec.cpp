#include "vk-provider/kube/pod_status_codec.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/kube/json_scan.hpp"

namespace spillway::kube {
namespace {

using model::ConditionType;
using model::ContainerStatus;
using model::ContainerStatusState;
using model::PodCondition;
using model::PodPhase;
using model::PodStatus;

constexpr size_t kConditions = static_cast<size_t>(ConditionType::kCount);

std::optional<base::WallTime> decode_time(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return std::nullopt;
  const auto time = base::from_rfc3339(value.substr(1, value.size() - 2));
  if (!time) return std::nullopt;
  return std::chrono::floor<std::chrono::seconds>(*time);
}

std::int32_t decode_int32(std::string_view value) {
  const auto number = json_int(value).value_or(0);
  return std::in_range<std::int32_t>(number) ? static_cast<std::int32_t>(number) : 0;
}

PodPhase decode_phase(std::string_view value) {
  for (const PodPhase phase :
       {PodPhase::kPending, PodPhase::kRunning, PodPhase::kSucceeded, PodPhase::kFailed, PodPhase::kUnknown}) {
    if (value.size() > 2 && value.substr(1, value.size() - 2) == to_string(phase)) return phase;
  }
  return PodPhase::kUnset;
}

bool decode_condition(std::string_view json, PodStatus& out) {
  PodCondition condition;
  std::string_view type;
  JsonObject members(json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "type") {
      type = value;
    } else if (key == "status") {
      condition.status = value == "\"True\""    ? PodCondition::Status::kTrue
                         : value == "\"False\"" ? PodCondition::Status::kFalse
                                                : PodCondition::Status::kUnknown;
    } else if (key == "reason") {
      condition.reason = json_string_or_empty(value);
    } else if (key == "message") {
      condition.message = json_string_or_empty(value);
    } else if (key == "lastTransitionTime") {
      condition.last_transition = decode_time(value);
    }
  }
  for (size_t i = 0; i < kConditions; ++i) {
    const std::string_view name = to_string(static_cast<ConditionType>(i));
    if (type.size() == name.size() + 2 && type.substr(1, name.size()) == name) out.conditions.at(i) = condition;
  }
  return !members.failed();
}

bool decode_state_details(std::string_view json, ContainerStatusState& out) {
  JsonObject members(json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "reason") {
      out.reason = json_string_or_empty(value);
    } else if (key == "message") {
      out.message = json_string_or_empty(value);
    } else if (key == "startedAt") {
      out.started_at = decode_time(value);
    } else if (key == "finishedAt") {
      out.finished_at = decode_time(value);
    } else if (key == "exitCode") {
      out.exit_code = decode_int32(value);
    } else if (key == "containerID") {
      out.container_id = json_string_or_empty(value);
    }
  }
  return !members.failed();
}

bool decode_state(std::string_view json, ContainerStatusState& out) {
  using Kind = ContainerStatusState::Kind;
  JsonObject members(json);
  while (members.next()) {
    if (!json_is_object(members.value())) continue;
    const std::string_view key = members.key();
    const Kind kind = key == "waiting"      ? Kind::kWaiting
                      : key == "running"    ? Kind::kRunning
                      : key == "terminated" ? Kind::kTerminated
                                            : Kind::kNone;
    if (kind == Kind::kNone) continue;
    out = ContainerStatusState();
    out.kind = kind;
    if (!decode_state_details(members.value(), out)) return false;
  }
  return !members.failed();
}

bool decode_container(std::string_view json, ContainerStatus& out) {
  bool ok = true;
  JsonObject members(json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "name") {
      out.name = json_string_or_empty(value);
    } else if (key == "image") {
      out.image = json_string_or_empty(value);
    } else if (key == "imageID") {
      out.image_id = json_string_or_empty(value);
    } else if (key == "containerID") {
      out.container_id = json_string_or_empty(value);
    } else if (key == "ready") {
      out.ready = json_is_true(value);
    } else if (key == "started") {
      out.started = json_is_true(value);
    } else if (key == "restartCount") {
      out.restart_count = decode_int32(value);
    } else if (key == "state") {
      ok = decode_state(value, out.state) && ok;
    } else if (key == "lastState") {
      ok = decode_state(value, out.last_state) && ok;
    }
  }
  return ok && !members.failed();
}

bool decode_containers(std::string_view json, std::vector<ContainerStatus>& out) {
  JsonArray list(json);
  while (list.next()) {
    if (!json_is_object(list.value())) continue;
    if (!decode_container(list.value(), out.emplace_back())) return false;
  }
  return !list.failed();
}

bool decode_conditions(std::string_view json, PodStatus& out) {
  JsonArray list(json);
  while (list.next()) {
    if (!decode_condition(list.value(), out)) return false;
  }
  return !list.failed();
}

void write_time(JsonWriter& out, std::string_view key, const std::optional<base::WallTime>& time) {
  if (time) out.field(key, base::to_rfc3339(*time));
}

/// A text that is new is written, one that is no longer there is removed by null.
void write_text(JsonWriter& out, std::string_view key, const std::string& wanted, const std::string& previous) {
  if (wanted == previous) return;
  if (wanted.empty()) {
    out.field_null(key);
  } else {
    out.field(key, wanted);
  }
}

std::string_view condition_status(PodCondition::Status status) {
  switch (status) {
    case PodCondition::Status::kTrue: return "True";
    case PodCondition::Status::kFalse: return "False";
    case PodCondition::Status::kAbsent:
    case PodCondition::Status::kUnknown: break;
  }
  return "Unknown";
}

void write_conditions(JsonWriter& out, const PodStatus& wanted, const PodStatus& previous) {
  bool any = false;
  for (size_t i = 0; i < kConditions; ++i) {
    const PodCondition& condition = wanted.conditions.at(i);
    const PodCondition& before = previous.conditions.at(i);
    if (condition.status == PodCondition::Status::kAbsent || condition == before) continue;
    if (!std::exchange(any, true)) out.key("conditions").open_array();
    out.open_object();
    out.field("type", to_string(static_cast<ConditionType>(i)));
    out.field("status", condition_status(condition.status));
    write_time(out, "lastTransitionTime", condition.last_transition);
    write_text(out, "reason", condition.reason, before.reason);
    write_text(out, "message", condition.message, before.message);
    out.close_object();
  }
  if (any) out.close_array();
}

void write_state(JsonWriter& out, std::string_view key, const ContainerStatusState& state) {
  using Kind = ContainerStatusState::Kind;
  if (state.kind == Kind::kNone) return;
  out.key(key).open_object();
  switch (state.kind) {
    case Kind::kNone: break;
    case Kind::kWaiting:
      out.key("waiting").open_object();
      out.field_if("reason", state.reason).field_if("message", state.message);
      out.close_object();
      break;
    case Kind::kRunning:
      out.key("running").open_object();
      write_time(out, "startedAt", state.started_at);
      out.close_object();
      break;
    case Kind::kTerminated:
      out.key("terminated").open_object();
      out.field_number("exitCode", state.exit_code);
      out.field_if("reason", state.reason).field_if("message", state.message);
      write_time(out, "startedAt", state.started_at);
      write_time(out, "finishedAt", state.finished_at);
      out.field_if("containerID", state.container_id);
      out.close_object();
      break;
  }
  out.close_object();
}

/// containerStatuses and initContainerStatuses have no merge key: the server takes the list as a whole, so nothing of
/// an old state has to be removed by hand.
void write_containers(JsonWriter& out, std::string_view key, const std::vector<ContainerStatus>& wanted,
                      const std::vector<ContainerStatus>& previous) {
  if (wanted == previous) return;
  out.key(key).open_array();
  for (const ContainerStatus& container : wanted) {
    out.open_object();
    out.field("name", container.name);
    out.field("image", container.image);
    out.field("imageID", container.image_id);
    out.field_if("containerID", container.container_id);
    out.field_bool("ready", container.ready);
    out.field_bool("started", container.started);
    out.field_number("restartCount", container.restart_count);
    write_state(out, "state", container.state);
    write_state(out, "lastState", container.last_state);
    out.close_object();
  }
  out.close_array();
}

/// An ephemeral container that is shown as ended ends the wait of `kubectl debug`, which a waiting one would not.
void write_debug_containers(JsonWriter& out, std::string_view names) {
  constexpr int kNotStarted = 128;
  out.key("ephemeralContainerStatuses").open_array();
  while (!names.empty()) {
    const size_t end = std::min(names.find(','), names.size());
    out.open_object().field("name", names.substr(0, end)).field("image", "").field("imageID", "");
    out.field_bool("ready", false).field_number("restartCount", 0);
    out.key("state").open_object().key("terminated").open_object();
    out.field_number("exitCode", kNotStarted).field("reason", "Unsupported");
    out.field("message", model::kNoDebugContainers);
    out.close_object().close_object().close_object();
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  out.close_array();
}

/// The plural list merges by ip and may hold one address of a family: the old one has to be deleted by name.
void write_address(JsonWriter& out, std::string_view key, std::string_view list_key, const std::string& wanted,
                   const std::string& previous) {
  if (wanted == previous) return;
  write_text(out, key, wanted, previous);
  out.key(list_key).open_array();
  if (!wanted.empty()) out.open_object().field("ip", wanted).close_object();
  if (!previous.empty()) out.open_object().field("$patch", "delete").field("ip", previous).close_object();
  out.close_array();
}

}  // namespace

std::string decode_names(std::string_view list_json) {
  std::string names;
  JsonArray list(list_json);
  while (list.next()) {
    if (!names.empty()) names += ',';
    names += json_string_or_empty(json_member(list.value(), "name"));
  }
  return names;
}

bool decode_pod_status(std::string_view status_json, PodStatus& out) {
  bool ok = true;
  JsonObject members(status_json);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "phase") {
      out.phase = decode_phase(value);
    } else if (key == "reason") {
      out.reason = json_string_or_empty(value);
    } else if (key == "message") {
      out.message = json_string_or_empty(value);
    } else if (key == "hostIP") {
      out.host_ip = json_string_or_empty(value);
    } else if (key == "podIP") {
      out.pod_ip = json_string_or_empty(value);
    } else if (key == "startTime") {
      out.start_time = decode_time(value);
    } else if (key == "conditions") {
      ok = decode_conditions(value, out) && ok;
    } else if (key == "containerStatuses") {
      ok = decode_containers(value, out.containers) && ok;
      std::ranges::sort(out.containers, {}, &ContainerStatus::name);
    } else if (key == "initContainerStatuses") {
      ok = decode_containers(value, out.init_containers) && ok;
    } else if (key == "ephemeralContainerStatuses") {
      out.debug_containers = decode_names(value);
    }
  }
  return ok && !members.failed();
}

bool has_true_condition(std::string_view status_json, std::string_view type) {
  JsonArray list(json_member(status_json, "conditions"));
  while (list.next()) {
    if (json_string_or_empty(json_member(list.value(), "type")) == type) {
      return json_member(list.value(), "status") == "\"True\"";
    }
  }
  return false;
}

void write_status_patch(JsonWriter& out, const PodStatus& wanted, const PodStatus& previous) {
  out.open_object();
  if (wanted.phase != previous.phase && wanted.phase != PodPhase::kUnset) out.field("phase", to_string(wanted.phase));
  write_text(out, "reason", wanted.reason, previous.reason);
  write_text(out, "message", wanted.message, previous.message);
  write_address(out, "hostIP", "hostIPs", wanted.host_ip, previous.host_ip);
  write_address(out, "podIP", "podIPs", wanted.pod_ip, previous.pod_ip);
  if (wanted.start_time != previous.start_time) write_time(out, "startTime", wanted.start_time);
  write_conditions(out, wanted, previous);
  write_containers(out, "initContainerStatuses", wanted.init_containers, previous.init_containers);
  write_containers(out, "containerStatuses", wanted.containers, previous.containers);
  if (wanted.debug_containers != previous.debug_containers) write_debug_containers(out, wanted.debug_containers);
  out.close_object();
}

}  // namespace spillway::kube
