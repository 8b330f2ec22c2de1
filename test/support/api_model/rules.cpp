#include "test/support/api_model/rules.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "test/support/api_model/pod_rules.hpp"

namespace spillway::test::api_model {
namespace {

using nlohmann::json;

constexpr const char* kBadName =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const json& member(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

bool is_subdomain(const std::string& name) {
  const auto alphanumeric = [](char c) {
    return std::islower(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c));
  };
  if (name.empty() || name.size() > 253) return false;
  char before = '.';
  for (const char c : name) {
    if (!alphanumeric(c) && c != '-' && c != '.') return false;
    if ((c == '.' || before == '.') && !alphanumeric(c == '.' ? before : c)) return false;
    before = c;
  }
  return alphanumeric(before);
}

/// The namespace is the path's; a body that says another one is refused.
Outcome<void> place(const Target& target, json& metadata) {
  const std::string said = metadata.value("namespace", "");
  if (!said.empty() && said != target.ns) {
    return refuse(bad_request("the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (!target.ns.empty()) metadata["namespace"] = target.ns;
  return {};
}

void validate_new(const Resource& resource, const Draft& object, std::vector<FieldError>& errors) {
  const json& metadata = object.metadata();
  const std::string name = metadata.value("name", "");
  if (name.empty()) {
    errors.push_back(required("metadata.name", "name or generateName is required"));
  } else if (!is_subdomain(name)) {
    errors.push_back(invalid_value("metadata.name", name, kBadName));
  }
  if (resource.plural == "pods" && member(object.spec(), "containers").empty()) {
    errors.push_back(required("spec.containers"));
  }
  if (resource.plural == "events") {
    const std::string involved = object.part(Slot::kRest).value(json::json_pointer("/involvedObject/namespace"), "");
    const std::string ns = metadata.value("namespace", "");
    if (involved.empty() ? ns != "default" && ns != "kube-system" : involved != ns) {
      errors.push_back(invalid_value("involvedObject.namespace", involved, "does not match event.namespace"));
    }
  }
}

void validate_metadata_update(const json& old, const json& wanted, std::vector<FieldError>& errors) {
  if (old.contains("deletionTimestamp")) {
    json fresh = json::array();
    const json& known = member(old, "finalizers");
    for (const json& one : member(wanted, "finalizers")) {
      if (std::ranges::find(known, one) == known.end()) fresh.push_back(one);
    }
    if (!fresh.empty()) {
      errors.push_back(forbidden("metadata.finalizers",
                                 fmt::format("no new finalizers can be added if the object is being deleted, found new "
                                             "finalizers []string{}{}{}",
                                             "{", fresh.dump().substr(1, fresh.dump().size() - 2), "}")));
    }
  }
  for (const char* field : {"name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (member(old, field) != member(wanted, field)) {
      errors.push_back(immutable(std::string("metadata.") + field, member(wanted, field)));
    }
  }
}

void validate_node_update(const json& old_spec, const json& spec, std::vector<FieldError>& errors) {
  const json& before = member(old_spec, "providerID");
  if (!before.is_null() && member(spec, "providerID") != before) {
    errors.push_back(forbidden("spec.providerID", "node updates may not change providerID except from \"\" to valid"));
  }
}

/// What a client may send but not change.
void keep_server_fields(const json& old, json& wanted) {
  const auto keep = [&](const char* field) {
    if (old.contains(field)) wanted[field] = old[field];
  };
  keep("creationTimestamp");
  keep("generation");
  keep("deletionTimestamp");
  if (member(wanted, "deletionGracePeriodSeconds").is_null()) keep("deletionGracePeriodSeconds");
  if (wanted.value("uid", "").empty()) keep("uid");
  for (const char* map : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const auto it = wanted.find(map);
    if (it != wanted.end() && it->empty()) wanted.erase(it);
  }
}

void restore(const json& old, json& wanted, const char* field) {
  if (old.contains(field)) {
    wanted[field] = old[field];
  } else {
    wanted.erase(field);
  }
}

Outcome<void> check_version(const Target& target, const Object& old, const json& metadata) {
  const std::string wanted = metadata.value("resourceVersion", "");
  if (wanted.empty() || wanted == "0") {
    if (target.resource->unconditional_update) return {};
    // The server says the resource where it otherwise says the kind.
    Resource as_kind = *target.resource;
    as_kind.kind = as_kind.plural;
    return refuse(invalid(as_kind, target.name,
                          {invalid_value("metadata.resourceVersion", 0, "must be specified for an update")}));
  }
  if (wanted != std::to_string(old.version())) return refuse(modified(*target.resource, target.name));
  return {};
}

}  // namespace

Outcome<void> prepare_create(const Target& target, Draft& object, const Birth& birth) {
  const Resource& resource = *target.resource;
  json& metadata = object.edit(Slot::kMetadata);
  if (!metadata.is_object()) metadata = json::object();
  if (auto placed = place(target, metadata); !placed) return placed;
  for (const char* field :
       {"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "resourceVersion"}) {
    metadata.erase(field);
  }
  if (metadata.value("name", "").empty() && metadata.contains("generateName")) {
    metadata["name"] = metadata["generateName"].get<std::string>() + birth.uid.substr(birth.uid.size() - 5);
  }
  metadata["uid"] = birth.uid;
  metadata["creationTimestamp"] = base::to_rfc3339(birth.now);
  if (resource.has_generation) metadata["generation"] = 1;
  if (resource.plural == "pods") default_new_pod(object);
  if (resource.plural == "namespaces") {
    object.edit(Slot::kStatus) = {{"phase", "Active"}};
    object.edit(Slot::kSpec)["finalizers"] = json::array({"kubernetes"});
    metadata["labels"]["kubernetes.io/metadata.name"] = metadata.value("name", "");
  }
  std::vector<FieldError> errors;
  validate_new(resource, object, errors);
  if (!errors.empty()) return refuse(invalid(resource, metadata.value("name", ""), errors));
  return {};
}

Outcome<void> prepare_update(const Target& target, const Object& old, Draft& wanted) {
  const Resource& resource = *target.resource;
  json& metadata = wanted.edit(Slot::kMetadata);
  if (!metadata.is_object()) metadata = json::object();
  if (auto placed = place(target, metadata); !placed) return placed;
  if (const std::string name = metadata.value("name", ""); name != target.name) {
    return refuse(bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, target.name)));
  }
  if (auto checked = check_version(target, old, metadata); !checked) return checked;
  metadata.erase("resourceVersion");

  const bool of_status = target.subresource == "status";
  const bool is_pod = resource.plural == "pods";
  if (of_status) {
    wanted.restore(Slot::kSpec, old);
  } else if (resource.has_status) {
    wanted.restore(Slot::kStatus, old);
  }
  if (of_status && is_pod) {
    restore(old.metadata(), metadata, "deletionTimestamp");
    restore(old.metadata(), metadata, "ownerReferences");
    complete_pod_status(old, wanted);
  }
  keep_server_fields(old.metadata(), metadata);

  std::vector<FieldError> errors;
  // Once for all resources and once more by the strategy of each: clients see both.
  for (int i = 0; i < 2; ++i) validate_metadata_update(old.metadata(), metadata, errors);
  if (resource.plural == "nodes") validate_node_update(old.spec(), wanted.spec(), errors);
  if (is_pod && of_status) validate_pod_status(old, wanted, errors);
  if (is_pod && !of_status) {
    validate_pod_spec_update(old, wanted, errors);
    if (old.spec() != wanted.spec()) metadata["generation"] = metadata.value("generation", 0) + 1;
  }
  if (!errors.empty()) return refuse(invalid(resource, target.name, errors));
  return {};
}

bool ends_by_update(const Object& old, const Draft& wanted) {
  const json& before = old.metadata();
  return before.contains("deletionTimestamp") && before.value("deletionGracePeriodSeconds", 1) == 0 &&
         member(wanted.metadata(), "finalizers").empty();
}

}  // namespace spillway::test::api_model
