#include "vk-provider/control/node_lease.hpp"

#include <catch2/catch.hpp>

#include "test/support/fake_node_api.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
namespace async = spillway::async;
namespace base = spillway::base;
using base::ErrorKind;
using spillway::control::NodeLease;
using spillway::test::FakeNodeApi;
using spillway::test::VirtualReactor;

namespace {

constexpr const char* kPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

struct Fixture {
  Fixture() { group.spawn(lease.run()); }
  ~Fixture() { r.run(group.stop()); }

  void fail(const char* verb, int times, ErrorKind kind, bool performed = false) {
    api.faults.push_back({verb, kPath, base::Error(kind, "planned"), times, performed});
  }

  VirtualReactor r;
  FakeNodeApi api{r.timers};
  base::SeededRandom random{7};
  base::Metrics metrics;
  NodeLease lease{"burst", api, r.timers, random, metrics};
  async::TaskGroup group{r.ctx.get_executor()};
};

}  // namespace

TEST_CASE("without a node nothing is renewed") {
  Fixture f;
  f.r.run_for(10min);
  CHECK(f.api.count("GET", kPath) == 0);
  CHECK(f.api.count("POST", kPath) == 0);
}

TEST_CASE("the lease of a node names it as holder and as owner") {
  Fixture f;
  f.lease.set_owner("uid-1");
  f.r.settle();
  const auto& lease = f.api.lease("burst");
  CHECK(lease["spec"]["holderIdentity"] == "burst");
  CHECK(lease["spec"]["leaseDurationSeconds"] == 40);
  CHECK(lease["spec"]["renewTime"] == "2026-11-29T00:00:00.000000Z");
  const auto& owner = lease["metadata"]["ownerReferences"][0];
  CHECK(owner["kind"] == "Node");
  CHECK(owner["apiVersion"] == "v1");
  CHECK(owner["name"] == "burst");
  CHECK(owner["uid"] == "uid-1");
}

TEST_CASE("a node's lease is renewed every ten seconds, a little jittered, with one request each") {
  Fixture f;
  f.lease.set_owner("uid-1");
  f.r.run_for(10min);
  const auto renewals = f.api.requests("PUT", kPath);
  CHECK(renewals.size() >= 58);
  CHECK(renewals.size() <= 62);
  for (size_t i = 1; i < renewals.size(); ++i) {
    CHECK(renewals[i].at - renewals[i - 1].at >= 9600ms);
    CHECK(renewals[i].at - renewals[i - 1].at <= 10400ms);
  }
  CHECK(f.api.count("GET", kPath) == 1);
}

TEST_CASE("the owner of the lease follows a node that was created again, at once") {
  Fixture f;
  f.lease.set_owner("uid-1");
  f.r.run_for(3s);
  f.lease.set_owner("uid-2");
  f.r.settle();
  CHECK(f.api.lease("burst")["metadata"]["ownerReferences"].size() == 1);
  CHECK(f.api.lease("burst")["metadata"]["ownerReferences"][0]["uid"] == "uid-2");
}

TEST_CASE("the lease of an earlier run is taken over") {
  Fixture f;
  f.lease.set_owner("uid-1");
  f.r.settle();
  base::SeededRandom random(9);
  base::Metrics metrics;
  NodeLease next("burst", f.api, f.r.timers, random, metrics);
  async::TaskGroup group(f.r.ctx.get_executor());
  next.set_owner("uid-2");
  group.spawn(next.run());
  f.r.settle();
  CHECK(f.api.lease("burst")["metadata"]["ownerReferences"][0]["uid"] == "uid-2");
  CHECK(f.api.count("POST", kPath) == 1);
  f.r.run(group.stop());
}

TEST_CASE("a jump of the wall clock is answered by a renewal at once") {
  for (const auto jump : {base::Duration(24h), base::Duration(-24h), base::Duration(6s)}) {
    Fixture f;
    f.lease.set_owner("uid-1");
    f.r.run_for(1s);
    f.api.forget_requests();
    f.r.timers.jump_wall(jump);
    f.r.run_for(2s);
    CHECK(f.api.count("PUT", kPath) == 1);
    f.r.run_for(8s);
    CHECK(f.api.count("PUT", kPath) == 1);
  }
}

TEST_CASE("a clock that is only adjusted a little changes nothing") {
  Fixture f;
  f.lease.set_owner("uid-1");
  f.r.run_for(1s);
  f.api.forget_requests();
  f.r.timers.jump_wall(4s);
  f.r.run_for(4s);
  CHECK(f.api.count("PUT", kPath) == 0);
}

TEST_CASE("failed renewals are repeated so soon that the node controller notices nothing") {
  struct Row {
    const char* verb;
    ErrorKind kind;
    bool performed;
  };
  const Row rows[] = {{"PUT", ErrorKind::kUnavailable, false},
                      {"PUT", ErrorKind::kConflict, false},
                      {"PUT", ErrorKind::kUnknownOutcome, true},
                      {"PUT", ErrorKind::kNotFound, false},
                      {"PUT", ErrorKind::kPermission, false}};
  for (const Row& row : rows) {
    INFO(base::to_string(row.kind));
    Fixture f;
    f.lease.set_owner("uid-1");
    f.r.run_for(1s);
    f.fail(row.verb, 3, row.kind, row.performed);
    const std::string before = f.api.lease("burst")["spec"]["renewTime"];
    CHECK(f.r.run_until(
        [&] { return f.api.lease("burst")["spec"]["renewTime"] != before && f.api.faults[0].times == 0; }, 14s));
  }
}

TEST_CASE("a lease that was deleted is created again, with its owner") {
  Fixture f;
  f.lease.set_owner("uid-1");
  f.r.run_for(1s);
  f.api.delete_lease("burst");
  f.r.run_for(11s);
  REQUIRE(f.api.has_lease("burst"));
  CHECK(f.api.lease("burst")["metadata"]["ownerReferences"][0]["uid"] == "uid-1");
}

TEST_CASE("a server that asks to wait is not asked again before") {
  Fixture f;
  base::Error error(ErrorKind::kRateLimited, "slow down");
  error.retry_after = 6s;
  f.api.faults.push_back({"POST", kPath, error, 1});
  f.lease.set_owner("uid-1");
  f.r.run_for(5s);
  CHECK(f.api.count("POST", kPath) == 1);
  f.r.run_for(2s);
  CHECK(f.api.count("POST", kPath) == 2);
}
