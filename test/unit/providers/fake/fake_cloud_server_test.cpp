#include "providers/fake/fake_cloud_server.hpp"

#include <catch2/catch.hpp>

#include <stdlib.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "providers/fake/fake_cloud_command.hpp"
#include "providers/fake/fake_provider.hpp"
#include "test/support/provider_conformance.hpp"
#include "test/support/real_reactor.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"
#include "vk-provider/net/http_client.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)

namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "spw-fake-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// A cloud behind a real socket, and the provider that the registry makes for it.
class SocketHarness final : public test::ProviderHarness {
 public:
  SocketHarness()
      : cloud_(a_cloud(), reactor_.timers.both()),
        socket_(folder_.file("fake.sock")),
        server_(reactor_.ctx.get_executor(), reactor_.timers, cloud_, socket_),
        http_(reactor_.ctx.get_executor(), reactor_.timers) {
    REQUIRE(server_.start().has_value());
    provider::ProviderDeps deps;
    deps.executor = reactor_.ctx.get_executor();
    deps.timers = &reactor_.timers;
    deps.http = &http_;
    nlohmann::json config = {{"mode", "socket"}, {"socket", socket_}};
    auto made = provider_type().make(base::ProviderName("toy"), config, deps);
    REQUIRE(made.has_value());
    provider_ = std::move(*made);
  }
  ~SocketHarness() override { reactor_.run(server_.stop(reactor_.timers.now())); }

  provider::Provider& provider() override { return *provider_; }
  async::Timers& timers() override { return reactor_.timers; }
  void run(boost::asio::awaitable<void> task) override { reactor_.run(std::move(task)); }
  model::ResolvedPod lasting_pod() override { return test::make_conformance_pod("app:1"); }
  model::ResolvedPod ending_pod(int exit_code) override {
    return test::make_conformance_pod(
        "app:1", {{"fake.spillway.dev/run-for", "0"}, {"fake.spillway.dev/exit-code", std::to_string(exit_code)}});
  }
  std::optional<test::TalkingPod> talking_pod() override {
    test::TalkingPod out;
    out.pod =
        test::make_conformance_pod("app:1", {{"fake.spillway.dev/run-for", "0"}, {"fake.spillway.dev/log-lines", "2"}});
    out.log =
        "default/conformance main run 1: line 1 of 2\n"
        "default/conformance main run 1: line 2 of 2\n";
    return out;
  }
  std::optional<test::EchoingPod> echoing_pod() override {
    test::EchoingPod out;
    out.pod = lasting_pod();
    out.port = 7;
    return out;
  }
  bool stall() override {
    FaultRule slow = a_fault(Effect::kDelay);
    slow.duration = 1h;
    return cloud_.add_fault(slow, reactor_.timers.now()).has_value();
  }
  std::optional<std::string> add_foreign(const std::string& tag) override {
    return cloud_.add_foreign(tag, reactor_.timers.now());
  }

  test::RealReactor& reactor() { return reactor_; }
  FakeCloud& cloud() { return cloud_; }
  const std::string& socket() const { return socket_; }

 private:
  test::RealReactor reactor_;
  TemporaryFolder folder_;
  FakeCloud cloud_;
  std::string socket_;
  FakeCloudServer server_;
  net::BeastHttpClientFactory http_;
  std::unique_ptr<provider::Provider> provider_;
};

}  // namespace

TEST_CASE("fake provider over a socket: conformance") {
  for (const auto& c : test::conformance_cases()) {
    DYNAMIC_SECTION(c.name) {
      SocketHarness harness;
      c.run(harness);
    }
  }
}

TEST_CASE("fake provider over a socket: a connection that breaks, before and after the effect") {
  SocketHarness h;
  model::Placement placement;
  placement.offer = base::OfferId("small");
  placement.tag = base::InstanceTag("spw-a-1");
  for (const Effect effect : {Effect::kLoseRequest, Effect::kLoseAnswer}) {
    FaultRule lost = a_fault(effect, Call::kCreate);
    lost.times = 1;
    REQUIRE(h.cloud().add_fault(lost, h.timers().now()).has_value());
    const auto deadline = h.timers().now() + 20s;
    const auto answer = h.reactor().run(h.provider().create(placement, h.lasting_pod(), deadline));
    REQUIRE_FALSE(answer.has_value());
    CHECK(answer.error().kind == base::ErrorKind::kUnknownOutcome);
    CHECK(h.cloud().size(h.timers().now()) == (effect == Effect::kLoseAnswer ? 1 : 0));
  }
}

TEST_CASE("fake provider over a socket: nobody listens") {
  test::RealReactor reactor;
  TemporaryFolder folder;
  net::BeastHttpClientFactory http(reactor.ctx.get_executor(), reactor.timers);
  provider::ProviderDeps deps;
  deps.executor = reactor.ctx.get_executor();
  deps.timers = &reactor.timers;
  deps.http = &http;
  const nlohmann::json config = {{"mode", "socket"}, {"socket", folder.file("nobody.sock")}};
  auto made = provider_type().make(base::ProviderName("toy"), config, deps);
  REQUIRE(made.has_value());
  model::Placement placement;
  placement.tag = base::InstanceTag("spw-a-1");
  const auto deadline = reactor.timers.now() + 20s;
  const auto bought = reactor.run((*made)->create(placement, test::make_conformance_pod("app:1"), deadline));
  CHECK(bought.error().kind == base::ErrorKind::kUnavailable);
}

TEST_CASE("fake cloud command: says what is wrong by its exit code") {
  TemporaryFolder folder;
  FakeCloudOptions options;
  options.socket = folder.file("missing/fake.sock");
  CHECK(run_fake_cloud(options) == 1);
  options.config_file = folder.file("no-such-file");
  CHECK(run_fake_cloud(options) == 2);
}
