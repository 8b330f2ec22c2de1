// What engines, registries and the network do to instances.
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
using model::InstanceState;
using Response = DockerEngineModel::Response;

namespace {

/// Replaces the answers to requests whose target contains `text`, `times` times.
auto answers(std::string text, Response response, int times = 1) {
  return [text = std::move(text), response = std::move(response),
          times](const net::HttpRequest& request) mutable -> std::optional<Response> {
    if (times == 0 || !request.target.contains(text)) return std::nullopt;
    --times;
    return response;
  };
}

Response refusal(int status, const std::string& message) {
  return DockerEngineModel::answer(status, {{"message", message}});
}

DockerEngineModel::Pull pull_of(std::vector<std::string> lines) {
  DockerEngineModel::Pull pull;
  for (std::string& line : lines) pull.lines.emplace_back(1s, std::move(line));
  return pull;
}

model::ResolvedPod pod_of(const std::string& image, model::PullPolicy policy = model::PullPolicy::kIfNotPresent) {
  model::ResolvedPod pod = DockerRig::pod(model::RestartPolicy::kAlways, image);
  pod.containers[0].pull_policy = policy;
  return pod;
}

}  // namespace

TEST_CASE("docker faults: a create whose answer was lost is found by its name") {
  DockerRig rig;
  rig.engine().after = [](const net::HttpRequest& request, const Response&) -> std::optional<Response> {
    if (!request.target.contains("/containers/create")) return std::nullopt;
    return base::fail(ErrorKind::kUnknownOutcome, "connection reset");
  };
  const auto bought = rig.create(DockerRig::placement("spw-a", 1));
  REQUIRE(bought);
  rig.pass(1min);
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
  CHECK(rig.engine().size() == 2);
}

TEST_CASE("docker faults: an engine that answers 500 to what it does") {
  DockerRig rig;
  const std::string what = GENERATE(as<std::string>(), "/containers/create", "/start");
  rig.engine().after = [what](const net::HttpRequest& request, const Response&) -> std::optional<Response> {
    if (!request.target.contains(what)) return std::nullopt;
    return refusal(500, "context deadline exceeded");
  };
  REQUIRE(rig.create(DockerRig::placement("spw-a", 1)));
  rig.pass(1min);
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
  CHECK(rig.engine().size() == 2);
}

TEST_CASE("docker faults: a taken name is ours only with our tag, whatever the code of the conflict") {
  DockerRig rig;
  const int code = GENERATE(409, 400, 500);
  rig.engine().before = answers("/containers/create?name=spw-a", refusal(code, "name is in use"));
  SECTION("a container of somebody else") {
    rig.engine().add("spw-a", {{"Image", "busybox:test"}});
    const auto refused = rig.create(DockerRig::placement("spw-a"));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::kInvalid);
    CHECK(refused.error().message.contains("not ours"));
    CHECK(rig.engine().size() == 1);
  }
  SECTION("nobody has it") {
    const auto refused = rig.create(DockerRig::placement("spw-a"));
    REQUIRE_FALSE(refused);
    const ErrorKind expected = code == 409   ? ErrorKind::kUnavailable
                               : code == 400 ? ErrorKind::kInvalid
                                             : ErrorKind::kUnknownOutcome;
    CHECK(refused.error().kind == expected);
  }
}

TEST_CASE("docker faults: GPUs of a create without an answer stay promised until it must have happened") {
  DockerRig rig;
  rig.engine().before = [](const net::HttpRequest& request) -> std::optional<Response> {
    if (request.target.contains("name=spw-late")) return base::fail(ErrorKind::kUnknownOutcome, "no answer");
    if (request.target.contains("/containers/spw-late/json")) return base::fail(ErrorKind::kDeadline, "no answer");
    return std::nullopt;
  };
  CHECK(rig.create(DockerRig::placement("spw-late", 2)).error().kind == ErrorKind::kUnknownOutcome);
  CHECK(rig.create(DockerRig::placement("spw-b", 1)).error().kind == ErrorKind::kNoCapacity);
  rig.pass(3min);
  REQUIRE(rig.create(DockerRig::placement("spw-b", 1)));
}

TEST_CASE("docker faults: an engine that cannot be asked is not an empty one") {
  DockerRig rig(2);
  REQUIRE(rig.create(DockerRig::placement("spw-a", 0, "box-0")));
  REQUIRE(rig.create(DockerRig::placement("spw-b", 0, "box-1")));
  rig.settle();
  rig.engine(1).reachable = false;
  const auto owned = rig.list();
  REQUIRE(owned);
  CHECK_FALSE(owned->complete);
  CHECK(owned->incomplete_why.contains("docker host box-1"));
  REQUIRE(owned->instances.size() == 1);
  CHECK(owned->instances[0].tag.str() == "spw-a");
  CHECK(rig.get("spw-b", "box-1").error().kind == ErrorKind::kUnavailable);
  CHECK(rig.create(DockerRig::placement("spw-c", 0, "box-1")).error().kind == ErrorKind::kUnavailable);
  const auto offers = rig.offers();
  REQUIRE(offers);
  for (const model::Offer& offer : *offers) CHECK(offer.available == offer.id.str().starts_with("box-0/"));

  rig.engine(0).reachable = false;
  CHECK(rig.list().error().kind == ErrorKind::kUnavailable);
  CHECK(rig.offers().error().kind == ErrorKind::kUnavailable);

  rig.engine(0).reachable = rig.engine(1).reachable = true;
  CHECK(rig.list()->complete);
  CHECK(rig.list()->instances.size() == 2);
}

TEST_CASE("docker faults: an answer that is no listing is an error, never an empty listing") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  net::HttpResponse rubbish;
  rubbish.status = 200;
  rubbish.body = GENERATE(as<std::string>(), "", "[{", "{}", "null", "[{\"Names\": []}]");
  rig.engine().before = answers("/containers/json", rubbish);
  CHECK(rig.list().error().kind == ErrorKind::kUnavailable);
}

TEST_CASE("docker faults: an engine that goes away in the middle of a bring-up is waited for") {
  DockerRig rig;
  rig.engine().before = [&rig](const net::HttpRequest& request) -> std::optional<Response> {
    if (request.target.contains("name=spw-a-main")) rig.engine().reachable = false;
    return std::nullopt;
  };
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  rig.engine().remove("spw-a-main");
  rig.engine().before = nullptr;
  rig.pass(1min);
  rig.engine().reachable = true;
  rig.pass(15s);
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
}

TEST_CASE("docker faults: the sandbox image is loaded once, and again after somebody pruned it") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  REQUIRE(rig.create(DockerRig::placement("spw-b")));
  CHECK(rig.engine().count("fromSrc") == 1);
  rig.engine().images.erase("spillway.dev/sandbox:2");
  REQUIRE(rig.create(DockerRig::placement("spw-c")));
  CHECK(rig.engine().count("fromSrc") == 2);
}

TEST_CASE("docker faults: a machine of another architecture is refused in clear words") {
  DockerRig rig;
  rig.engine().architecture = "arm64";
  const auto refused = rig.create(DockerRig::placement("spw-a"));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kUnsupported);
  CHECK(refused.error().message == "docker host box-0 is arm64; the sandbox exists for amd64 only");
}

TEST_CASE("docker faults: a sandbox that cannot start is removed, and nothing is bought") {
  DockerRig rig;
  const std::string text = GENERATE(as<std::string>(), "no available IPv4 addresses on this network's address pools",
                                    "driver failed programming external connectivity");
  rig.engine().before = answers("/start", refusal(500, text));
  const auto refused = rig.create(DockerRig::placement("spw-a", 2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == (text.starts_with("no available") ? ErrorKind::kNoCapacity : ErrorKind::kUnavailable));
  CHECK(rig.engine().size() == 0);
  REQUIRE(rig.create(DockerRig::placement("spw-b", 2)));
}

TEST_CASE("docker faults: a dead sandbox means that the instance is lost, and it is not started again") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  rig.engine().exit("spw-a", 137);
  CHECK(rig.state("spw-a") == InstanceState::kFailed);
  const auto again = rig.create(DockerRig::placement("spw-a"));
  REQUIRE(again);
  CHECK(again->state == InstanceState::kFailed);
  CHECK(rig.engine().container("spw-a").state == "exited");
  REQUIRE(rig.terminate("spw-a"));
  rig.settle();
  CHECK(rig.engine().size() == 0);
}

TEST_CASE("docker faults: a container that was removed behind our back is a lost instance") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  REQUIRE(rig.list());
  rig.engine().remove("spw-a-main");
  CHECK(rig.state("spw-a") == InstanceState::kFailed);
  CHECK(says(rig.get("spw-a")->message, "main was removed"));
}

TEST_CASE("docker faults: a listing that is older than a container does not make it removed") {
  DockerRig rig;
  rig.engine().pulls["app:1"] = pull_of({"{}\n"});
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("app:1")));
  rig.settle();
  CHECK_FALSE(rig.engine().has("spw-a-main"));
  // Asked for while the image is on its way, looked at when the container runs.
  rig.engine().listing_delay = 5s;
  const auto old = rig.get("spw-a");
  REQUIRE(old);
  CHECK(rig.engine().has("spw-a-main"));
  CHECK(old->state == InstanceState::kPending);
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
}

TEST_CASE("docker faults: a pull that brings the image") {
  DockerRig rig;
  rig.engine().pulls["app:1"] = pull_of({R"({"status":"Pulling from app"})"
                                         "\n",
                                         R"({"status":"Do)",
                                         R"(ne"})"
                                         "\n"});
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("app:1")));
  rig.pass(1s);
  CHECK(rig.state("spw-a") == InstanceState::kPending);
  CHECK(rig.get("spw-a")->message == "pulling image app:1");
  rig.pass(5s);
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
  CHECK(rig.engine().count("fromImage=app&tag=1") == 1);

  REQUIRE(rig.create(DockerRig::placement("spw-b"), pod_of("app:1")));
  rig.settle();
  CHECK(rig.engine().count("fromImage=app&tag=1") == 1);  // IfNotPresent
  REQUIRE(rig.create(DockerRig::placement("spw-c"), pod_of("app:1", model::PullPolicy::kAlways)));
  rig.pass(5s);
  CHECK(rig.engine().count("fromImage=app&tag=1") == 2);
}

TEST_CASE("docker faults: pulls that fail say why, inside a 200 or with a code") {
  struct Row {
    const char* error;
    const char* reason;
    const char* text;
  };
  const Row row = GENERATE(
      Row{"manifest for app:1 not found: manifest unknown: manifest unknown", "ErrImagePull", "manifest unknown"},
      Row{"pull access denied for app, repository does not exist or may require 'docker login'", "ErrImagePull",
          "pull access denied"},
      Row{"unauthorized: authentication required", "ErrImagePull", "unauthorized"},
      Row{"invalid reference format", "InvalidImageName", "invalid reference format"},
      Row{"Get \"https://r/v2/\": dial tcp: lookup r: no such host", "ErrImagePull", "the registry cannot be reached"},
      Row{"write /var/lib/docker/tmp/x: no space left on device", "ErrImagePull", "no space left"});
  const bool inside = GENERATE(true, false);
  DockerRig rig;
  DockerEngineModel::Pull pull;
  if (inside) {
    const nlohmann::json line = {{"errorDetail", {{"message", row.error}}}, {"error", row.error}};
    pull = pull_of({R"({"status":"Pulling"})"
                    "\n",
                    line.dump() + "\n"});
  } else {
    pull.status = 500;
    pull.lines.emplace_back(0s, row.error);
  }
  rig.engine().pulls["app:1"] = pull;
  REQUIRE(rig.create(DockerRig::placement("spw-a", 2), pod_of("app:1")));
  rig.pass(5s);
  const auto failed = rig.get("spw-a");
  REQUIRE(failed);
  CHECK(failed->state == InstanceState::kFailed);
  CHECK(failed->image_error);
  CHECK(failed->containers[0].reason == row.reason);
  CHECK(failed->containers[0].message.starts_with("failed to pull image \"app:1\": "));
  CHECK(says(failed->containers[0].message, row.text));
  REQUIRE(rig.terminate("spw-a"));
  rig.settle();
  CHECK(rig.engine().size() == 0);
  REQUIRE(rig.create(DockerRig::placement("spw-b", 2)));
}

TEST_CASE("docker faults: an image name that only the engine finds malformed") {
  DockerRig rig;
  rig.engine().before = answers("/images/Upper", refusal(400, "invalid reference format"));
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("Upper/case")));
  rig.settle();
  CHECK(rig.get("spw-a")->state == InstanceState::kFailed);
  CHECK(rig.get("spw-a")->containers[0].reason == "InvalidImageName");
}

TEST_CASE("docker faults: an error of a pull counts also without the end of its line") {
  DockerRig rig;
  rig.engine().pulls["app:1"] = pull_of({"{\"status\":\"Pulling\"}\n{\"err", "or\":\"manifest unknown\"}"});
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("app:1")));
  rig.pass(5s);
  CHECK(says(rig.get("spw-a")->containers[0].message, "manifest unknown"));
}

TEST_CASE("docker faults: names and policies that need no registry to be refused") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("Not A Name")));
  REQUIRE(rig.create(DockerRig::placement("spw-b"), pod_of("absent:1", model::PullPolicy::kNever)));
  rig.settle();
  const auto invalid = rig.get("spw-a");
  CHECK(invalid->state == InstanceState::kFailed);
  CHECK(invalid->image_error);
  CHECK(invalid->containers[0].reason == "InvalidImageName");
  const auto never = rig.get("spw-b");
  CHECK(never->containers[0].reason == "ErrImageNeverPull");
  CHECK(never->containers[0].message == "Container image \"absent:1\" is not present with pull policy of Never");
  CHECK(rig.engine().count("fromImage") == 0);
}

TEST_CASE("docker faults: a large image may take hours, a silent pull may not") {
  DockerRig rig;
  DockerEngineModel::Pull pull;
  for (int i = 0; i < 30; ++i) pull.lines.emplace_back(9min, "{\"status\":\"Downloading\"}\n");
  SECTION("it comes") {
    rig.engine().pulls["big:1"] = pull;
    REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("big:1")));
    rig.pass(4h);
    CHECK(rig.state("spw-a") == InstanceState::kPending);
    rig.pass(1h);
    CHECK(rig.state("spw-a") == InstanceState::kRunning);
  }
  SECTION("it stops coming") {
    pull.lines.resize(2);
    pull.ends = false;
    rig.engine().pulls["big:1"] = pull;
    REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("big:1")));
    rig.pass(27min);
    CHECK(rig.state("spw-a") == InstanceState::kPending);
    rig.pass(2min);
    const auto failed = rig.get("spw-a");
    CHECK(failed->state == InstanceState::kFailed);
    CHECK(failed->containers[0].message == "failed to pull image \"big:1\": no progress for 600 s");
    CHECK(rig.engine().running_pulls == 0);
  }
}

TEST_CASE("docker faults: terminate, and the daemon's end, end a running pull") {
  DockerRig rig;
  DockerEngineModel::Pull pull;
  pull.ends = false;
  rig.engine().pulls["big:1"] = pull;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("big:1")));
  rig.settle();
  CHECK(rig.engine().running_pulls == 1);
  SECTION("terminate") {
    REQUIRE(rig.terminate("spw-a", 30s));
    rig.settle();
    CHECK(rig.engine().running_pulls == 0);
    CHECK(rig.engine().size() == 0);
  }
  SECTION("stop of the daemon; the next one resumes") {
    const base::TimePoint before = rig.reactor.timers.now();
    rig.stop_daemon();
    CHECK(rig.reactor.timers.now() == before);  // it was ended, not waited for
    CHECK(rig.engine().running_pulls == 0);
    CHECK(rig.engine().size() == 1);
    rig.engine().pulls["big:1"] = pull_of({"{}\n"});
    CHECK(rig.state("spw-a") == InstanceState::kPending);
    REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("big:1")));
    rig.pass(5s);
    CHECK(rig.state("spw-a") == InstanceState::kRunning);
    CHECK(rig.engine().size() == 2);
  }
}

TEST_CASE("docker faults: a pull that the engine dropped begins again") {
  DockerRig rig;
  DockerEngineModel::Pull pull;
  pull.lines.emplace_back(1s, "{}\n");
  pull.breaks = true;
  rig.engine().pulls["app:1"] = pull;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_of("app:1")));
  rig.pass(2s);
  CHECK(rig.state("spw-a") == InstanceState::kPending);
  rig.engine().pulls["app:1"] = pull_of({"{}\n"});
  rig.pass(10s);
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
}

TEST_CASE("docker faults: a container that the engine does not take is shown with its words") {
  DockerRig rig;
  rig.engine().before = answers("name=spw-a-main", refusal(400, "Minimum memory limit allowed is 6MB"));
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  const auto failed = rig.get("spw-a");
  CHECK(failed->state == InstanceState::kFailed);
  CHECK_FALSE(failed->image_error);
  CHECK(failed->containers[0].reason == "CreateContainerError");
  CHECK(failed->containers[0].message == "Minimum memory limit allowed is 6MB");
}

TEST_CASE("docker faults: a value that is not UTF-8 is named, never shown") {
  DockerRig rig;
  model::ResolvedPod pod = DockerRig::pod();
  pod.containers[0].env = {{"KEY", "s3cret\xff"}};
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  const auto failed = rig.get("spw-a");
  CHECK(failed->containers[0].reason == "CreateContainerConfigError");
  CHECK(says(failed->containers[0].message, "environment variable KEY"));
  CHECK_FALSE(says(failed->containers[0].message, "s3cret"));
}

TEST_CASE("docker faults: a terminate that was cut off is carried on with by the next") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  rig.engine().before = [](const net::HttpRequest& request) -> std::optional<Response> {
    if (request.method != net::Method::kDelete) return std::nullopt;
    return base::fail(ErrorKind::kUnknownOutcome, "cut");
  };
  REQUIRE(rig.terminate("spw-a", 5s));
  rig.settle();
  CHECK(rig.engine().size() == 2);
  rig.engine().before = nullptr;
  REQUIRE(rig.terminate("spw-a", 5s));
  rig.settle();
  CHECK(rig.engine().size() == 0);
}

TEST_CASE("docker faults: a create of a dead daemon that comes late never shares a GPU") {
  DockerRig rig;
  const auto late = [&rig] {
    nlohmann::json labels = {{"spillway.dev/tag", "spw-late"},
                             {"spillway.dev/role", "sandbox"},
                             {"spillway.dev/gpus", "0"},
                             {"spillway.dev/containers", "main"}};
    rig.engine().add("spw-late", {{"Image", "busybox:test"}, {"Labels", std::move(labels)}});
  };
  SECTION("between our look and our create: the one that has not started gives way") {
    rig.engine().before = [&](const net::HttpRequest& request) -> std::optional<Response> {
      if (request.target.contains("name=spw-a")) late();
      return std::nullopt;
    };
    const auto bought = rig.create(DockerRig::placement("spw-a", 1));
    REQUIRE_FALSE(bought);
    CHECK(bought.error().kind == ErrorKind::kUnavailable);
    CHECK_FALSE(rig.engine().has("spw-a"));
    rig.engine().before = nullptr;
    REQUIRE(rig.create(DockerRig::placement("spw-a", 1)));
    CHECK(rig.engine().container("spw-a").label("spillway.dev/gpus") == "1");
  }
  SECTION("after our instance has started: it is made again with other GPUs when its turn comes") {
    REQUIRE(rig.create(DockerRig::placement("spw-a", 1)));
    late();
    REQUIRE(rig.create(DockerRig::placement("spw-late", 1)));
    CHECK(rig.engine().container("spw-a").label("spillway.dev/gpus") == "0");
    CHECK(rig.engine().container("spw-late").label("spillway.dev/gpus") == "1");
  }
}

TEST_CASE("docker faults: a name that is taken by a create still under way is waited for") {
  DockerRig rig;
  rig.engine().before = answers("name=spw-a-main", refusal(409, "Conflict. The container name is in use"), 2);
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.pass(5s);
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
}
