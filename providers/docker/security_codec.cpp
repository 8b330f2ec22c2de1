#include "providers/docker/security_codec.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace spillway::providers::docker {
namespace {

using nlohmann::json;
using Profile = model::Security::Profile;

std::string_view name_of(std::string_view image_user) { return image_user.substr(0, image_user.find(':')); }

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_root(std::string_view user) {
  return user.empty() || std::all_of(user.begin(), user.end(), [](char c) { return c == '0'; });
}

std::string user_of(const model::Security& security, std::string_view image_user) {
  std::string user;
  if (security.user) {
    user = std::to_string(*security.user);
  } else if (security.group) {
    user = is_root(name_of(image_user)) ? "0" : std::string(name_of(image_user));
  }
  if (security.group) user += ":" + std::to_string(*security.group);
  return user;
}

json groups_of(const InstancePlan& plan) {
  json groups = json::array();
  if (!plan.spec || !plan.spec->extras) return groups;
  for (const std::int64_t group : plan.spec->extras->supplemental_groups) groups.push_back(std::to_string(group));
  if (plan.spec->extras->fs_group) groups.push_back(std::to_string(*plan.spec->extras->fs_group));
  return groups;
}

}  // namespace

bool needs_image_user(const model::ResolvedContainer& container) {
  if (!container.security || container.security->user) return false;
  return container.security->non_root || container.security->group;
}

std::string breach_of_non_root(const InstancePlan& plan, const model::ResolvedContainer& container,
                               std::string_view image_user) {
  if (!container.security || !container.security->non_root) return "";
  const std::string where = "(pod: \"" + plan.pod_id + "\", container: " + container.name.str() + ")";
  if (container.security->user) {
    return *container.security->user == 0 ? "container's runAsUser breaks non-root policy " + where : "";
  }
  const std::string_view name = name_of(image_user);
  if (is_root(name)) return "container has runAsNonRoot and image will run as root " + where;
  if (is_number(name)) return "";
  return "container has runAsNonRoot and image has non-numeric user (" + std::string(name) +
         "), cannot verify user is non-root " + where;
}

void put_security(json& body, json& host_config, const InstancePlan& plan, const model::ResolvedContainer& container,
                  std::string_view image_user) {
  json groups = groups_of(plan);
  if (!groups.empty()) host_config["GroupAdd"] = std::move(groups);
  if (!container.security) return;
  const model::Security& security = *container.security;
  const std::string user = user_of(security, image_user);
  if (!user.empty()) body["User"] = user;
  if (!security.add_capabilities.empty()) host_config["CapAdd"] = security.add_capabilities;
  if (!security.drop_capabilities.empty()) host_config["CapDrop"] = security.drop_capabilities;
  if (security.read_only_root) host_config["ReadonlyRootfs"] = true;
  // The engine's own profiles are what RuntimeDefault means; it applies them when nothing is said.
  json options = json::array();
  if (security.no_new_privileges) options.push_back("no-new-privileges");
  if (security.seccomp == Profile::kUnconfined) options.push_back("seccomp=unconfined");
  if (security.app_armor == Profile::kUnconfined) options.push_back("apparmor=unconfined");
  if (!options.empty()) host_config["SecurityOpt"] = std::move(options);
}

}  // namespace spillway::providers::docker
