// Volumes, files and termination messages on a real engine, and that none of them is left behind.
#include <cstdio>

#include "test/integration/docker_pod_fixture.hpp"
#include "vk-provider/net/digest.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace async = spillway::async;
namespace base = spillway::base;
namespace model = spillway::model;
namespace net = spillway::net;
namespace provider = spillway::provider;
namespace providers = spillway::providers;
using model::ContainerState;
using nlohmann::json;
using provider::ContainerAction;
using Kind = model::VolumeSpec::Kind;

namespace {

constexpr const char* kLasting = "trap 'exit 0' TERM; while :; do sleep 1 & wait; done";

/// Passes requests on until it has passed `left`; then its process is as good as dead.
class DyingClient final : public net::HttpClient {
 public:
  DyingClient(std::unique_ptr<net::HttpClient> inner, int& left) : inner_(std::move(inner)), left_(left) {}
  async::Task<net::HttpResponse> send(net::HttpRequest request, base::Deadline deadline) override {
    if (left_-- <= 0) co_return base::fail(base::ErrorKind::kUnavailable, "dead");
    co_return co_await inner_->send(std::move(request), deadline);
  }
  async::Task<net::HttpStream> open(net::HttpRequest request, base::Deadline deadline) override {
    if (left_-- <= 0) co_return base::fail(base::ErrorKind::kUnavailable, "dead");
    co_return co_await inner_->open(std::move(request), deadline);
  }

 private:
  std::unique_ptr<net::HttpClient> inner_;
  int& left_;
};

}  // namespace

TEST_CASE_METHOD(PodFixture, "docker pod: three containers share scratch space and localhost", "[docker-pod]") {
  add_volume("shared", Kind::kScratch);
  add("web", "until [ -e /www/index.html ]; do sleep 0.1; done; exec httpd -f -p 8080 -h /www").mounts = {
      mount("shared", "/www")};
  add("writer", "stat -c '%a %u %g' /out; ls -A /out; echo hello > /out/index.html").mounts = {mount("shared", "/out")};
  add("reader", "until wget -qO- http://127.0.0.1:8080/index.html; do sleep 0.1; done; touch /in/x 2>&1; echo $?")
      .mounts = {mount("shared", "/in")};
  whole.containers[2].mounts[0].read_only = true;
  const auto ref = buy("spw-it-share-1");
  CHECK(output(ref, "spw-it-share-1", "writer") == "777 0 0\n");
  const std::string read = output(ref, "spw-it-share-1", "reader");
  CHECK(says(read, "hello\n"));
  CHECK(says(read, "Read-only file system\n1\n"));
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: files arrive byte for byte, with their modes, read-only", "[docker-pod]") {
  std::string large(1 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 + i / 257);
  const std::string long_path = "deep/" + std::string(120, 'd') + "/" + std::string(90, 'f');
  add_volume("cfg", Kind::kFiles);
  add_volume("keys", Kind::kFiles);
  add_file("cfg", "large.bin", large);
  add_file("cfg", "empty", "");
  add_file("cfg", "run.sh", "#!/bin/sh\necho ran\n", 0755);
  add_file("cfg", long_path, "deep");
  add_file("keys", "id", "\xff\xfe secret", 0400);
  add("main",
      "stat -c '%n %a %u:%g %s' /cfg /cfg/empty /cfg/run.sh /keys/id /etc/app/run.sh; /cfg/run.sh; /etc/app/run.sh; "
      "cat /cfg/" +
          long_path +
          "; od -An -tx1 /keys/id; sha256sum < /cfg/large.bin; "
          "touch /cfg/x; echo x > /etc/app/run.sh; rm /keys/id; true")
      .mounts = {mount("cfg", "/cfg"), mount("keys", "/keys"), mount("cfg", "/etc/app/run.sh", "run.sh")};
  const auto ref = buy("spw-it-files-1");
  std::string sum;
  for (const std::uint8_t byte : net::sha256(large)) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", byte);
    sum += hex;
  }
  const std::string out = output(ref, "spw-it-files-1", "main");
  INFO(out);
  CHECK(
      out.starts_with("/cfg 755 0:0 4096\n/cfg/empty 644 0:0 0\n/cfg/run.sh 755 0:0 19\n/keys/id 400 0:0 9\n"
                      "/etc/app/run.sh 755 0:0 19\nran\nran\ndeep ff fe 20 73 65 63 72 65 74\n" +
                      sum + "  -\n"));
  CHECK(says(out, "touch: /cfg/x: Read-only file system"));
  CHECK(says(out, "can't create /etc/app/run.sh: Read-only file system"));
  CHECK(says(out, "'/keys/id'"));
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: files of a running pod are replaced", "[docker-pod]") {
  add_volume("token", Kind::kFiles);
  add_file("token", "token", "old");
  add("main", "cat /t/token; echo; until grep -q new /t/token 2>/dev/null; do sleep 0.1; done; stat -c ' %a' /t/token")
      .mounts = {mount("token", "/t")};
  const auto ref = buy("spw-it-put-1");
  wait_for(ref, "spw-it-put-1", "main", "old");
  restart_daemon();
  REQUIRE(reactor.run(daemon->put_files(ref, {file("token", "token", "new", 0600)}, soon())));
  CHECK(output(ref, "spw-it-put-1", "main") == "old\n 600\n");
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: volumes in memory have their size and outlive a restart", "[docker-pod]") {
  add_volume("shm", Kind::kMemory, 3 << 20);
  add_volume("mem", Kind::kMemory, 1 << 20);
  add("main",
      "df -k /dev/shm /mem | awk '{print $1, $2, $6}'; stat -c %a /mem; cat /mem/x 2>/dev/null; echo kept > /mem/x; "
      "head -c 2000000 /dev/zero > /mem/full 2>/dev/null || echo full; rm /mem/full")
      .mounts = {mount("shm", "/dev/shm"), mount("mem", "/mem")};
  const auto ref = buy("spw-it-mem-1");
  const std::string first = output(ref, "spw-it-mem-1", "main");
  INFO(first);
  CHECK(says(first, "tmpfs 3072 /dev/shm\ntmpfs 1024 /mem\n777\n"));
  CHECK(says(first, "full\n"));
  REQUIRE(start(ref, "main"));
  wait_for(ref, "spw-it-mem-1", "main", "kept\n");
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: the termination message is read back, or the end of the log",
                 "[docker-pod]") {
  add("told", "echo some output; printf 'because' > /dev/termination-log; exit 3").termination_message_path =
      "/dev/termination-log";
  add("own", "printf 'own place' > /tmp/why; exit 0").termination_message_path = "/tmp/why";
  model::ResolvedContainer& log = add("log", "for i in $(seq 100); do echo line $i; done; exit 1");
  log.termination_message_path = "/dev/termination-log";
  log.termination_message_from_logs = true;
  model::ResolvedContainer& twice =
      add("twice", "[ -s /dev/termination-log ] && exit 9; printf x > /dev/termination-log; exit 4");
  twice.termination_message_path = "/dev/termination-log";
  const auto ref = buy("spw-it-message-1");
  const model::Instance ended = get_exited(ref);
  CHECK(ended.containers.at(0).termination_message == "because");
  CHECK(ended.containers.at(1).termination_message == "own place");
  const std::string& tail = ended.containers.at(2).termination_message;
  CHECK(tail.starts_with("line 21\n"));
  CHECK(tail.ends_with("line 100\n"));
  CHECK(ended.containers.at(3).exit_code == 4);
  REQUIRE(start(ref, "twice"));
  const auto again = get_until(ref, [&](const model::Instance& i) {
    return i.containers.at(3).state == ContainerState::kExited &&
           i.containers[3].started_at > ended.containers[3].started_at;
  });
  CHECK(again.containers[3].exit_code == 4);  // the second run found an empty file
  CHECK(again.containers[3].termination_message == "x");
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: a process that dies at any step of a create leaves nothing for good",
                 "[docker-pod]") {
  add_volume("cfg", Kind::kFiles);
  add_volume("data", Kind::kScratch);
  add_volume("mem", Kind::kMemory);
  add_file("cfg", "f", "x");
  add("setup", "true", model::ContainerRole::kInit).start_at_once = true;
  add("main", kLasting).start_at_once = false;
  for (auto& container : whole.containers) {
    container.mounts = {mount("cfg", "/cfg"), mount("data", "/data"), mount("mem", "/mem")};
    container.termination_message_path = "/dev/termination-log";
  }
  int steps = 1000;
  const auto start_mortal = [&](int& left) {
    stop_daemon();
    providers::docker::Config config;
    config.hosts.push_back(host_config());
    std::vector<std::unique_ptr<net::HttpClient>> clients;
    clients.push_back(std::make_unique<DyingClient>(std::move(*http.make(config.hosts.front().endpoint)), left));
    provider::ProviderDeps deps;
    deps.executor = reactor.ctx.get_executor();
    deps.timers = &reactor.timers;
    daemon = std::make_unique<providers::docker::DockerProvider>(base::ProviderName("docker"), config,
                                                                 std::move(clients), deps);
  };
  const model::InstanceRef ref(base::ProviderName("docker"), base::InstanceId("box/spw-it-die-1"));
  end(buy("spw-it-die-1"));  // the sandbox's image is there now
  start_mortal(steps);
  buy("spw-it-die-1");
  reactor.run(reactor.timers.sleep_for(2s));
  const int needed = 1000 - steps;
  REQUIRE(needed > 8);
  for (int last = 1; last <= needed; ++last) {
    INFO("died after request " << last << " of " << needed);
    restart_daemon();
    end(ref);
    check_nothing_left();
    int left = last;
    start_mortal(left);
    static_cast<void>(create(placement("spw-it-die-1"), whole));
    for (int i = 0; i < 100 && left >= 0; ++i) reactor.run(reactor.timers.sleep_for(20ms));
    restart_daemon();
    if (last % 2 == 0) continue;  // ended as it stands
    buy("spw-it-die-1");
    get_until(ref, [](const model::Instance& i) { return i.containers.at(1).created; });
  }
  restart_daemon();
  end(ref);
  check_nothing_left();
}
