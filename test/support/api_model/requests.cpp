#include "test/support/api_model/requests.hpp"

#include <chrono>

#include <fmt/format.h>

#include "test/support/api_model/deletion.hpp"
#include "test/support/api_model/list.hpp"
#include "test/support/api_model/managed_fields.hpp"
#include "test/support/api_model/merge.hpp"
#include "test/support/api_model/rules.hpp"
#include "vk-provider/model/labels.hpp"

namespace spillway::test::api_model {
namespace {

using net::Method;
using nlohmann::json;

constexpr const char* kStrategicMerge = "application/strategic-merge-patch+json";
constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kApply = "application/apply-patch+yaml";
// The server forgets events after an hour.
constexpr std::chrono::hours kEventLife{1};

Writer writer_of(const Target& target, base::WallTime now) {
  Writer out;
  out.manager = target.parameter("fieldManager");
  // Without the parameter the server takes the first word of User-Agent, which for the daemon is the same.
  if (out.manager.empty()) out.manager = model::kFieldManager;
  out.api_version = target.resource->api_version;
  out.subresource = target.subresource;
  out.now = now;
  return out;
}

std::string deleted_status(const Object& object) {
  json details{{"name", object.name()}, {"kind", object.resource().plural}, {"uid", object.uid()}};
  if (!object.resource().group.empty()) details["group"] = object.resource().group;
  return json{{"kind", "Status"},
              {"apiVersion", "v1"},
              {"metadata", json::object()},
              {"status", "Success"},
              {"details", std::move(details)}}
      .dump();
}

ApiError without_manager() {
  Resource options;
  options.kind = "PatchOptions";
  options.group = "meta.k8s.io";
  return invalid(options, "", {required("fieldManager", "is required for apply patch")});
}

void set_owners(Draft& wanted, const json& live, const Writer& writer) {
  json whole = wanted.whole();
  note_update(live, whole, writer);
  wanted.edit(Slot::kMetadata)["managedFields"] = std::move(whole["metadata"]["managedFields"]);
}

std::string plain_success() {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201})";
}

}  // namespace

bool wants_metadata_only(const kube::KubeRequest& request) {
  return request.accept.find("as=PartialObjectMetadata") != std::string::npos;
}

Answer Answer::of(const ApiError& error) { return {error.code, encode(error), error.retry_after}; }

Answer Requests::answer(const kube::KubeRequest& request, const Target& target) {
  if (request.method == Method::kGet) {
    auto answer = read(request, target);
    return answer ? std::move(*answer) : Answer::of(answer.error());
  }
  auto written = write(request, target);
  if (!written) return Answer::of(written.error());
  const bool has_object = written->object != nullptr;
  if (written->only_status) return {written->code, has_object ? deleted_status(*written->object) : plain_success(), {}};
  const Object& object = *written->object;
  return {written->code, wants_metadata_only(request) ? object.metadata_text() : object.text(), {}};
}

Outcome<Answer> Requests::read(const kube::KubeRequest& request, const Target& target) {
  const bool metadata_only = wants_metadata_only(request);
  if (target.name.empty()) {
    if (metadata_only && request.accept.find("as=PartialObjectMetadataList") == std::string::npos) {
      return refuse(ApiError(406, "NotAcceptable",
                             fmt::format("you requested PartialObjectMetadata, but the requested object is a list "
                                         "(*core.{}List)",
                                         target.resource->kind)));
    }
    auto body = list(store_, target, metadata_only);
    if (!body) return refuse(std::move(body.error()));
    return Answer{200, std::move(*body), {}};
  }
  const ObjectPtr object = store_.find(*target.resource, target.key());
  if (!object) return refuse(not_found(*target.resource, target.name));
  return Answer{200, metadata_only ? object->metadata_text() : object->text(), {}};
}

Outcome<Requests::Written> Requests::write(const kube::KubeRequest& request, const Target& target) {
  json body = request.body.empty() ? json::object() : json::parse(request.body, nullptr, false);
  if (!body.is_object()) return refuse(bad_request("unexpected end of JSON input"));
  switch (request.method) {
    case Method::kPost:
      if (target.subresource == "binding") return bind(target, body);
      if (!target.name.empty()) break;
      if (!body.value(json::json_pointer("/metadata/resourceVersion"), "").empty()) {
        return refuse(ApiError(500, "", "resourceVersion should not be set on objects to be created"));
      }
      return create(target, Draft(std::move(body)));
    case Method::kPut: return put(target, Draft(std::move(body)));
    case Method::kPatch: return patch(target, request, std::move(body));
    case Method::kDelete:
      if (target.name.empty()) break;
      return remove(target, body);
    default: break;
  }
  return refuse(not_supported());
}

Outcome<void> Requests::check_namespace(const Target& target, const std::string& name) const {
  if (!target.resource->namespaced) return {};
  const Resource& namespaces = resource_named("namespaces");
  const ObjectPtr ns = store_.find(namespaces, target.ns);
  if (!ns) return refuse(not_found(namespaces, target.ns));
  if (!ns->deleting()) return {};
  ApiError error = refused_by_admission(
      *target.resource, name,
      fmt::format("unable to create new content in namespace {} because it is being terminated", target.ns));
  error.details["causes"] = {{{"reason", "NamespaceTerminating"},
                              {"message", fmt::format("namespace {} is being terminated", target.ns)},
                              {"field", "metadata.namespace"}}};
  return refuse(std::move(error));
}

Birth Requests::next_birth() { return {fmt::format("00000000-0000-4000-8000-{:012x}", ++uids_), clock_.wall()}; }

Outcome<Requests::Written> Requests::create(const Target& target, Draft object) {
  const std::string name = object.metadata().is_object() ? object.metadata().value("name", "") : "";
  if (auto fits = check_namespace(target, name); !fits) return refuse(std::move(fits.error()));
  const Birth birth = next_birth();
  if (auto prepared = prepare_create(target, object, birth); !prepared) return refuse(std::move(prepared.error()));
  Target place = target;
  place.name = object.metadata()["name"];
  if (store_.find(*target.resource, place.key())) return refuse(already_exists(*target.resource, place.name));
  if (target.resource->managed) set_owners(object, json::object(), writer_of(target, birth.now));
  if (target.resource->plural == "events") {
    expire_events();
    events_.emplace_back(birth.now, place.key());
  }
  return Written{store_.put(*target.resource, place.key(), std::move(object)), 201};
}

void Requests::expire_events() {
  const Resource& events = resource_named("events");
  while (!events_.empty() && events_.front().first + kEventLife <= clock_.wall()) {
    if (store_.find(events, events_.front().second)) store_.erase(events, events_.front().second);
    events_.pop_front();
  }
}

/// What the scheduler does. Not an update as others are: the generation stays.
Outcome<Requests::Written> Requests::bind(const Target& target, const json& binding) {
  const ObjectPtr pod = store_.find(*target.resource, target.key());
  if (!pod) return refuse(not_found(*target.resource, target.name));
  Draft next(*pod);
  const std::string node = binding.value(json::json_pointer("/target/name"), "");
  const std::string bound_to = pod->spec().value("nodeName", "");
  std::string why;
  if (pod->deleting()) why = fmt::format("pod {} is being deleted, cannot be assigned to a host", target.name);
  if (!bound_to.empty()) why = fmt::format("pod {} is already assigned to node \"{}\"", target.name, bound_to);
  if (!why.empty()) {
    Resource as_binding = *target.resource;
    as_binding.plural = "pods/binding";
    return refuse(conflict(as_binding, target.name, why));
  }
  next.edit(Slot::kSpec)["nodeName"] = node;
  json condition{{"type", "PodScheduled"}, {"status", "True"}};
  condition["lastTransitionTime"] = base::to_rfc3339(clock_.wall());
  next.edit(Slot::kStatus)["conditions"].push_back(std::move(condition));
  store_.put(*target.resource, target.key(), std::move(next));
  return Written{nullptr, 201, true};
}

Outcome<Requests::Written> Requests::put(const Target& target, Draft object) {
  if (target.name.empty()) return refuse(not_supported());
  const ObjectPtr old = store_.find(*target.resource, target.key());
  if (!old) {
    if (!target.resource->create_on_update) return refuse(not_found(*target.resource, target.name));
    return create(target, std::move(object));
  }
  const std::string uid = object.metadata().is_object() ? object.metadata().value("uid", "") : "";
  if (!uid.empty() && uid != old->uid()) {
    return refuse(
        conflict(*target.resource, target.name,
                 fmt::format("StorageError: invalid object, Precondition failed: UID in precondition: {}, UID "
                             "in object meta: {}",
                             uid, old->uid())));
  }
  return update(target, old, std::move(object), true);
}

Outcome<Requests::Written> Requests::patch(const Target& target, const kube::KubeRequest& request, json body) {
  const ObjectPtr old = store_.find(*target.resource, target.key());
  const bool by_apply = request.content_type == kApply;
  if (by_apply && target.parameter("fieldManager").empty()) return refuse(without_manager());
  if (!old) {
    if (by_apply && target.subresource.empty()) return create_by_apply(target, body);
    return refuse(not_found(*target.resource, target.name));
  }
  if (by_apply && target.resource->managed) {
    body.erase(target.subresource == "status" ? "spec" : "status");
    json live = Draft(*old).whole();
    auto applied = apply(live, body, writer_of(target, clock_.wall()), target.parameter("force") == "true");
    if (!applied) return refuse(std::move(applied.error()));
    return update(target, old, Draft(std::move(*applied)), false);
  }
  Draft wanted(*old);
  if (request.content_type == kStrategicMerge) {
    if (auto merged = strategic_merge(wanted, std::move(body)); !merged) return refuse(std::move(merged.error()));
  } else if (request.content_type == kMerge) {
    json_merge(wanted, std::move(body));
  } else {
    return refuse(ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type"));
  }
  // A patch that names no version is one of the object as it is, also where an update has to name one.
  const json& metadata = wanted.metadata();
  if (!target.resource->unconditional_update && metadata.is_object() && !metadata.contains("resourceVersion")) {
    wanted.edit(Slot::kMetadata)["resourceVersion"] = std::to_string(old->version());
  }
  return update(target, old, std::move(wanted), true);
}

Outcome<Requests::Written> Requests::create_by_apply(const Target& target, const json& config) {
  const std::string uid = config.value(json::json_pointer("/metadata/uid"), "");
  if (!uid.empty()) {
    return refuse(conflict(*target.resource, target.name,
                           fmt::format("uid mismatch: the provided object specified uid {}, and no existing object was "
                                       "found",
                                       uid)));
  }
  const Birth birth = next_birth();
  auto applied = apply(json::object(), config, writer_of(target, birth.now), true);
  if (!applied) return refuse(std::move(applied.error()));
  const json managed = (*applied)["metadata"]["managedFields"];
  Draft object(std::move(*applied));
  if (auto prepared = prepare_create(target, object, birth); !prepared) return refuse(std::move(prepared.error()));
  if (target.resource->managed) object.edit(Slot::kMetadata)["managedFields"] = managed;
  return Written{store_.put(*target.resource, target.key(), std::move(object)), 201};
}

Outcome<Requests::Written> Requests::update(const Target& target, const ObjectPtr& old, Draft wanted, bool note_owner) {
  const Resource& resource = *target.resource;
  if (auto prepared = prepare_update(target, *old, wanted); !prepared) return refuse(std::move(prepared.error()));
  if (resource.managed) {
    const json live = Draft(*old).whole();
    if (note_owner) set_owners(wanted, live, writer_of(target, clock_.wall()));
    if (same_but_for_managed_times(live, wanted.whole())) return Written{old};
  }
  if (ends_by_update(*old, wanted)) {
    store_.erase(resource, target.key());
    // The answer is what was asked for, under the version that it was asked of.
    return Written{std::make_shared<const Object>(resource, wanted.finish(old.get()), old->version())};
  }
  // A write that changes nothing is not stored: the version stays.
  if (wanted.same_as(*old)) return Written{old};
  return Written{store_.put(resource, target.key(), std::move(wanted))};
}

Outcome<Requests::Written> Requests::remove(const Target& target, const json& options) {
  auto deleted = api_model::remove(store_, target, options, clock_.wall());
  if (!deleted) return refuse(std::move(deleted.error()));
  const bool only_status = deleted->gone && !target.resource->returns_deleted;
  return Written{deleted->object, 200, only_status};
}

}  // namespace spillway::test::api_model
