#include "vk-provider/core/doctor.hpp"

#include <algorithm>

namespace spillway::core {

DoctorFacts::DoctorFacts()
    : caller(base::fail(base::ErrorKind::kInternal, "was not read")),
      kube_state_metrics(base::fail(base::ErrorKind::kInternal, "was not read")),
      training_priority(std::optional<int>()),
      clock_ahead(base::fail(base::ErrorKind::kInternal, "was not read")) {}

void DoctorReport::add(DoctorSeverity severity, std::string object, std::string what) {
  DoctorFinding& finding = findings.emplace_back();
  finding.severity = severity;
  finding.object = std::move(object);
  finding.what = std::move(what);
}

DoctorSeverity DoctorReport::severity() const {
  DoctorSeverity worst = state == State::kNotRun ? DoctorSeverity::kWarning : DoctorSeverity::kOk;
  for (const DoctorFinding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

std::vector<DoctorReport> examine(const DoctorFacts& facts) {
  return {check_rights(facts),
          check_gate_identity(facts),
          check_leases(facts),
          check_clock(facts),
          check_certificates(facts),
          check_providers(facts),
          check_provider_quota(facts),
          check_zone_labels(facts),
          check_daemon_sets(facts),
          check_kueue_flavors(facts),
          check_state_metrics(facts),
          check_policy_fights(facts),
          check_policy_nodes(facts),
          check_policy_local_storage(facts),
          check_policy_unbounded(facts),
          check_budget_missing(facts),
          check_budget_blocks(facts),
          check_budget_overlap(facts),
          check_gate_tolerated(facts),
          check_short_toleration(facts),
          check_quota(facts),
          check_gang(facts),
          check_training(facts)};
}

DoctorSeverity worst_of(const std::vector<DoctorReport>& reports) {
  DoctorSeverity worst = DoctorSeverity::kOk;
  for (const DoctorReport& report : reports) worst = std::max(worst, report.severity());
  return worst;
}

}  // namespace spillway::core
