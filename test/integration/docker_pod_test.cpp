// Whole pods on a real engine: several containers, rights and names, as seen from inside.
#include <ctime>

#include "test/integration/docker_pod_fixture.hpp"
#include "vk-provider/net/url.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace model = spillway::model;
namespace net = spillway::net;
namespace provider = spillway::provider;
using model::ContainerState;
using model::InstanceState;
using nlohmann::json;
using provider::ContainerAction;
using Kind = model::VolumeSpec::Kind;

namespace {

constexpr const char* kLasting = "trap 'exit 0' TERM; while :; do sleep 1 & wait; done";

}  // namespace

TEST_CASE_METHOD(PodFixture, "docker pod: init containers and sidecars start by order, main last", "[docker-pod]") {
  add_volume("work", Kind::kScratch);
  const auto init = model::ContainerRole::kInit;
  add("one", "echo one >> /w/log", init).start_at_once = true;
  add("two", "echo two >> /w/log", init);
  add("proxy", std::string("echo proxy >> /w/log; ") + kLasting, model::ContainerRole::kSidecar);
  add("main", "cat /w/log").start_at_once = false;
  for (auto& container : whole.containers) container.mounts = {mount("work", "/w")};
  const auto ref = buy("spw-it-init-1");
  output(ref, "spw-it-init-1", "one");
  const auto waiting = get(ref);
  REQUIRE(waiting);
  CHECK(waiting->state == InstanceState::kRunning);
  for (const size_t i : {1UL, 2UL, 3UL}) {
    CHECK(waiting->containers.at(i).state == ContainerState::kWaiting);
    CHECK(waiting->containers[i].created);
  }
  restart_daemon();
  REQUIRE(start(ref, "two"));
  output(ref, "spw-it-init-1", "two");
  REQUIRE(start(ref, "proxy"));
  get_until(ref, [&](const model::Instance&) {
    return api(net::Method::kGet, "/containers/spw-it-init-1-proxy/archive?path=/w/log").body.contains("proxy");
  });
  REQUIRE(start(ref, "main"));
  CHECK(output(ref, "spw-it-init-1", "main") == "one\ntwo\nproxy\n");
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: sidecars end after the main container, in reverse order", "[docker-pod]") {
  const auto sidecar = model::ContainerRole::kSidecar;
  const auto since =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  add("a", "trap 'exit 0' TERM; echo up; while :; do sleep 1 & wait; done", sidecar).start_at_once = true;
  add("b", "trap 'exit 0' TERM; echo up; while :; do sleep 1 & wait; done", sidecar).start_at_once = true;
  add("main", "trap 'sleep 1; exit 0' TERM; echo up; while :; do sleep 0.1; done");
  const auto ref = buy("spw-it-order-1");
  for (const char* const name : {"a", "b", "main"}) wait_for(ref, "spw-it-order-1", name, "up");
  end(ref, 20s);
  const json filter = {{"event", {"die"}}, {"label", {"spillway.dev/tag=spw-it-order-1"}}};
  const std::string events = api(net::Method::kGet, "/events?since=" + std::to_string(since.count()) +
                                                        "&until=" + std::to_string(std::time(nullptr) + 1) +
                                                        "&filters=" + net::encode_query_value(filter.dump()))
                                 .body;
  std::vector<std::string> died;
  std::vector<std::string> codes;
  size_t begin = 0;
  while (begin < events.size()) {
    const size_t newline = std::min(events.find('\n', begin), events.size());
    const json event = json::parse(events.substr(begin, newline - begin));
    died.push_back(event["Actor"]["Attributes"].value("spillway.dev/container", "sandbox"));
    codes.push_back(event["Actor"]["Attributes"].value("exitCode", ""));
    begin = newline + 1;
  }
  CHECK(died == std::vector<std::string>{"main", "b", "a", "sandbox"});
  REQUIRE(codes.size() == 4);
  codes.pop_back();  // the sandbox has nothing to finish
  CHECK(codes == std::vector<std::string>{"0", "0", "0"});
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: users, groups and rights as seen from inside", "[docker-pod]") {
  add_volume("data", Kind::kScratch);
  add_volume("cfg", Kind::kFiles);
  add_volume("mem", Kind::kMemory);
  add_file("cfg", "key", "k", 0400);
  change_extras([](model::PodExtras& extras) {
    extras.fs_group = 2000;
    extras.supplemental_groups = {4000};
  });
  model::ResolvedContainer& main =
      add("main",
          "id -u; id -g; id -G; stat -c '%n %a %g' /data /cfg /cfg/key /mem; cat /cfg/key; echo; touch /data/x /mem/x; "
          "stat -c '%g' /data/x; touch /tmp/x 2>&1; grep -E 'NoNewPrivs|Seccomp:|CapBnd' /proc/self/status");
  main.mounts = {mount("data", "/data"), mount("cfg", "/cfg"), mount("mem", "/mem")};
  model::Security security;
  security.user = 1000;
  security.group = 3000;
  security.non_root = true;
  security.read_only_root = true;
  security.no_new_privileges = true;
  security.drop_capabilities = {"ALL"};
  security.add_capabilities = {"NET_BIND_SERVICE"};
  main.security = security;
  model::Security loose;
  loose.seccomp = model::Security::Profile::kUnconfined;
  loose.app_armor = model::Security::Profile::kUnconfined;
  add("loose", "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status").security = loose;
  const auto ref = buy("spw-it-rights-1");
  const std::string out = output(ref, "spw-it-rights-1", "main");
  INFO(out);
  CHECK(out.starts_with("1000\n3000\n"));
  CHECK(says(out, " 2000"));
  CHECK(says(out, " 4000"));
  CHECK(says(out, "/data 2777 2000\n/cfg 2755 2000\n/cfg/key 440 2000\n/mem 2777 2000\nk\n2000\n"));
  CHECK(says(out, "touch: /tmp/x: Read-only file system"));
  CHECK(says(out, "NoNewPrivs:\t1\n"));
  CHECK(says(out, "Seccomp:\t2\n"));
  CHECK(says(out, "CapBnd:\t0000000000000400\n"));
  CHECK(output(ref, "spw-it-rights-1", "loose") == "NoNewPrivs:\t0\nSeccomp:\t0\n");
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: a container that must not be root is not made", "[docker-pod]") {
  model::Security security;
  security.non_root = true;
  add("main", kLasting).security = security;
  const auto ref = buy("spw-it-root-1");
  const model::Instance failed =
      get_until(ref, [](const model::Instance& i) { return i.state == InstanceState::kFailed; });
  CHECK(failed.containers.at(0).reason == "CreateContainerConfigError");
  CHECK(
      says(failed.containers[0].message, "container has runAsNonRoot and image will run as root (pod: \"conformance_"));
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: hostname, hosts and resolver are the pod's, in every container",
                 "[docker-pod]") {
  whole.hostname = "web-7";
  change_extras([](model::PodExtras& extras) {
    model::HostAlias alias;
    alias.ip = "192.0.2.7";
    alias.hostnames = {"db", "db.local"};
    model::HostAlias six;
    six.ip = "2001:db8::7";
    six.hostnames = {"six"};
    extras.host_aliases = {alias, six};
    model::DnsConfig dns;
    dns.alone = true;
    dns.nameservers = {"192.0.2.1", "192.0.2.2"};
    dns.searches = {"team.local"};
    dns.options = {"ndots:2"};
    extras.dns = dns;
  });
  const std::string show = "hostname; cat /etc/hosts /etc/resolv.conf";
  add("main", show);
  add("other", show);
  const auto ref = buy("spw-it-names-1");
  const std::string out = output(ref, "spw-it-names-1", "main");
  INFO(out);
  CHECK(out.starts_with("web-7\n"));
  CHECK(says(out, "192.0.2.7\tdb\n"));
  CHECK(says(out, "192.0.2.7\tdb.local\n"));
  CHECK(says(out, "2001:db8::7\tsix\n"));
  CHECK(says(out, "nameserver 192.0.2.1\nnameserver 192.0.2.2\n"));
  CHECK(says(out, "search team.local\n"));
  CHECK(says(out, "options ndots:2\n"));
  CHECK(output(ref, "spw-it-names-1", "other") == out);
  end(ref);
}

TEST_CASE_METHOD(PodFixture, "docker pod: processes are shared when asked for, and the sandbox is the first",
                 "[docker-pod]") {
  const bool share = GENERATE(true, false);
  change_extras([share](model::PodExtras& extras) { extras.share_processes = share; });
  add_volume("cfg", Kind::kFiles);
  add_file("cfg", "f", "x");
  add("main", kLasting).mounts = {mount("cfg", "/cfg")};
  add("looker", "sleep 1; tr '\\0' ' ' < /proc/1/cmdline; echo; ls /proc/1/root/volumes 2>&1; ps | grep -c '[t]rap'");
  const auto ref = buy("spw-it-procs-1");
  const std::string out = output(ref, "spw-it-procs-1", "looker");
  INFO(out);
  if (share) {
    CHECK(out.starts_with("/pause \n"));
    CHECK(says(out, "No such file or directory"));  // files are with a container that never runs
    CHECK(out.ends_with("\n1\n"));
  } else {
    CHECK(out.starts_with("sh -c "));
    CHECK(out.ends_with("\n0\n"));
  }
  end(ref);
  check_nothing_left();
}

TEST_CASE_METHOD(PodFixture, "docker pod: the stop signal is the pod's", "[docker-pod]") {
  add("main", "trap 'exit 42' USR1; echo up; while :; do sleep 0.1; done").stop_signal = "SIGUSR1";
  const auto ref = buy("spw-it-signal-1");
  wait_for(ref, "spw-it-signal-1", "main", "up");
  REQUIRE(start(ref, "main", ContainerAction::kStop));
  CHECK(get_exited(ref).containers.at(0).exit_code == 42);
  end(ref);
}
