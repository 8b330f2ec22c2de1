#include "vk-provider/kube/pod_codec.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>
#include "vk-provider/base/random.hpp"

namespace spillway::kube {
namespace {

using model::ConditionType;
using model::PodCondition;
using Json = nlohmann::json;
using Kind = model::ContainerStatusState::Kind;

const base::PodUid kUid("0b6c1c9e-6a3d-4c55-9d0f-3f0e8f6f1a11");

std::string golden(const std::string& name) {
  std::ifstream file(std::string(SPILLWAY_SOURCE_DIR) + "/test/data/pods/" + name);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

base::WallTime at(const char* text) { return base::from_rfc3339(text).value(); }

DecodedPod decode(const std::string& text) {
  auto decoded = decode_pod(text, {});
  REQUIRE(decoded.has_value());
  return std::move(*decoded);
}

TEST_CASE("a pod that was just bound is decoded whole") {
  const DecodedPod pod = decode(golden("bound.json"));
  CHECK(pod.key.to_string() == "team-a/trainer-7c9d5b6f4-x2x9q");
  CHECK(pod.key.uid == kUid);
  CHECK(pod.observed.resource_version == "81234");
  CHECK_FALSE(pod.observed.deletion_timestamp);
  CHECK(pod.observed.state.kind == model::StateAnnotation::Kind::kAbsent);
  CHECK(pod.observed.status.phase == model::PodPhase::kPending);
  CHECK(pod.observed.status.condition(ConditionType::kPodScheduled).last_transition == at("2026-11-29T21:00:01Z"));
  CHECK(pod.observed.status.condition(ConditionType::kReady).status == PodCondition::Status::kAbsent);

  REQUIRE(pod.spec != nullptr);
  const model::PodSpec& spec = *pod.spec;
  CHECK(spec.key.uid == kUid);
  CHECK(spec.owner.kind == "ReplicaSet");
  CHECK(spec.owner.uid == "7f4a2f1e-1111-4222-8333-444455556666");
  CHECK(spec.node_name == "burst");
  CHECK(spec.service_account == "default");
  CHECK(spec.created_at == at("2026-11-29T21:00:00Z"));
  CHECK(spec.restart_policy == model::RestartPolicy::kNever);
  CHECK(spec.grace == std::chrono::seconds(45));
  CHECK(spec.gpu.count == 2);
  CHECK(spec.gpu.resource == "nvidia.com/gpu");
  CHECK(spec.service_account_token_withheld);
  CHECK(spec.annotations == std::map<std::string, std::string>{{"spillway.dev/public-ports", "8080"},
                                                               {"fake.spillway.dev/exit-code", "3"}});
  for (const auto& use : spec.uses) UNSCOPED_INFO(use.path);
  CHECK(spec.uses.empty());
}

TEST_CASE("a deletion cost on the pod is seen, whoever set it") {
  Json pod = Json::parse(golden("running.json"));
  const auto set = [&] { return decode_pod(pod.dump(), [](const auto&) { return true; })->observed.deletion_cost; };
  CHECK_FALSE(set());
  pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = "5";
  CHECK(set());
}

TEST_CASE("the active deadline is read of every event, also of a pod whose spec is known") {
  Json pod = Json::parse(golden("running.json"));
  const auto deadline = [&] {
    return decode_pod(pod.dump(), [](const auto&) { return true; })->observed.active_deadline;
  };
  CHECK_FALSE(deadline());
  pod["spec"]["activeDeadlineSeconds"] = 90;
  CHECK(deadline() == std::chrono::seconds(90));
  pod["spec"]["activeDeadlineSeconds"] = 30;
  CHECK(deadline() == std::chrono::seconds(30));
  pod["spec"]["activeDeadlineSeconds"] = "soon";
  CHECK_FALSE(deadline());
}

TEST_CASE("ephemeral containers are seen at every event, and told as ended without a start") {
  Json pod = Json::parse(golden("running.json"));
  const auto seen = [&] { return decode_pod(pod.dump(), [](const auto&) { return true; })->observed; };
  CHECK(seen().debug_containers.empty());
  pod["spec"]["ephemeralContainers"] = {{{"name", "debugger-1"}, {"image", "busybox"}}, {{"name", "debugger-2"}}};
  CHECK(seen().debug_containers == "debugger-1,debugger-2");
  CHECK(seen().status.debug_containers.empty());

  PodStatusPatch patch;
  patch.status = patch.previous = seen().status;
  patch.status.debug_containers = seen().debug_containers;
  CHECK_FALSE(model::shows(patch.previous, patch.status));
  const Json told = Json::parse(encode_status_patch(patch))["status"]["ephemeralContainerStatuses"];
  REQUIRE(told.size() == 2);
  CHECK(told[1]["name"] == "debugger-2");
  CHECK(told[1]["state"]["terminated"]["exitCode"] == 128);
  CHECK(told[1]["state"]["terminated"]["message"] == model::kNoDebugContainers);
  pod["status"]["ephemeralContainerStatuses"] = told;
  CHECK(model::shows(seen().status, patch.status));
}

TEST_CASE("a container's words arrive byte for byte") {
  const DecodedPod pod = decode(golden("bound.json"));
  REQUIRE(pod.spec->containers.size() == 1);
  const model::ContainerSpec& main = pod.spec->containers[0];
  CHECK(main.name == "main");
  CHECK(main.image == "registry.example.com:5000/team-a/trainer:1.4");
  CHECK(main.command == std::vector<std::string>{"/bin/train", "--lr=$(LR)"});
  CHECK(main.args == std::vector<std::string>{"a b", "\"quoted\"", "gr\xC3\xBCn", ""});
  CHECK(main.working_dir == "/work");
  CHECK(main.pull_policy == model::PullPolicy::kIfNotPresent);
  REQUIRE(main.ports.size() == 2);
  CHECK(main.ports[0].name == "http");
  CHECK(main.ports[0].port == 8080);
  CHECK(main.ports[1].protocol == model::Protocol::kUdp);

  REQUIRE(main.env_from.size() == 2);
  CHECK(main.env_from[0].kind == model::ConfigRef::Kind::kConfigMap);
  CHECK(main.env_from[0].name == "common");
  CHECK_FALSE(main.env_from[0].optional);
  CHECK(main.env_from[1].kind == model::ConfigRef::Kind::kSecret);
  CHECK(main.env_from[1].prefix == "S_");
  CHECK(main.env_from[1].optional);

  REQUIRE(main.env.size() == 5);
  CHECK(main.env[0].value == "2e-4");
  CHECK(main.env[1].name == "EMPTY");
  CHECK(main.env[1].value.empty());
  CHECK(main.env[2].value == "line 1\nline \"2\" \\ $HOME \xF0\x9F\x98\x80");
  REQUIRE(main.env[3].from);
  CHECK(main.env[3].from->kind == model::ConfigRef::Kind::kSecret);
  CHECK(main.env[3].from->key == "token");
  REQUIRE(main.env[4].from);
  CHECK(main.env[4].from->kind == model::ConfigRef::Kind::kConfigMap);
  CHECK(main.env[4].from->optional);

  CHECK(main.resources.cpu_limit_milli == 4000);
  CHECK(main.resources.cpu_request_milli == 1500);
  CHECK(main.resources.memory_limit == 16LL << 30);
  CHECK(main.resources.memory_request == 8LL << 30);
  CHECK(main.resources.ephemeral_request == 10'000'000'000);
}

TEST_CASE("a running pod's status has the form in which it is computed") {
  const DecodedPod pod = decode(golden("running.json"));
  const model::ObservedPod& observed = pod.observed;
  CHECK(observed.deletion_timestamp == at("2026-11-29T21:30:00Z"));
  CHECK(observed.deletion_grace == std::chrono::seconds(45));
  CHECK(observed.addresses == "8080=203.0.113.9:31234");
  CHECK(observed.withheld_note);
  CHECK_FALSE(observed.readiness_gates_true);
  REQUIRE(observed.state.kind == model::StateAnnotation::Kind::kRecord);
  CHECK(observed.state.record->ran);
  CHECK(observed.state.record->instance.str() == "i-77");
  CHECK(observed.state.record->placement.price_per_hour == base::Money::from_micros(4780000));
  CHECK(observed.state.record->placement.capacity_type == model::CapacityType::kSpot);

  const model::PodStatus& status = observed.status;
  CHECK(status.phase == model::PodPhase::kRunning);
  CHECK(status.host_ip == "10.0.0.7");
  CHECK(status.pod_ip == "10.8.0.3");
  CHECK(status.start_time == at("2026-11-29T21:00:02Z"));
  const PodCondition& ready = status.condition(ConditionType::kReady);
  CHECK(ready.status == PodCondition::Status::kFalse);
  CHECK(ready.reason == "ReadinessGatesNotReady");
  CHECK(ready.message == "example.dev/warm is not \"True\"");
  CHECK(ready.last_transition == at("2026-11-29T21:02:10Z"));
  REQUIRE(status.containers.size() == 2);
  CHECK(status.containers[0].name == "aside");
  CHECK(status.containers[0].state.kind == Kind::kWaiting);
  CHECK(status.containers[0].last_state.kind == Kind::kNone);
  const model::ContainerStatus& main = status.containers[1];
  CHECK(main.ready);
  CHECK(main.started);
  CHECK(main.restart_count == 1);
  CHECK(main.state.kind == Kind::kRunning);
  CHECK(main.state.started_at == at("2026-11-29T21:02:03Z"));
  CHECK(main.last_state.kind == Kind::kTerminated);
  CHECK(main.last_state.exit_code == 137);
  CHECK(main.last_state.reason == "OOMKilled");
  CHECK(main.last_state.finished_at == at("2026-11-29T21:01:50Z"));
  CHECK(main.last_state.container_id == "docker://abc");
}

TEST_CASE("statuses of init containers keep their order, and are written whole beside the others") {
  model::PodStatus wanted;
  for (const char* name : {"zeta", "alpha"}) {
    model::ContainerStatus& c = wanted.init_containers.emplace_back();
    c.name = name;
    c.image = "tool:1";
    c.ready = true;
    c.state.kind = Kind::kTerminated;
    c.state.reason = "Completed";
  }
  wanted.containers.emplace_back().name = "main";
  PodStatusPatch patch;
  patch.status = wanted;
  const auto json = nlohmann::json::parse(encode_status_patch(patch));
  REQUIRE(json["status"]["initContainerStatuses"].size() == 2);
  CHECK(json["status"]["initContainerStatuses"][0]["name"] == "zeta");
  CHECK(json["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0);

  const model::PodStatus read =
      decode(R"({"metadata":{"uid":"u","name":"n","namespace":"s"},"status":)" + json["status"].dump() + "}")
          .observed.status;
  CHECK(read.init_containers == wanted.init_containers);
  CHECK(model::shows(read, wanted));
  wanted.init_containers[1].ready = false;
  CHECK_FALSE(model::shows(read, wanted));
  model::PodStatus dropped = read;
  dropped.containers_fingerprint = model::fingerprint(read.containers, read.init_containers);
  dropped.containers.clear();
  dropped.init_containers.clear();
  CHECK(model::shows(dropped, read));
  CHECK_FALSE(model::shows(dropped, wanted));
}

TEST_CASE("static pods and their mirrors are known as such") {
  const auto is_static = [](const std::string& annotations) {
    return decode(R"({"metadata":{"uid":"u","name":"n","namespace":"s","annotations":)" + annotations + "}}").is_static;
  };
  CHECK(is_static(R"({"kubernetes.io/config.mirror":"abc"})"));
  CHECK(is_static(R"({"kubernetes.io/config.source":"file"})"));
  CHECK_FALSE(is_static(R"({"kubernetes.io/config.source":"api"})"));
  CHECK_FALSE(is_static(R"({"a":"b"})"));
}

TEST_CASE("the spec of a known pod is not decoded again, its gates are looked at all the same") {
  base::PodUid asked;
  auto pod = decode_pod(golden("running.json"), [&](const base::PodUid& uid) {
    asked = uid;
    return true;
  });
  REQUIRE(pod.has_value());
  CHECK(asked == kUid);
  CHECK(pod->spec == nullptr);
  CHECK_FALSE(pod->observed.readiness_gates_true);
  std::string text = golden("running.json");
  const std::string gate = R"("type": "example.dev/warm", "status": "False")";
  text.replace(text.find(gate), gate.size(), R"("type": "example.dev/warm", "status": "True")");
  CHECK(decode(text).observed.readiness_gates_true);
}

TEST_CASE("without a pull policy the tag decides") {
  const auto policy = [](const std::string& image) {
    return decode(R"({"metadata":{"uid":"u","name":"n","namespace":"s"},"spec":{"containers":[{"name":"c","image":")" +
                  image + "\"}]}}")
        .spec->containers.at(0)
        .pull_policy;
  };
  CHECK(policy("a") == model::PullPolicy::kAlways);
  CHECK(policy("a:latest") == model::PullPolicy::kAlways);
  CHECK(policy("host:5000/a") == model::PullPolicy::kAlways);
  CHECK(policy("a:1") == model::PullPolicy::kIfNotPresent);
  CHECK(policy("a@sha256:00") == model::PullPolicy::kIfNotPresent);
}

TEST_CASE("absent, null and mistyped optional fields are tolerated; the identity is not optional") {
  const DecodedPod pod = decode(R"({"metadata":{"uid":"u","name":"n","namespace":"s","annotations":null,"labels":7,
    "ownerReferences":{},"deletionTimestamp":5,"resourceVersion":null},"spec":null,
    "status":{"phase":3,"conditions":{"a":1},"containerStatuses":[null,5,{"name":7,"restartCount":"x","state":[]}],
    "startTime":null,"podIP":false,"reason":null}})");
  CHECK(pod.observed.resource_version.empty());
  CHECK_FALSE(pod.observed.deletion_timestamp);
  CHECK(pod.observed.status.phase == model::PodPhase::kUnset);
  REQUIRE(pod.observed.status.containers.size() == 1);
  CHECK(pod.observed.status.containers[0].restart_count == 0);
  for (const char* bad :
       {"", "null", "[]", "{", R"({"metadata":{}})", R"({"metadata":{"uid":"u","name":"n"}})",
        R"({"metadata":{"name":"n","namespace":"s"}})", R"({"metadata":{"uid":7,"name":"n","namespace":"s"}})",
        R"({"metadata":{"uid":"u","name":"n","namespace":"s"},"status":{"conditions":[{"type" "x"}]}})"}) {
    CAPTURE(bad);
    const auto decoded = decode_pod(bad, {});
    REQUIRE_FALSE(decoded.has_value());
    CHECK(decoded.error().kind == base::ErrorKind::kInvalid);
  }
}

TEST_CASE("mutated pods are decoded or refused, never more") {
  base::SeededRandom random(5);
  const std::string texts[] = {golden("bound.json"), golden("running.json")};
  constexpr std::string_view kLetters = "{}[]\",:\\u0an1-.et";
  for (int i = 0; i < 20000; ++i) {
    std::string text = texts[random.next() % 2];
    for (auto n = random.next() % 4; n > 0; --n) {
      const size_t where = random.next() % text.size();
      switch (random.next() % 3) {
        case 0: text[where] = kLetters[random.next() % kLetters.size()]; break;
        case 1: text.erase(where, 1 + random.next() % 50); break;
        default: text[where] = static_cast<char>(random.next() & 0xFFU);
      }
    }
    if (random.next() % 3 == 0) text.resize(random.next() % text.size());
    const auto decoded = decode_pod(text, [&](const base::PodUid&) { return i % 2 == 0; });
    if (decoded) REQUIRE_FALSE(decoded->key.uid.empty());
  }
}

model::PodStatus running_status() { return decode(golden("running.json")).observed.status; }

Json encode(const PodStatusPatch& patch) { return Json::parse(encode_status_patch(patch)); }

PodStatusPatch a_patch() {
  PodStatusPatch patch;
  patch.key.ns = "team-a";
  patch.key.name = "p";
  patch.key.uid = kUid;
  return patch;
}

TEST_CASE("a first status is written whole") {
  PodStatusPatch patch = a_patch();
  patch.status = running_status();
  const Json json = encode(patch);
  CHECK(json["metadata"] == Json{{"uid", kUid.str()}});
  const Json& status = json["status"];
  CHECK(status["phase"] == "Running");
  CHECK(status["startTime"] == "2026-11-29T21:00:02Z");
  CHECK(status["hostIP"] == "10.0.0.7");
  CHECK(status["hostIPs"] == Json::parse(R"([{"ip":"10.0.0.7"}])"));
  CHECK(status["podIPs"] == Json::parse(R"([{"ip":"10.8.0.3"}])"));
  CHECK_FALSE(status.contains("reason"));
  REQUIRE(status["conditions"].size() == 5);
  CHECK(status["conditions"][2] == Json::parse(R"({"type":"Ready","status":"False",
    "lastTransitionTime":"2026-11-29T21:02:10Z","reason":"ReadinessGatesNotReady",
    "message":"example.dev/warm is not \"True\""})"));
  CHECK(status["containerStatuses"] == Json::parse(R"([
    {"name":"aside","image":"aside","imageID":"","ready":false,"started":false,"restartCount":0,
     "state":{"waiting":{"reason":"ContainerCreating"}}},
    {"name":"main","image":"trainer:1.4","imageID":"sha256:1111","containerID":"docker://def","ready":true,
     "started":true,"restartCount":1,"state":{"running":{"startedAt":"2026-11-29T21:02:03Z"}},
     "lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","startedAt":"2026-11-29T21:01:03Z",
       "finishedAt":"2026-11-29T21:01:50Z","containerID":"docker://abc"}}}])"));
}

TEST_CASE("what has not changed is not written") {
  PodStatusPatch patch = a_patch();
  patch.status = patch.previous = running_status();
  CHECK(encode(patch)["status"] == Json::object());
  patch.status.condition(ConditionType::kReady).status = PodCondition::Status::kTrue;
  patch.status.condition(ConditionType::kReady).reason.clear();
  patch.status.condition(ConditionType::kReady).message.clear();
  CHECK(encode(patch)["status"] == Json::parse(R"({"conditions":[{"type":"Ready","status":"True",
    "lastTransitionTime":"2026-11-29T21:02:10Z","reason":null,"message":null}]})"));
}

TEST_CASE("what the merge would keep is removed by name") {
  PodStatusPatch patch = a_patch();
  patch.previous = patch.status = running_status();
  patch.previous.reason = "Evicted";
  patch.previous.message = "why";
  patch.status.message = "other";
  patch.status.pod_ip = "10.8.0.4";
  patch.status.host_ip.clear();
  CHECK(encode(patch)["status"] == Json::parse(R"({"reason":null,"message":"other","hostIP":null,
    "hostIPs":[{"$patch":"delete","ip":"10.0.0.7"}],"podIP":"10.8.0.4",
    "podIPs":[{"ip":"10.8.0.4"},{"$patch":"delete","ip":"10.8.0.3"}]})"));
}

TEST_CASE("intent, addresses and version travel with the status") {
  PodStatusPatch patch = a_patch();
  patch.resource_version = "81234";
  patch.state = *decode(golden("running.json")).observed.state.record;
  patch.addresses = "8080=203.0.113.9:31234";
  patch.note_withheld_token = true;
  patch.deletion_cost = -240;
  const Json json = encode(patch);
  CHECK(json["metadata"]["resourceVersion"] == "81234");
  const Json& annotations = json["metadata"]["annotations"];
  CHECK(annotations["state.spillway.dev/addresses"] == "8080=203.0.113.9:31234");
  CHECK(annotations["state.spillway.dev/withheld"] == "service-account-token");
  CHECK(annotations["controller.kubernetes.io/pod-deletion-cost"] == "-240");
  const auto state = decode_state(annotations["state.spillway.dev/placement"].get<std::string>(), kUid);
  REQUIRE(state.kind == model::StateAnnotation::Kind::kRecord);
  CHECK(*state.record == *patch.state);

  PodStatusPatch removal = a_patch();
  removal.addresses = "";
  CHECK(encode(removal)["metadata"]["annotations"] == Json{{"state.spillway.dev/addresses", nullptr}});
}

TEST_CASE("the state annotation is read only if it is ours and of a version that we know") {
  using StateKind = model::StateAnnotation::Kind;
  const model::StateRecord record = *decode(golden("running.json")).observed.state.record;
  const std::string text = encode_state(record);
  CHECK(decode_state(text, kUid).record == record);
  CHECK(decode_state(text, base::PodUid("another")).kind == StateKind::kForeign);

  model::StateRecord intent = record;
  intent.instance = base::InstanceId();
  intent.ran = false;
  intent.placement.region.clear();
  CHECK_FALSE(Json::parse(encode_state(intent)).contains("instance"));
  CHECK_FALSE(Json::parse(encode_state(intent)).contains("ran"));
  CHECK(decode_state(encode_state(intent), kUid).record == intent);

  const auto changed = [&](const char* key, Json value) {
    Json json = Json::parse(text);
    json[key] = std::move(value);
    return decode_state(json.dump(), kUid);
  };
  CHECK(changed("v", 2).kind == StateKind::kUnreadable);
  CHECK(changed("v", 2).problem == "its version is 2, and this Spillway knows only 1");
  CHECK(changed("later", "x").record == record);
  for (const auto& [key, value] : std::map<const char*, Json>{{"provider", ""},
                                                              {"offer", nullptr},
                                                              {"tag", 5},
                                                              {"attempt", 0},
                                                              {"pricePerHourMicros", -1},
                                                              {"gpus", "2"},
                                                              {"capacityType", "cheap"}}) {
    CAPTURE(key);
    CHECK(changed(key, value).kind == StateKind::kUnreadable);
    CHECK(changed(key, value).problem == "its field " + std::string(key) + " is missing or wrong");
  }
  for (const char* rubbish : {"", "{", "null", "[]", "7", "{}", "{\"v\":1}"}) {
    CAPTURE(rubbish);
    CHECK(decode_state(rubbish, kUid).kind == StateKind::kUnreadable);
  }
}

}  // namespace
}  // namespace spillway::kube
