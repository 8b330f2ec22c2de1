// What is kept up for running pods: tokens are renewed, and a changed ConfigMap is told.
#include <algorithm>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "test/support/reference_builder.hpp"
#include "test/support/scripted_kube_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/control/change_notice.hpp"
#include "vk-provider/control/token_keeper.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using nlohmann::json;

namespace {

/// Takes files, and keeps them.
class FileTaker final : public provider::Provider {
 public:
  explicit FileTaker(async::Timers& t) : timers(t) { info_.name = base::ProviderName("cloud"); }
  const provider::ProviderInfo& info() const override { return info_; }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline) override { co_return std::vector<model::Offer>(); }
  async::Task<model::Instance> create(model::Placement, model::ResolvedPod, base::Deadline) override {
    co_return model::Instance();
  }
  async::Task<model::Instance> get(model::InstanceRef, base::Deadline) override { co_return model::Instance(); }
  async::Task<provider::OwnedList> list_owned(std::string, base::Deadline) override { co_return provider::OwnedList(); }
  async::Task<void> terminate(model::InstanceRef, std::chrono::seconds, base::Deadline) override {
    co_return base::Result<void>();
  }
  async::Task<void> put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                              base::Deadline deadline) override {
    CHECK(ref.id.str() == "i-1");
    puts.push_back(std::move(files));
    if (hangs > 0 && hangs-- > 0) co_await timers.sleep_until(deadline);
    if (!fails) co_return base::Result<void>();
    co_return base::fail(base::ErrorKind::kUnsupported, "no files here");
  }
  async::Timers& timers;
  std::vector<std::vector<model::ResolvedFile>> puts;
  bool fails = false;
  int hangs = 0;  // so many calls answer at their deadline only

 private:
  provider::ProviderInfo info_;
};

/// A running pod, and a cluster that answers with what the test sets.
class World {
 public:
  World() : api(reactor.timers), client(api), events(client, reactor.timers, metrics, "host") {
    auto made = std::make_unique<FileTaker>(reactor.timers);
    provider = made.get();
    providers.add(std::make_unique<provider::ThrottledProvider>(std::move(made), provider::ThrottleConfig{},
                                                                reactor.timers, metrics));
    api.handler = [this](const kube::KubeRequest& request) { return answer(request); };
    group.spawn(events.run());
  }
  ~World() { reactor.run(group.stop()); }

  void add_running(model::PodSpec pod, const std::string& uid = test::kUid) {
    control::PodEntry entry;
    pod.key.uid = base::PodUid(uid);
    entry.record.spec = test::share(std::move(pod));
    entry.record.stage = model::Running{test::an_instance(model::InstanceState::kRunning)};
    pods.insert(base::PodUid(uid), std::move(entry));
  }
  std::vector<std::string> told(const std::string& reason) const {
    std::vector<std::string> out;
    for (const json& event : sent_events) {
      if (event["reason"] == reason) out.push_back(event["message"]);
    }
    return out;
  }

  test::VirtualReactor reactor;
  base::Metrics metrics;
  test::ScriptedKubeApi api;
  kube::Client client;
  kube::EventRecorder events;
  control::ProviderSet providers;
  FileTaker* provider = nullptr;
  control::PodStore pods;
  async::TaskGroup group{reactor.ctx.get_executor()};
  control::TokenKeeper tokens{pods, providers, client, reactor.timers, events, group};
  control::ChangeNotice changes{pods, client, reactor.timers, events};
  std::string object = R"({"data":{"a":"1"}})";  // every ConfigMap and Secret
  bool gone = false;
  int reads = 0;
  std::vector<json> token_requests;
  std::vector<json> sent_events;

 private:
  base::Result<kube::KubeResponse> answer(const kube::KubeRequest& request) {
    kube::KubeResponse response;
    if (request.target.ends_with("/events")) {
      sent_events.push_back(json::parse(request.body));
      response.body = "{}";
    } else if (request.target.ends_with("/token")) {
      CHECK(request.target == "/api/v1/namespaces/team-a/serviceaccounts/trainer/token");
      token_requests.push_back(json::parse(request.body));
      const auto life = std::chrono::seconds(token_requests.back()["spec"]["expirationSeconds"].get<int>());
      const json status{{"token", "token-" + std::to_string(token_requests.size())},
                        {"expirationTimestamp", base::to_rfc3339(reactor.timers.wall() + life)}};
      response.body = json{{"status", status}}.dump();
    } else {
      ++reads;
      if (gone) return base::fail(base::ErrorKind::kNotFound, "not found");
      response.body = object;
    }
    return response;
  }
};

model::PodSpec with_token() {
  model::PodSpec pod = test::a_pod();
  pod.service_account = "trainer";
  pod.annotations["spillway.dev/send-service-account-token"] = "true";
  model::VolumeSource token = test::volume_source(model::VolumeSource::Kind::kToken);
  token.path = "token";
  token.audience = "vault";
  token.expiration = 600s;
  test::add_files(pod, "sa").sources = {token};
  return pod;
}

}  // namespace

TEST_CASE("a token is renewed after 80 % of its life, and only it is replaced") {
  World w;
  model::PodSpec pod = with_token();
  pod.extras->volumes.edit()[0].sources.push_back(test::volume_source(model::VolumeSource::Kind::kConfigMap, "ca"));
  w.add_running(std::move(pod));
  w.tokens.given(base::PodUid(test::kUid), w.reactor.timers.now() + 480s);
  w.group.spawn(w.tokens.run());
  w.reactor.run_for(450s);
  CHECK(w.provider->puts.empty());
  w.reactor.run_for(60s);
  REQUIRE(w.provider->puts.size() == 1);
  REQUIRE(w.provider->puts[0].size() == 1);
  CHECK(w.provider->puts[0][0].volume == "sa");
  CHECK(w.provider->puts[0][0].path == "token");
  CHECK(w.provider->puts[0][0].content == "token-1");
  CHECK(w.token_requests[0]["spec"]["audiences"] == json::array({"vault"}));
  CHECK(w.token_requests[0]["spec"]["boundObjectRef"]["uid"] == test::kUid);
  w.reactor.run_for(420s);
  CHECK(w.provider->puts.size() == 1);
  w.reactor.run_for(60s);
  CHECK(w.provider->puts.size() == 2);
}

TEST_CASE("a token of a former daemon is renewed at the first look; one that stays at home never") {
  World w;
  SECTION("sent") {
    w.add_running(with_token());
    w.group.spawn(w.tokens.run());
    w.reactor.run_for(31s);
    CHECK(w.provider->puts.size() == 1);
  }
  SECTION("withheld") {
    model::PodSpec pod = with_token();
    pod.annotations.clear();
    w.add_running(std::move(pod));
    w.group.spawn(w.tokens.run());
    w.reactor.run_for(2h);
    CHECK(w.token_requests.empty());
  }
}

TEST_CASE("a provider that hangs holds up no other token, and none is renewed twice at a time") {
  World w;
  w.provider->hangs = 1;
  w.add_running(with_token());
  w.add_running(with_token(), "uid-2");
  w.group.spawn(w.tokens.run());
  w.reactor.run_for(31s);
  CHECK(w.provider->puts.size() == 2);
  w.reactor.run_for(28s);
  CHECK(w.provider->puts.size() == 2);
  CHECK(w.told("FailedToRenewToken").empty());
}

TEST_CASE("a token that cannot be replaced is told, without the token") {
  World w;
  w.provider->fails = true;
  w.add_running(with_token());
  w.group.spawn(w.tokens.run());
  w.reactor.run_for(50s);
  CHECK(w.told("FailedToRenewToken") ==
        std::vector<std::string>{"the service account token in the pod is not renewed: no files here"});
  CHECK(w.provider->puts.size() == 1);
  w.reactor.run_for(30s);
  CHECK(w.provider->puts.size() == 2);
}

TEST_CASE("a token holds a day at most before it is renewed") {
  model::BoundToken token;
  base::Now now;
  token.expires_at = now.wall + 100s;
  CHECK(control::renewal_of(token, now) == now.steady + 80s);
  token.expires_at = now.wall + 24h * 365;
  CHECK(control::renewal_of(token, now) == now.steady + 24h);
}

TEST_CASE("a change of what a pod mounts is told once, and its environment is no file") {
  World w;
  model::PodSpec pod = test::a_pod();
  pod.containers.edit()[0].env_from = {test::config_ref(model::ConfigRef::Kind::kConfigMap, "environment", "")};
  test::add_files(pod, "cfg").sources = {test::volume_source(model::VolumeSource::Kind::kConfigMap, "settings")};
  core::Surroundings read;
  read.config.emplace(test::config("settings"), test::holding({{"a", "1"}}));
  w.changes.given(base::PodUid(test::kUid), control::digests_of(core::references(pod), read));
  w.add_running(std::move(pod));
  w.group.spawn(w.changes.run());

  w.reactor.run_for(130s);
  CHECK(w.reads == 2);
  CHECK(w.told("MountedObjectChanged").empty());
  w.object = R"({"data":{"a":"2"}})";
  w.reactor.run_for(5min);
  CHECK(w.told("MountedObjectChanged") ==
        std::vector<std::string>{"configmap \"settings\" was changed; the pod keeps the files of its start until it is "
                                 "created again"});
  w.gone = true;
  w.reactor.run_for(5min);
  CHECK(w.told("MountedObjectChanged").size() == 2);
  CHECK(w.told("MountedObjectChanged").back().find("was deleted") != std::string::npos);
}

TEST_CASE("after a restart the first look is what is compared with, and looks are bounded") {
  World w;
  model::PodSpec pod = test::a_pod();
  for (int i = 0; i < 100; ++i) {
    const std::string name = "v" + std::to_string(i);
    test::add_files(pod, name).sources = {test::volume_source(model::VolumeSource::Kind::kSecret, name)};
  }
  w.object = R"({"type":"Opaque","data":{"a":"MQ=="}})";
  w.add_running(std::move(pod));
  w.group.spawn(w.changes.run());
  w.reactor.run_for(61s);
  CHECK(w.reads == 6);
  w.reactor.run_for(2min);
  CHECK(w.told("MountedObjectChanged").empty());
}
