// All is well; nothing can be read; and the faults of the daemon and its providers.
#include "vk-provider/core/doctor.hpp"

#include <set>

#include "test/unit/core/doctor_cluster.hpp"

namespace base = spillway::base;
namespace core = spillway::core;
using namespace spillway::test::doctor;
using State = DoctorReport::State;

TEST_CASE("the doctor finds nothing where all is well, and every check has run") {
  const auto reports = core::examine(a_healthy_cluster());
  std::set<std::string_view> names;
  for (const DoctorReport& report : reports) {
    INFO(to_string(report.check) << " " << report.note);
    CHECK(report.state == State::kRan);
    CHECK(report.findings.empty());
    CHECK(static_cast<std::size_t>(report.check) == names.size());
    names.insert(to_string(report.check));
    CHECK_FALSE(why_of(report.check).empty());
    CHECK_FALSE(fix_of(report.check).empty());
  }
  CHECK(names.size() == static_cast<std::size_t>(DoctorCheck::kTraining) + 1);
  CHECK(core::worst_of(reports) == DoctorSeverity::kOk);
}

TEST_CASE("a list that could not be read is never a check that passed") {
  DoctorFacts facts = a_healthy_cluster();
  const auto refused = base::fail(base::ErrorKind::kPermission, "is forbidden");
  std::set<DoctorCheck> expected;
  SECTION("pods") {
    facts.pods = refused;
    facts.kube_state_metrics = refused;
    expected = {DoctorCheck::kStateMetrics,
                DoctorCheck::kPolicyLocalStorage,
                DoctorCheck::kBudgetMissing,
                DoctorCheck::kBudgetBlocks,
                DoctorCheck::kBudgetOverlap,
                DoctorCheck::kGateTolerated,
                DoctorCheck::kShortToleration,
                DoctorCheck::kQuota,
                DoctorCheck::kGang,
                DoctorCheck::kTraining};
  }
  SECTION("budgets") {
    facts.budgets = refused;
    expected = {DoctorCheck::kBudgetMissing, DoctorCheck::kBudgetBlocks, DoctorCheck::kBudgetOverlap};
  }
  SECTION("policies") {
    facts.policies = refused;
    expected = {DoctorCheck::kPolicyFights, DoctorCheck::kPolicyNodes, DoctorCheck::kPolicyLocalStorage,
                DoctorCheck::kPolicyUnbounded};
  }
  SECTION("nodes") {
    facts.nodes = refused;
    expected = {DoctorCheck::kZoneLabels, DoctorCheck::kPolicyNodes};
  }
  SECTION("daemon sets") {
    facts.daemon_sets = refused;
    expected = {DoctorCheck::kDaemonSets};
  }
  SECTION("quotas") {
    facts.quotas = refused;
    expected = {DoctorCheck::kQuota};
  }
  SECTION("flavors") {
    facts.flavors = core::Read<core::SeenFlavor>(refused);
    expected = {DoctorCheck::kKueueFlavors};
  }
  SECTION("the training class") {
    facts.training_priority = refused;
    expected = {DoctorCheck::kTraining};
  }
  SECTION("leases") {
    facts.leases = refused;
    expected = {DoctorCheck::kLeases};
  }
  SECTION("signing requests") {
    facts.signings = refused;
    expected = {DoctorCheck::kCertificates};
  }
  SECTION("rights") {
    facts.rights = refused;
    expected = {DoctorCheck::kRights};
  }
  SECTION("refusals") {
    facts.refusals = refused;
    expected = {DoctorCheck::kProviderQuota};
  }
  SECTION("the clock") {
    facts.clock_ahead = refused;
    expected = {DoctorCheck::kClock};
  }
  SECTION("the caller") {
    facts.caller = refused;
    expected = {DoctorCheck::kGateIdentity};
  }
  const auto reports = core::examine(facts);
  std::set<DoctorCheck> missing;
  for (const DoctorReport& report : reports) {
    CHECK(report.findings.empty());
    if (report.state != State::kNotRun) continue;
    missing.insert(report.check);
    CHECK(report.note == "is forbidden");
    CHECK(report.severity() == kWarning);
  }
  CHECK(missing == expected);
  CHECK(core::worst_of(reports) == kWarning);
}

TEST_CASE("what is not there to be checked is skipped, and says why") {
  DoctorFacts facts = a_healthy_cluster();
  facts.gated = facts.asks_metrics = facts.wants_certificate = false;
  facts.policies = core::Read<core::SeenPolicy>();
  facts.flavors.reset();
  facts.training_priority = std::optional<int>();
  const auto reports = core::examine(facts);
  int skipped = 0;
  for (const DoctorReport& report : reports) {
    if (report.state != State::kSkipped) continue;
    ++skipped;
    CHECK_FALSE(report.note.empty());
  }
  CHECK(skipped == 9);
  CHECK(report_of(reports, DoctorCheck::kTraining).note ==
        "there is no PriorityClass training; name yours with --training-class");
  CHECK(core::worst_of(reports) == DoctorSeverity::kOk);
}

TEST_CASE("the doctor finds a gate that is a node to the API server") {
  DoctorFacts facts = a_healthy_cluster();
  SECTION("by its account") {
    facts.account = "system:node:burst";
    check_finding(facts, DoctorCheck::kGateIdentity, kError, "system:node:burst", "is a node: it may not write taints");
  }
  SECTION("by the kubeconfig") {
    facts.caller = "system:node:burst";
    check_finding(facts, DoctorCheck::kGateIdentity, kWarning, "system:node:burst",
                  "this kubeconfig is a node's: a daemon that uses it could not write taints");
  }
}

TEST_CASE("the doctor finds a missing right") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenRight& seen = facts.rights->front();
  seen.allowed = false;
  std::string what = "may not create nodes";
  SECTION("of the cluster") {}
  SECTION("of a namespace and a name") {
    seen.right.group = "coordination.k8s.io";
    seen.right.resource = "leases";
    seen.right.verb = "update";
    seen.right.ns = "spillway-system";
    seen.right.name = "spillway-spillway";
    what = "may not update leases.coordination.k8s.io spillway-spillway in namespace spillway-system";
  }
  check_finding(facts, DoctorCheck::kRights, kError, "ServiceAccount spillway-system/spillway", what);
}

TEST_CASE("the doctor finds a certificate that nobody approved") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenSigning newest = facts.signings->front();
  newest.name = "spillway-spillway-y";
  newest.created = *newest.created + 1min;
  newest.issued = false;
  DoctorSeverity severity = kWarning;
  std::string what = "is approved, but its signer has not signed it";
  SECTION("not signed") {}
  SECTION("not approved") {
    newest.approved = false;
    what = "nobody has approved it";
  }
  SECTION("denied") {
    newest.refused = "Denied: no";
    severity = kError;
    what = "was refused: Denied: no";
  }
  facts.signings->insert(facts.signings->begin(), newest);
  check_finding(facts, DoctorCheck::kCertificates, severity, "CertificateSigningRequest spillway-spillway-y", what);
}

TEST_CASE("an old request of a daemon that has ended is no fault") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenSigning old = facts.signings->front();
  old.created = *old.created - 1h;
  old.approved = old.issued = false;
  facts.signings->push_back(old);
  CHECK(core::check_certificates(facts).findings.empty());
}

TEST_CASE("the doctor finds a lease that nobody renews, and says who holds the others") {
  DoctorFacts facts = a_healthy_cluster();
  CHECK(core::check_leases(facts).note ==
        "the daemon: host_1, 4 s ago; the gate: host_1, 4 s ago; node burst: host_1, 4 s ago");
  core::SeenLease& lease = facts.leases->front();
  std::string what;
  SECTION("expired") {
    lease.age = 31s;
    what = "the daemon is not at work: host_1 renewed it 31 s ago, for 30 s";
  }
  SECTION("given back") {
    lease.holder.clear();
    what = "nobody holds it: the daemon has ended";
  }
  SECTION("never there") {
    lease = core::SeenLease();
    lease.object = "Lease of the daemon";
    lease.purpose = "the daemon";
    what = "there is none: the daemon was never started here";
  }
  SECTION("never renewed") {
    lease.age.reset();
    what = "was never renewed by host_1";
  }
  check_finding(facts, DoctorCheck::kLeases, kError, "Lease of the daemon", what);
}

TEST_CASE("the doctor finds a clock that is wrong") {
  DoctorFacts facts = a_healthy_cluster();
  DoctorSeverity severity = kWarning;
  std::string whose = "the clock of this machine";
  std::string what;
  SECTION("ahead") {
    facts.clock_ahead = base::Duration(4s);
    what = "is 4 s ahead of the API server's";
  }
  SECTION("far behind") {
    facts.clock_ahead = base::Duration(-2min);
    severity = kError;
    what = "is 120 s behind the API server's";
  }
  SECTION("of whoever holds a lease") {
    facts.leases->front().age = -5s;
    whose = "the clock of host_1";
    what = "is 5 s ahead of the API server's";
  }
  check_finding(facts, DoctorCheck::kClock, severity, whose, what);
}

TEST_CASE("the doctor finds a provider that does not answer") {
  DoctorFacts facts = a_healthy_cluster();
  CHECK(core::check_providers(facts).note == "toy: 2 offers");
  DoctorCheck check = DoctorCheck::kProviders;
  std::string what;
  SECTION("unreachable") {
    facts.providers.front().error = base::Error(base::ErrorKind::kUnavailable, "no route");
    what = "cannot be asked: no route";
  }
  SECTION("with wrong credentials") {
    facts.providers.front().error = base::Error(base::ErrorKind::kUnauthenticated, "bad key");
    what = "does not accept our credentials: bad key";
  }
  SECTION("without a permission") {
    facts.providers.front().error = base::Error(base::ErrorKind::kPermission, "read only");
    what = "does not accept our credentials: read only";
  }
  SECTION("whose account is full") {
    facts.providers.front().error = base::Error(base::ErrorKind::kQuota, "8 of 8");
    check = DoctorCheck::kProviderQuota;
    what = "says that our account is full: 8 of 8";
  }
  check_finding(facts, check, kError, "provider toy", what);
}

TEST_CASE("the doctor finds that a provider has refused a pod for its quota") {
  DoctorFacts facts = a_healthy_cluster();
  core::SeenRefusal refusal;
  refusal.pod = "team/api-1";
  refusal.message = "the account has 8 of 8 GPUs";
  facts.refusals->push_back(refusal);
  check_finding(facts, DoctorCheck::kProviderQuota, kWarning, "Pod team/api-1", "the account has 8 of 8 GPUs");
}
