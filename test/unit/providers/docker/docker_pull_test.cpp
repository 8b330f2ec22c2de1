// Pulls with credentials: what the engine is told, and what its answers mean to a user.
#include "providers/docker/pull_auth.hpp"
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using model::InstanceState;
using providers::docker::classify_pull_error;
using providers::docker::encode_registry_auth;
using Kind = providers::docker::PullResult::Kind;

namespace {

constexpr const char* kImage = "r.example/team/app:1";

model::PullAuth account(const std::string& registry, const std::string& user) {
  model::PullAuth out;
  out.registry = registry;
  out.username = user;
  out.password = base::Secret("canary-" + user);
  return out;
}

/// A registry that says `refusals[user]` to a user, "" to the anonymous one; who is not named there may pull.
struct PullRig : DockerRig {
  PullRig() {
    engine().streams = [this](const net::HttpRequest& request) { return answer(request); };
  }

  std::optional<base::Result<net::HttpStream>> answer(const net::HttpRequest& request) {
    if (!request.target.contains("fromImage=")) return std::nullopt;
    const auto header = net::find_header(request.headers, "X-Registry-Auth");
    std::string user;
    for (const std::string name : {"ann", "bob"}) {
      if (header == encode_registry_auth(account("", name), "r.example").reveal()) user = name;
    }
    CHECK(header.has_value() == !user.empty());
    users.push_back(user);
    const auto refusal = refusals.find(user);
    if (refusal == refusals.end()) return std::nullopt;
    net::HttpStream stream;
    stream.head = *DockerEngineModel::answer(500, {{"message", refusal->second}});
    return stream;
  }

  model::Instance pull(std::vector<model::PullAuth> accounts) {
    DockerEngineModel::Pull done;
    done.lines.emplace_back(1s, "{\"status\":\"Pulling\"}\n");
    engine().pulls[kImage] = done;
    model::ResolvedPod wanted = pod(model::RestartPolicy::kAlways, kImage);
    wanted.pull_auth = std::move(accounts);
    const auto bought = create(placement("spw-a"), std::move(wanted));
    REQUIRE(bought);
    pass(5s);
    const auto instance = get("spw-a");
    REQUIRE(instance);
    return *instance;
  }
  std::string message(std::vector<model::PullAuth> accounts) {
    const model::Instance failed = pull(std::move(accounts));
    CHECK(failed.state == InstanceState::kFailed);
    CHECK(failed.image_error);
    CHECK(failed.containers.at(0).reason == "ErrImagePull");
    const std::string text(failed.containers.at(0).message);
    CHECK_FALSE(says(text, "canary"));
    return text;
  }

  std::map<std::string, std::string> refusals;
  std::vector<std::string> users;
};

}  // namespace

TEST_CASE("docker pull: errors are told apart by the engine's words") {
  CHECK(classify_pull_error("toomanyrequests: You have reached your pull rate limit") == Kind::kRateLimited);
  CHECK(classify_pull_error("error parsing HTTP 429 response body: Too Many Requests") == Kind::kRateLimited);
  CHECK(classify_pull_error("no matching manifest for linux/amd64 in the manifest list entries") == Kind::kNoPlatform);
  CHECK(classify_pull_error("image operating system \"windows\" cannot be used on this platform") == Kind::kNoPlatform);
  CHECK(classify_pull_error("manifest for r/a:1 not found: manifest unknown: manifest unknown") == Kind::kMissing);
  CHECK(classify_pull_error("name unknown: repository name not known to registry") == Kind::kMissing);
  CHECK(classify_pull_error("Head \"http://r/v2/a/manifests/1\": no basic auth credentials") == Kind::kDenied);
  CHECK(classify_pull_error("unauthorized: authentication required") == Kind::kDenied);
  CHECK(classify_pull_error("dial tcp 1.2.3.4:443: connect: connection refused") == Kind::kUnreachable);
}

TEST_CASE_METHOD(PullRig, "docker pull: the best credentials first, then the next ones") {
  refusals = {{"ann", "unauthorized: authentication required"}};
  const std::vector<model::PullAuth> accounts = {account("r.example", "bob"), account("other.example", "bob"),
                                                 account("r.example/team", "ann")};
  CHECK(pull(accounts).state == InstanceState::kRunning);
  CHECK(users == std::vector<std::string>{"ann", "bob"});
}

TEST_CASE_METHOD(PullRig, "docker pull: without credentials for the registry none are sent") {
  CHECK(pull({account("other.example", "bob")}).state == InstanceState::kRunning);
  CHECK(users == std::vector<std::string>{""});
}

TEST_CASE_METHOD(PullRig, "docker pull: other credentials are not tried where they cannot help") {
  refusals = {{"ann", "dial tcp: lookup r.example: no such host"}};
  CHECK(says(message({account("r.example", "ann"), account("r.example", "bob")}), "the registry cannot be reached"));
  CHECK(users == std::vector<std::string>{"ann"});
}

TEST_CASE_METHOD(PullRig, "docker pull: a message names image and remedy, and no password") {
  struct Row {
    const char* said;
    const char* anonymous;
    const char* with_account;
  };
  const Row row = GENERATE(
      Row{"no basic auth credentials", "r.example wants credentials; add a Secret for r.example in imagePullSecrets: ",
          "r.example refuses the credentials in imagePullSecrets; check that Secret: "},
      Row{"pull access denied for r.example/team/app, repository does not exist or may require 'docker login'",
          "r.example has no such image, or hides it; check its name, or add a Secret for r.example in "
          "imagePullSecrets: ",
          "r.example has no such image, or hides it from the account in imagePullSecrets; check both: "},
      Row{"manifest unknown", "r.example has no such image; check its name and tag: ",
          "r.example has no such image; check its name and tag: "},
      Row{"toomanyrequests: slow down",
          "r.example limits the rate of pulls; it is tried again later, and a Secret for r.example in imagePullSecrets "
          "may raise the limit: ",
          "r.example limits the rate of pulls; it is tried again later: "},
      Row{"no matching manifest for linux/amd64 in the manifest list entries",
          "it is not built for the platform of this host; build it for linux/amd64: ",
          "it is not built for the platform of this host; build it for linux/amd64: "});
  const std::string prefix = "failed to pull image \"r.example/team/app:1\": ";
  const bool with_account = GENERATE(false, true);
  refusals = {{"", row.said}, {"ann", std::string(row.said) + " canary-ann"}};
  if (with_account) {
    CHECK(message({account("r.example", "ann")}) == prefix + row.with_account + row.said + " ***");
  } else {
    CHECK(message({}) == prefix + row.anonymous + row.said);
  }
}
