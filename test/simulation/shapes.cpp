#include "test/simulation/shapes.hpp"

#include <nlohmann/json.hpp>

namespace spillway::simulation {
namespace {

using nlohmann::json;

void order(json& pod, const char* key, const char* value) {
  pod["metadata"]["annotations"][std::string("fake.spillway.dev/") + key] = value;
}

void restart(json& pod, const char* policy) { pod["spec"]["restartPolicy"] = policy; }

void ends(json& pod, const char* policy, const char* after, const char* codes) {
  restart(pod, policy);
  order(pod, "run-for", after);
  order(pod, "exit-code", codes);
}

}  // namespace

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> table = {
      {"plain", 12, Course::kRuns, [](json&) {}},
      {"succeeds", 24, Course::kRuns, [](json& pod) { ends(pod, "Never", "5s", "0"); }},
      {"fails", 4, Course::kFails, [](json& pod) { ends(pod, "Never", "3s", "3"); }},
      {"fails-twice", 1, Course::kRuns, [](json& pod) { ends(pod, "OnFailure", "2s", "1,1,0"); }},
      {"crash-loop", 1, Course::kRuns, [](json& pod) { ends(pod, "Always", "2s", "1"); }},
      {"out-of-memory", 1, Course::kFails,
       [](json& pod) {
         ends(pod, "Never", "4s", "0");
         order(pod, "oom", "true");
       }},
      {"start-error", 1, Course::kRuns, [](json& pod) { order(pod, "start-error", "no such file"); }},
      {"image-error", 1, Course::kWaits, [](json& pod) { order(pod, "image-error", "not found"); }},
      {"boot-fails", 1, Course::kWaits, [](json& pod) { order(pod, "fail-boot", "the host died"); }},
      {"never-boots", 1, Course::kWaits, [](json& pod) { order(pod, "boot-time", "2h"); }},
      {"slow-boot", 2, Course::kRuns, [](json& pod) { order(pod, "boot-time", "8s"); }},
      {"slow-stop", 2, Course::kRuns, [](json& pod) { order(pod, "stop-time", "20s"); }},
      {"preempted", 1, Course::kRuns, [](json& pod) { order(pod, "preempt-after", "20s"); }},
      {"no-quota", 1, Course::kWaits, [](json& pod) { order(pod, "fail-create", "quota"); }, true},
      {"no-capacity", 1, Course::kWaits, [](json& pod) { order(pod, "fail-create", "no_capacity"); }, true},
      {"bad-order", 1, Course::kWaits, [](json& pod) { order(pod, "exit-code", "many"); }},
      {"unsupported", 1, Course::kWaits, [](json& pod) { pod["spec"]["hostNetwork"] = true; }},
      {"no-config", 1, Course::kWaits,
       [](json& pod) {
         pod["spec"]["containers"][0]["envFrom"] = json::array({{{"configMapRef", {{"name", "absent"}}}}});
       }},
      {"held", 2, Course::kRuns, [](json& pod) { pod["metadata"]["finalizers"] = json::array({kFinalizer}); }},
      {"no-gpu", 2, Course::kRuns, [](json& pod) { pod["spec"]["containers"][0]["resources"] = json::object(); }},
  };
  return table;
}

json make_pod(const Shape& shape, const std::string& name, const std::string& node, const std::string& owner_uid) {
  const json limits = {{"nvidia.com/gpu", "1"}};
  json pod = {{"metadata", {{"name", name}, {"namespace", "team-a"}}},
              {"spec",
               {{"nodeName", node},
                {"restartPolicy", "Always"},
                {"terminationGracePeriodSeconds", 10},
                {"containers", {{{"name", "main"}, {"image", "app:1"}, {"resources", {{"limits", limits}}}}}}}},
              {"status", {{"phase", "Pending"}}}};
  if (!owner_uid.empty()) {
    pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "apps/v1"},
                                                       {"kind", "ReplicaSet"},
                                                       {"name", "owner"},
                                                       {"uid", owner_uid},
                                                       {"controller", true}}});
  }
  shape.apply(pod);
  return pod;
}

}  // namespace spillway::simulation
