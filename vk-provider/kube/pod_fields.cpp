#include "vk-provider/kube/pod_fields.hpp"

#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "vk-provider/kube/json_scan.hpp"

namespace spillway::kube {
namespace {

using model::Capability;
using model::FieldUse;

constexpr std::string_view kTokenVolumePrefix = "kube-api-access-";
constexpr std::string_view kTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kTokenWithheld = "the service account's token is not sent to a rented machine";
constexpr std::string_view kTokenNotSent =
    "a service account's token goes to a rented machine only with the annotation "
    "spillway.dev/send-service-account-token: \"true\"";
constexpr std::string_view kAddressUnknown = "the address of a rented instance is known only after its start";
constexpr std::string_view kNodeItself =
    "there is no node whose own ports could be asked; leave it out, and the pod itself is";
constexpr std::string_view kUnknownPath = "no such field of a pod can be read";
constexpr std::string_view kUnknownField = "this version of Spillway does not know the field";
constexpr std::string_view kUnknownResource =
    "only cpu, memory, ephemeral-storage, nvidia.com/gpu and amd.com/gpu can be rented";
constexpr std::string_view kResourceLimits = "spec.containers[].resources.limits";
constexpr std::string_view kResourceRequests = "spec.containers[].resources.requests";
constexpr std::string_view kPodLimits = "spec.resources.limits";
constexpr std::string_view kPodRequests = "spec.resources.requests";
constexpr std::string_view kPodResource = "only cpu and memory can be set for the whole pod";

/// Paths above those of the table: the walk goes on below them.
bool is_inside(std::string_view pattern) {
  static const auto inside = [] {
    std::unordered_set<std::string_view> out;
    for (const FieldRule& rule : pod_field_rules()) {
      for (size_t i = 0; i < rule.path.size(); ++i) {
        if (rule.path[i] == '.' || rule.path[i] == '[') out.insert(rule.path.substr(0, i));
        if (rule.path[i] == '[' && rule.path[i + 1] != ']') break;  // a key of a map may hold dots
      }
    }
    return out;
  }();
  return inside.contains(pattern);
}

bool is_map(std::string_view pattern) {
  return pattern == kResourceLimits || pattern == kResourceRequests || pattern == kPodLimits || pattern == kPodRequests;
}

std::string_view why_unknown(std::string_view pattern) {
  if (pattern.starts_with(kResourceLimits) || pattern.starts_with(kResourceRequests)) return kUnknownResource;
  if (pattern.starts_with(kPodLimits) || pattern.starts_with(kPodRequests)) return kPodResource;
  return kUnknownField;
}

bool is_one_of(std::string_view words, const std::string& word) {
  while (!words.empty()) {
    const size_t bar = words.find('|');
    if (words.substr(0, bar) == word) return true;
    words.remove_prefix(bar == std::string_view::npos ? words.size() : bar + 1);
  }
  return false;
}

/// What a volume of this kind asks for, with the text for the user.
struct VolumeNeed {
  std::optional<Capability> needs;
  std::string_view why;
};

VolumeNeed empty_dir_need(std::string_view value, const FieldRule& rule) {
  const std::string medium = json_string_or_empty(json_member(value, "medium"));
  if (medium.empty()) return {rule.needs, rule.why};
  if (medium == "Memory") return {Capability::kShm, "the provider has to mount memory as a volume"};
  return {std::nullopt, "huge pages of a rented machine cannot be had"};
}

/// Each of these is in the volume that the API server adds by itself; OpenShift adds its service CA.
bool is_token_source(std::string_view source, bool& has_token) {
  JsonObject members(source);
  while (members.next()) {
    const std::string_view value = members.value();
    if (members.key() == "serviceAccountToken") {
      has_token = true;
    } else if (members.key() == "configMap") {
      const std::string name = json_string_or_empty(json_member(value, "name"));
      if (name != "kube-root-ca.crt" && name != "openshift-service-ca.crt") return false;
    } else if (members.key() == "downwardAPI") {
      JsonArray items(json_member(value, "items"));
      while (items.next()) {
        const std::string_view field = json_member(items.value(), "fieldRef");
        if (json_string_or_empty(json_member(field, "fieldPath")) != "metadata.namespace") return false;
      }
    } else {
      return false;
    }
  }
  return !members.failed();
}

bool is_token_volume(std::string_view volume) {
  if (!json_string_or_empty(json_member(volume, "name")).starts_with(kTokenVolumePrefix)) return false;
  JsonArray sources(json_member(json_member(volume, "projected"), "sources"));
  bool has_token = false;
  while (sources.next()) {
    if (!is_token_source(sources.value(), has_token)) return false;
  }
  return has_token && !sources.failed();
}

bool is_readable_field(std::string_view path) {
  for (const std::string_view field : {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
                                       "spec.serviceAccountName", "status.hostIP", "status.hostIPs"}) {
    if (path == field) return true;
  }
  return path.starts_with("metadata.labels['") || path.starts_with("metadata.annotations['");
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

class Walk {
 public:
  Walk(std::string_view spec, bool send_token) : spec_(spec), send_token_(send_token) {}

  PodFields run() {
    note_volumes();
    visit(spec_);
    return std::move(out_);
  }

 private:
  bool is_withheld(std::string_view volume) const { return !send_token_ && is_token_volume(volume); }
  void note_volumes();
  void visit(std::string_view value);
  void visit_members(std::string_view value);
  void visit_elements(std::string_view value);
  void visit_as(std::string_view pattern, std::string_view value);
  void visit_mount(std::string_view value);
  void apply(const FieldRule& rule, std::string_view value);
  bool apply_special(const FieldRule& rule, std::string_view value);
  void report(std::optional<Capability> needs, std::string_view why);

  std::string_view spec_;
  bool send_token_;
  std::string pattern_ = "spec";
  std::string path_ = "spec";
  std::map<std::string, VolumeNeed> volumes_;
  bool in_init_ = false;
  PodFields out_;
};

void Walk::report(std::optional<Capability> needs, std::string_view why) {
  FieldUse& use = out_.uses.emplace_back();
  use.path = path_;
  use.needs = needs;
  use.why = why;
}

/// Mounts are judged by the volume that they name, which stands elsewhere.
void Walk::note_volumes() {
  JsonArray volumes(json_member(spec_, "volumes"));
  while (volumes.next()) {
    const std::string name = json_string_or_empty(json_member(volumes.value(), "name"));
    if (is_withheld(volumes.value())) {
      out_.withheld_volume = name;
      continue;
    }
    JsonObject members(volumes.value());
    while (members.next()) {
      const FieldRule* const rule = find_pod_field_rule("spec.volumes[]." + std::string(members.key()));
      if (rule == nullptr || rule->treatment != FieldClass::kNeeds) continue;
      volumes_[name] =
          members.key() == "emptyDir" ? empty_dir_need(members.value(), *rule) : VolumeNeed{rule->needs, rule->why};
    }
  }
}

void Walk::visit(std::string_view value) {
  if (json_is_null(value)) return;
  const FieldRule* const rule = exact_pod_field_rule(pattern_);
  if (rule != nullptr) apply(*rule, value);
  if (pattern_ == "spec.initContainers[]") {
    in_init_ = true;
    visit_as("spec.containers[]", value);
    in_init_ = false;
  } else if (!is_inside(pattern_)) {
    if (rule == nullptr) report(std::nullopt, why_unknown(pattern_));
  } else if (json_is_object(value)) {
    visit_members(value);
  } else if (json_is_array(value)) {
    visit_elements(value);
  } else if (rule == nullptr) {
    report(std::nullopt, kUnknownField);
  }
}

/// Judges a value by the rows of another place.
void Walk::visit_as(std::string_view pattern, std::string_view value) {
  const std::string own = std::exchange(pattern_, std::string(pattern));
  visit_members(value);
  pattern_ = own;
}

void Walk::visit_members(std::string_view value) {
  const size_t pattern_size = pattern_.size();
  const size_t path_size = path_.size();
  const bool map = is_map(pattern_);
  JsonObject members(value);
  while (members.next()) {
    const std::string key = json_unescape(members.key()).value_or(std::string(members.key()));
    const std::string step = map ? "[" + key + "]" : "." + key;
    pattern_ += step;
    path_ += step;
    visit(members.value());
    pattern_.resize(pattern_size);
    path_.resize(path_size);
  }
  if (members.failed()) out_.broken = true;
}

void Walk::visit_elements(std::string_view value) {
  const size_t pattern_size = pattern_.size();
  const size_t path_size = path_.size();
  pattern_ += "[]";
  JsonArray elements(value);
  for (size_t i = 0; elements.next(); ++i) {
    path_ += "[" + std::to_string(i) + "]";
    if (pattern_ == "spec.containers[]" && i > 0) {
      report(Capability::kMultiContainer, "the provider has to run several containers");
    }
    if (pattern_ != "spec.volumes[]" || !is_withheld(elements.value())) visit(elements.value());
    path_.resize(path_size);
  }
  pattern_.resize(pattern_size);
  if (elements.failed()) out_.broken = true;
}

void Walk::visit_mount(std::string_view value) {
  const std::string name = json_string_or_empty(json_member(value, "name"));
  if (!name.empty() && name == out_.withheld_volume) {
    std::string at = json_string_or_empty(json_member(value, "mountPath"));
    if (at.ends_with('/')) at.pop_back();
    if (at != kTokenPath) report(std::nullopt, kTokenWithheld);
    return;
  }
  const auto it = volumes_.find(name);
  const VolumeNeed need = it != volumes_.end() ? it->second : VolumeNeed{Capability::kVolumes, "its volume is unknown"};
  report(need.needs, need.why);
}

/// Rows whose word depends on more than that something is set. True if all is said.
bool Walk::apply_special(const FieldRule& rule, std::string_view value) {
  if (rule.path == "spec.containers[].volumeMounts[]") {
    visit_mount(value);
  } else if (rule.path == "spec.volumes[].emptyDir") {
    const VolumeNeed need = empty_dir_need(value, rule);  // `{}` is an order, too
    report(need.needs, need.why);
  } else if (rule.path == "spec.containers[].restartPolicy") {
    return in_init_ && value == "\"Always\"";  // a sidecar, for which the row of init containers speaks
  } else if (rule.path == "spec.containers[].env[].valueFrom.fieldRef") {
    const std::string field = json_string_or_empty(json_member(value, "fieldPath"));
    if (is_readable_field(field)) return true;
    report(std::nullopt, field.starts_with("status.podIP") ? kAddressUnknown : kUnknownPath);
  } else if (rule.path.ends_with(".host")) {
    if (is_loopback(json_string_or_empty(value))) report(std::nullopt, kNodeItself);
  } else if (rule.needs == Capability::kDial) {
    // Of the pod itself; another host is asked from here.
    return !json_string_or_empty(json_member(value, "host")).empty();
  } else if (rule.path == "spec.volumes[].projected.sources[].serviceAccountToken") {
    if (send_token_) return false;
    report(std::nullopt, kTokenNotSent);
  } else {
    return false;
  }
  return true;
}

void Walk::apply(const FieldRule& rule, std::string_view value) {
  if (apply_special(rule, value) || rule.treatment != FieldClass::kNeeds) return;
  if (json_is_object(value) && !JsonObject(value).next()) return;
  if (json_is_array(value) && !JsonArray(value).next()) return;
  const std::string word = json_string(value).value_or(std::string(value));
  if (word.empty() || is_one_of(rule.harmless, word)) return;
  report(rule.needs, rule.why);
}

}  // namespace

PodFields walk_pod_fields(std::string_view spec_json, bool send_token) { return Walk(spec_json, send_token).run(); }

}  // namespace spillway::kube
