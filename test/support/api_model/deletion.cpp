#include "test/support/api_model/deletion.hpp"

#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace spillway::test::api_model {
namespace {

using nlohmann::json;
using Seconds = std::chrono::seconds;

struct Plan {
  bool graceful = false;
  bool pending = false;  // already going, and not sooner than now: nothing to do
  Seconds grace{0};
};

std::optional<std::int64_t> asked_grace(const Target& target, const json& options) {
  if (options.contains("gracePeriodSeconds")) return options["gracePeriodSeconds"].get<std::int64_t>();
  const std::string_view text = target.parameter("gracePeriodSeconds");
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

Outcome<void> check_preconditions(const Object& object, const json& options) {
  const json wanted = options.value("preconditions", json::object());
  // The server says the kind where it otherwise says the resource.
  Resource as_kind = object.resource();
  as_kind.plural = as_kind.kind;
  if (wanted.contains("uid") && wanted["uid"] != object.uid()) {
    return refuse(conflict(as_kind, object.name(),
                           fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The "
                                       "object might have been deleted and then recreated",
                                       wanted["uid"].get<std::string>(), object.uid())));
  }
  const std::string version = std::to_string(object.version());
  if (wanted.contains("resourceVersion") && wanted["resourceVersion"] != version) {
    return refuse(conflict(as_kind, object.name(),
                           fmt::format("the ResourceVersion in the precondition ({}) does not match the "
                                       "ResourceVersion in record ({}). The object might have been modified",
                                       wanted["resourceVersion"].get<std::string>(), version)));
  }
  return {};
}

/// CheckGracefulDelete of pods: one that no kubelet looks after, or that has ended, need not wait.
Seconds first_grace(const Object& pod, std::optional<std::int64_t> asked) {
  std::int64_t grace = asked.value_or(pod.spec().value("terminationGracePeriodSeconds", std::int64_t{0}));
  if (pod.spec().value("nodeName", "").empty()) grace = 0;
  const std::string phase = pod.status().value("phase", "");
  if (phase == "Failed" || phase == "Succeeded") grace = 0;
  return Seconds(grace < 0 ? 1 : grace);
}

/// A grace that runs may only be made shorter, and never ends in the past.
Plan shorten(json& metadata, std::optional<std::int64_t> asked, base::WallTime now) {
  const auto before = metadata.value("deletionGracePeriodSeconds", std::int64_t{0});
  if (before == 0) return {};
  if (!asked || *asked >= before) return {.pending = true};
  Seconds grace(*asked < 0 ? 1 : *asked);
  const base::WallTime due = base::from_rfc3339(metadata["deletionTimestamp"].get<std::string>()).value_or(now);
  base::WallTime sooner = due - Seconds(before) + grace;
  if (sooner < std::chrono::floor<Seconds>(now)) {
    sooner = now;
    if (grace.count() != 0) grace = Seconds(1);
  }
  metadata["deletionTimestamp"] = base::to_rfc3339(sooner);
  metadata["deletionGracePeriodSeconds"] = grace.count();
  return {.graceful = true, .grace = grace};
}

Plan make_plan(const Object& object, json& metadata, std::optional<std::int64_t> asked, base::WallTime now) {
  if (object.resource().plural != "pods") return {};
  if (metadata.contains("deletionTimestamp")) return shorten(metadata, asked, now);
  const Seconds grace = first_grace(object, asked);
  metadata["deletionTimestamp"] = base::to_rfc3339(now + grace);
  metadata["deletionGracePeriodSeconds"] = grace.count();
  metadata["generation"] = metadata.value("generation", 0) + 1;
  return {.graceful = true, .grace = grace};
}

void add_propagation(json& metadata, const json& options) {
  const std::string policy = options.value("propagationPolicy", "");
  if (policy == "Foreground") metadata["finalizers"].push_back("foregroundDeletion");
  if (policy == "Orphan") metadata["finalizers"].push_back("orphan");
}

/// An object that waits for its finalizers without a grace.
void mark_as_deleting(json& metadata, base::WallTime now) {
  if (!metadata.contains("deletionTimestamp")) {
    if (metadata.contains("generation")) metadata["generation"] = metadata["generation"].get<int>() + 1;
    metadata["deletionTimestamp"] = base::to_rfc3339(now);
  }
  metadata["deletionGracePeriodSeconds"] = 0;
}

}  // namespace

Outcome<Deleted> remove(Store& store, const Target& target, const json& options, base::WallTime now) {
  const Resource& resource = *target.resource;
  const std::string key = target.key();
  const ObjectPtr object = store.find(resource, key);
  if (!object) return refuse(not_found(resource, target.name));
  if (auto fits = check_preconditions(*object, options); !fits) return refuse(std::move(fits.error()));

  Draft next(*object);
  json& metadata = next.edit(Slot::kMetadata);
  const Plan plan = make_plan(*object, metadata, asked_grace(target, options), now);
  if (plan.pending) return Deleted{object, false};
  add_propagation(metadata, options);
  const bool is_namespace = resource.plural == "namespaces";
  const bool held = is_namespace || !metadata.value("finalizers", json::array()).empty();
  if (held && !plan.graceful) mark_as_deleting(metadata, now);
  if (is_namespace) {
    metadata.erase("deletionGracePeriodSeconds");
    next.edit(Slot::kStatus)["phase"] = "Terminating";
  }

  ObjectPtr last = object;
  if ((plan.graceful || held) && !next.same_as(*object)) last = store.put(resource, key, std::move(next));
  if (held || plan.grace.count() > 0) return Deleted{last, false};
  return Deleted{store.erase(resource, key), true};
}

}  // namespace spillway::test::api_model
