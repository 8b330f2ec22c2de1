#include "providers/docker/security_codec.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace spillway;
using namespace spillway::providers::docker;
using nlohmann::json;

namespace {

InstancePlan plan_with(const model::Security& security, const model::PodExtras& extras = {}) {
  InstancePlan plan;
  plan.pod_id = "web-0_team(u-1)";
  auto spec = std::make_shared<model::PodSpec>();
  spec->extras = extras;
  plan.spec = spec;
  model::ResolvedContainer& main = plan.containers.emplace_back();
  main.name = "main";
  main.security = security;
  return plan;
}

json body_of(const InstancePlan& plan, std::string_view image_user = "") {
  json body = json::object();
  json host_config = json::object();
  put_security(body, host_config, plan, plan.containers.at(0), image_user);
  body["HostConfig"] = host_config;
  return body;
}

}  // namespace

TEST_CASE("docker security: nothing said is nothing sent") {
  CHECK(body_of(plan_with(model::Security())) == json::parse(R"({"HostConfig": {}})"));
  InstancePlan plan = plan_with(model::Security());
  plan.containers[0].security.reset();
  plan.spec.reset();
  CHECK(body_of(plan) == json::parse(R"({"HostConfig": {}})"));
}

TEST_CASE("docker security: every field has its place") {
  model::Security security;
  security.user = 1000;
  security.group = 3000;
  security.read_only_root = true;
  security.no_new_privileges = true;
  security.add_capabilities = {"NET_ADMIN"};
  security.drop_capabilities = {"ALL"};
  security.seccomp = model::Security::Profile::kUnconfined;
  security.app_armor = model::Security::Profile::kUnconfined;
  model::PodExtras extras;
  extras.supplemental_groups = {4000, 5000};
  extras.fs_group = 2000;
  CHECK(body_of(plan_with(security, extras)) == json::parse(R"({
    "User": "1000:3000",
    "HostConfig": {"GroupAdd": ["4000", "5000", "2000"], "CapAdd": ["NET_ADMIN"], "CapDrop": ["ALL"],
      "ReadonlyRootfs": true,
      "SecurityOpt": ["no-new-privileges", "seccomp=unconfined", "apparmor=unconfined"]}})"));
  security = model::Security();
  security.seccomp = model::Security::Profile::kRuntimeDefault;
  CHECK(body_of(plan_with(security)) == json::parse(R"({"HostConfig": {}})"));
}

TEST_CASE("docker security: a group alone joins the image's user") {
  model::Security security;
  security.group = 3000;
  const InstancePlan plan = plan_with(security);
  CHECK(needs_image_user(plan.containers[0]));
  CHECK(body_of(plan, "")["User"] == "0:3000");
  CHECK(body_of(plan, "nobody:nogroup")["User"] == "nobody:3000");
  CHECK(body_of(plan, "65534")["User"] == "65534:3000");
}

TEST_CASE("docker security: who must not be root is checked in a kubelet's words") {
  struct Row {
    std::optional<std::int64_t> user;
    const char* image_user;
    const char* breach;
  };
  const Row rows[] = {
      {std::nullopt, "",
       "container has runAsNonRoot and image will run as root (pod: \"web-0_team(u-1)\", container: main)"},
      {std::nullopt, "0",
       "container has runAsNonRoot and image will run as root (pod: \"web-0_team(u-1)\", container: main)"},
      {std::nullopt, "0:1000",
       "container has runAsNonRoot and image will run as root (pod: \"web-0_team(u-1)\", container: main)"},
      {std::nullopt, "app:app",
       "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root (pod: "
       "\"web-0_team(u-1)\", container: main)"},
      {std::nullopt, "1000:0", ""},
      {0, "1000", "container's runAsUser breaks non-root policy (pod: \"web-0_team(u-1)\", container: main)"},
      {1000, "", ""}};
  for (const Row& row : rows) {
    model::Security security;
    security.non_root = true;
    security.user = row.user;
    const InstancePlan plan = plan_with(security);
    INFO(row.image_user);
    CHECK(needs_image_user(plan.containers[0]) == !row.user.has_value());
    CHECK(breach_of_non_root(plan, plan.containers[0], row.image_user) == row.breach);
  }
  const InstancePlan may = plan_with(model::Security());
  CHECK_FALSE(needs_image_user(may.containers[0]));
  CHECK(breach_of_non_root(may, may.containers[0], "").empty());
}
