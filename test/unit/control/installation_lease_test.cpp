#include "vk-provider/control/installation_lease.hpp"

#include <catch2/catch.hpp>

#include "test/support/fake_node_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;
namespace base = spillway::base;
using base::ErrorKind;
using spillway::control::InstallationLease;
using spillway::control::InstallationLeaseConfig;
using spillway::test::FakeNodeApi;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kLease = "spillway-burst";
constexpr const char* kPath = "/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases";

async::Loop acquire_and_keep(InstallationLease& lease, bool& lost) {
  co_await lease.acquire();
  co_await lease.keep();
  lost = true;
}

/// One process: its connection to the API server, its lease, its loop.
struct Process {
  Process(VirtualReactor& reactor, FakeNodeApi& api, std::string host, base::Random& random)
      : r(reactor),
        lease(config(std::move(host)), api, reactor.timers, random, metrics),
        group(reactor.ctx.get_executor()) {
    group.spawn(acquire_and_keep(lease, lost));
  }

  static InstallationLeaseConfig config(std::string host) {
    InstallationLeaseConfig config;
    config.ns = "spillway-system";
    config.installation = "burst";
    config.hostname = std::move(host);
    return config;
  }
  bool waits_until_held(base::Duration limit) {
    return r.run_until([this] { return lease.held(); }, limit);
  }
  void die() { r.run(group.stop()); }
  void terminate() {
    r.run(group.stop());
    r.run(lease.release());
  }

  VirtualReactor& r;
  base::Metrics metrics;
  InstallationLease lease;
  async::TaskGroup group;
  bool lost = false;
};

struct Fixture {
  std::string holder() const { return api.lease(kLease)["spec"].value("holderIdentity", std::string()); }
  void fail_writes(int times, ErrorKind kind, bool performed = false) {
    api.faults.push_back({"PUT", kPath, base::Error(kind, "planned"), times, performed});
  }

  VirtualReactor r;
  FakeNodeApi api{r.timers};
  base::SeededRandom random{7};
};

}  // namespace

TEST_CASE("the first process takes the lease at once, and says who it is and for how long") {
  Fixture f;
  Process a(f.r, f.api, "host-a", f.random);
  CHECK(a.waits_until_held(1s));
  const auto& spec = f.api.lease(kLease)["spec"];
  CHECK(spec["holderIdentity"] == a.lease.identity());
  CHECK(a.lease.identity().starts_with("host-a_"));
  CHECK(spec["leaseDurationSeconds"] == 30);
  CHECK(spec["acquireTime"] == "2026-11-29T00:00:00.000000Z");
  CHECK(spec["renewTime"] == "2026-11-29T00:00:00.000000Z");
  CHECK_FALSE(a.lease.handed_over());
  a.die();
}

TEST_CASE("two processes on one host are two holders") {
  Fixture f;
  Process a(f.r, f.api, "host", f.random);
  Process b(f.r, f.api, "host", f.random);
  CHECK(a.lease.identity() != b.lease.identity());
  f.r.run_for(5min);
  CHECK(a.lease.held() != b.lease.held());
  a.die();
  b.die();
}

TEST_CASE("at rest the lease is renewed every five seconds, and nothing is read") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  f.r.run_for(1s);
  f.api.forget_requests();
  f.r.run_for(60s);
  CHECK(f.api.count("PUT", kPath) == 12);
  CHECK(f.api.count("GET", kPath) == 0);
  a.die();
}

TEST_CASE("a create is allowed only if it ends inside the lease") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  const base::TimePoint now = f.r.timers.now();
  CHECK(a.lease.covers(now + 20s));
  CHECK(a.lease.covers(now + 30s));
  CHECK_FALSE(a.lease.covers(now + 31s));
  f.fail_writes(1000, ErrorKind::kUnavailable);
  f.r.run_for(11s);
  CHECK_FALSE(a.lease.covers(f.r.timers.now() + 20s));
  CHECK(a.lease.covers(f.r.timers.now() + 19s));
  a.die();
}

TEST_CASE("a holder that cannot renew loses the lease before anybody else can have it") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  const base::TimePoint end = a.lease.valid_until();
  f.fail_writes(1000, ErrorKind::kUnavailable);
  CHECK(f.r.run_until([&] { return a.lost; }, 1min));
  CHECK(f.r.timers.now() == end);
  CHECK_FALSE(a.lease.held());
  a.die();
}

TEST_CASE("a few failed renewals are repeated and harm nothing") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  f.fail_writes(5, ErrorKind::kUnavailable);
  f.r.run_for(2min);
  CHECK(a.lease.held());
  CHECK_FALSE(a.lost);
  a.die();
}

TEST_CASE("a renewal whose answer was lost is looked up and carried on") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  f.fail_writes(3, ErrorKind::kUnknownOutcome, true);
  f.r.run_for(2min);
  CHECK(a.lease.held());
  CHECK_FALSE(a.lost);
  a.die();
}

TEST_CASE("a standby waits out a holder that died, by its own clock, and then holds it uncleanly") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  f.r.run_for(7s);
  const base::TimePoint valid_until = a.lease.valid_until();
  Process b(f.r, f.api, "b", f.random);
  f.r.run_for(60s);
  CHECK_FALSE(b.lease.held());
  a.die();
  f.r.timers.jump_wall(-24h);  // what the wall clock says does not count
  const base::TimePoint died_at = f.r.timers.now();
  CHECK(valid_until > base::TimePoint());
  REQUIRE(b.waits_until_held(2min));
  CHECK(f.r.timers.now() >= a.lease.valid_until());
  CHECK(f.r.timers.now() <= died_at + 33s);
  CHECK(b.lease.acquired_at() == f.r.timers.now());
  CHECK_FALSE(b.lease.handed_over());
  CHECK(f.api.lease(kLease)["spec"]["leaseTransitions"] == 1);
  b.die();
}

TEST_CASE("a process that is asked to end hands over within seconds") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  Process b(f.r, f.api, "b", f.random);
  f.r.run_for(20s);
  a.terminate();
  CHECK_FALSE(a.lease.held());
  CHECK(f.holder().empty());
  CHECK(b.waits_until_held(3s));
  CHECK(b.lease.handed_over());
  b.die();
}

TEST_CASE("a release whose first try fails is repeated; one that is not held writes nothing") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  Process b(f.r, f.api, "b", f.random);
  f.r.run_for(10s);
  b.terminate();
  CHECK(f.holder() == a.lease.identity());
  f.fail_writes(1, ErrorKind::kUnavailable);
  a.terminate();
  CHECK(f.holder().empty());
}

TEST_CASE("a holder that was paused past its lease does nothing more when it wakes") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  // It sleeps (SIGSTOP, or a suspended machine): the steady clock goes on, no line of it runs.
  f.r.timers.advance_to(a.lease.valid_until() + 1s);
  f.api.edit_lease(kLease, [](auto& lease) { lease["spec"]["holderIdentity"] = "b_1"; });
  CHECK_FALSE(a.lease.held());
  CHECK_FALSE(a.lease.covers(f.r.timers.now()));
  f.api.forget_requests();
  f.r.run_for(1s);
  CHECK(a.lost);
  CHECK(f.api.count("PUT", kPath) == 0);
  CHECK(f.holder() == "b_1");
  a.die();
}

TEST_CASE("a lease that somebody else took by force is given up at the next renewal") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  f.api.edit_lease(kLease, [](auto& lease) { lease["spec"]["holderIdentity"] = "b_1"; });
  CHECK(f.r.run_until([&] { return a.lost; }, 10s));
  CHECK(f.holder() == "b_1");
  a.die();
}

TEST_CASE("a lease that was deleted is written again by its holder") {
  Fixture f;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1s));
  f.api.delete_lease(kLease);
  f.r.run_for(10s);
  CHECK(f.holder() == a.lease.identity());
  CHECK(a.lease.held());
  a.die();
}

TEST_CASE("an API server that refuses or is away is asked again for ever, and the lease is taken when it answers") {
  Fixture f;
  f.api.faults.push_back({"GET", kPath, base::Error(ErrorKind::kPermission, "no"), 20});
  f.api.faults.push_back({"POST", kPath, base::Error(ErrorKind::kUnavailable, "no"), 3});
  Process a(f.r, f.api, "a", f.random);
  f.r.run_for(20s);
  CHECK_FALSE(a.lease.held());
  CHECK(a.waits_until_held(1min));
  a.die();
}

TEST_CASE("slow answers do not make the lease last longer than it is promised") {
  Fixture f;
  f.api.delay = 4s;
  Process a(f.r, f.api, "a", f.random);
  REQUIRE(a.waits_until_held(1min));
  // Sent 4 s ago.
  CHECK(a.lease.valid_until() == f.r.timers.now() + 26s);
  a.die();
}
