// The checks of `spillway doctor`: what in a cluster will hurt, why, and what to do.
//
// Pure: from facts to findings. Each check is one function; its words for people stand in doctor_text.cpp, and
// docs/doctor.md has a row for each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vk-provider/core/doctor_facts.hpp"

namespace spillway::core {

enum class DoctorCheck : std::uint8_t {
  // The daemon.
  kRights,
  kGateIdentity,
  kLeases,
  kClock,
  kCertificates,
  // The providers.
  kProviders,
  kProviderQuota,
  // The nodes.
  kZoneLabels,
  kDaemonSets,
  kKueueFlavors,
  kStateMetrics,
  // The descheduler.
  kPolicyFights,
  kPolicyNodes,
  kPolicyLocalStorage,
  kPolicyUnbounded,
  // The pods.
  kBudgetMissing,
  kBudgetBlocks,
  kBudgetOverlap,
  kGateTolerated,
  kShortToleration,
  kQuota,
  kGang,
  kTraining,
};

/// The stable word: `pdb-missing`.
std::string_view to_string(DoctorCheck check);
/// Why it matters, and how to mend it.
std::string_view why_of(DoctorCheck check);
std::string_view fix_of(DoctorCheck check);

enum class DoctorSeverity : std::uint8_t { kOk, kWarning, kError };
std::string_view to_string(DoctorSeverity severity);

struct DoctorFinding {
  DoctorFinding() = default;
  DoctorSeverity severity = DoctorSeverity::kWarning;
  std::string object;
  std::string what;
  bool operator==(const DoctorFinding&) const = default;
};

struct DoctorReport {
  enum class State : std::uint8_t {
    kRan,      // `findings` are all that there is to say
    kSkipped,  // there is nothing to check; `note` says why
    kNotRun,   // the facts could not be read; `note` says why. As bad as a warning
  };
  explicit DoctorReport(DoctorCheck c) : check(c) {}

  DoctorCheck check;
  State state = State::kRan;
  std::string note;
  std::vector<DoctorFinding> findings;

  DoctorSeverity severity() const;
  void warn(std::string object, std::string what) { add(DoctorSeverity::kWarning, std::move(object), std::move(what)); }
  void fail(std::string object, std::string what) { add(DoctorSeverity::kError, std::move(object), std::move(what)); }
  void skip(std::string why) {
    state = State::kSkipped;
    note = std::move(why);
  }
  /// False, and the check has not run, if that could not be read.
  template <class T>
  bool has(const base::Result<T>& facts) {
    if (facts) return true;
    state = State::kNotRun;
    note = facts.error().message;
    return false;
  }

 private:
  void add(DoctorSeverity severity, std::string object, std::string what);
};

/// All checks, in the order of the enum.
std::vector<DoctorReport> examine(const DoctorFacts& facts);
DoctorSeverity worst_of(const std::vector<DoctorReport>& reports);

/// What the daemon of an installation may do by config/deploy/rbac.yaml; and `spillway gate` by config/deploy/gate.
std::vector<Right> daemon_rights(const std::string& installation, const std::string& ns);
std::vector<Right> gate_rights(const std::string& installation, const std::string& ns);
/// What config/deploy/surge adds for whoever runs the gates, and config/deploy/endpoints for the daemon.
std::vector<Right> surge_rights();
std::vector<Right> endpoint_rights();

// The checks, by what they are about.
DoctorReport check_rights(const DoctorFacts& facts);
DoctorReport check_gate_identity(const DoctorFacts& facts);
DoctorReport check_leases(const DoctorFacts& facts);
DoctorReport check_clock(const DoctorFacts& facts);
DoctorReport check_certificates(const DoctorFacts& facts);
DoctorReport check_providers(const DoctorFacts& facts);
DoctorReport check_provider_quota(const DoctorFacts& facts);
DoctorReport check_zone_labels(const DoctorFacts& facts);
DoctorReport check_daemon_sets(const DoctorFacts& facts);
DoctorReport check_kueue_flavors(const DoctorFacts& facts);
DoctorReport check_state_metrics(const DoctorFacts& facts);
DoctorReport check_policy_fights(const DoctorFacts& facts);
DoctorReport check_policy_nodes(const DoctorFacts& facts);
DoctorReport check_policy_local_storage(const DoctorFacts& facts);
DoctorReport check_policy_unbounded(const DoctorFacts& facts);
DoctorReport check_budget_missing(const DoctorFacts& facts);
DoctorReport check_budget_blocks(const DoctorFacts& facts);
DoctorReport check_budget_overlap(const DoctorFacts& facts);
DoctorReport check_gate_tolerated(const DoctorFacts& facts);
DoctorReport check_short_toleration(const DoctorFacts& facts);
DoctorReport check_quota(const DoctorFacts& facts);
DoctorReport check_gang(const DoctorFacts& facts);
DoctorReport check_training(const DoctorFacts& facts);

}  // namespace spillway::core
