// Checks of the daemon itself: its rights, its clock, its leases and certificates, and its providers.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "vk-provider/core/doctor.hpp"

namespace spillway::core {
namespace {

using std::chrono::seconds;

// A Date header and a Lease are exact to a second or so.
constexpr base::Duration kSkewNoticed = seconds(3);
// A third of the installation's lease.
constexpr base::Duration kSkewHurts = seconds(10);
constexpr std::string_view kNodeUser = "system:node:";

std::string seconds_text(base::Duration d) { return std::to_string(std::chrono::round<seconds>(d).count()) + " s"; }

struct RightRow {
  std::string_view group, resource, verbs, ns, name;
};

/// In the ns and name of a row: the installation's namespace, and its Leases.
constexpr std::string_view kOwnNs = "<ns>";
constexpr std::string_view kOwnLease = "<lease>";
constexpr std::string_view kGateLease = "<gate>";

std::vector<Right> expand(std::span<const RightRow> rows, const std::string& installation, const std::string& ns) {
  std::vector<Right> out;
  for (const RightRow& row : rows) {
    Right right;
    right.group = row.group;
    right.resource = row.resource;
    right.ns = row.ns == kOwnNs ? ns : std::string(row.ns);
    right.name = row.name == kOwnLease    ? "spillway-" + installation
                 : row.name == kGateLease ? "spillway-gate-" + installation
                                          : std::string(row.name);
    for (std::string_view rest = row.verbs; !rest.empty();) {
      const std::size_t blank = std::min(rest.find(' '), rest.size());
      right.verb = rest.substr(0, blank);
      out.push_back(right);
      rest.remove_prefix(std::min(blank + 1, rest.size()));
    }
  }
  return out;
}

std::string right_text(const Right& right) {
  std::string out = "may not " + right.verb + " " + right.resource;
  if (!right.group.empty()) out += "." + right.group;
  if (!right.name.empty()) out += " " + right.name;
  return right.ns.empty() ? out : out + " in namespace " + right.ns;
}

}  // namespace

std::vector<Right> daemon_rights(const std::string& installation, const std::string& ns) {
  static constexpr std::array<RightRow, 19> kRows{{
      {"", "nodes", "create get list watch patch", "", ""},
      {"", "nodes/status", "patch", "", ""},
      {"", "pods", "get list watch delete", "", ""},
      {"", "pods/status", "patch", "", ""},
      {"", "pods/eviction", "create", "", ""},
      {"policy", "poddisruptionbudgets", "list watch", "", ""},
      {"", "events", "create patch", "", ""},
      {"", "configmaps", "get", "", ""},
      {"", "secrets", "get", "", ""},
      {"", "services", "get list", "", ""},
      {"", "serviceaccounts/token", "create", "", ""},
      {"authentication.k8s.io", "tokenreviews", "create", "", ""},
      {"authorization.k8s.io", "subjectaccessreviews", "create", "", ""},
      {"certificates.k8s.io", "certificatesigningrequests", "create get", "", ""},
      {"", "namespaces", "get", "", "kube-system"},
      {"coordination.k8s.io", "leases", "create get update", "kube-node-lease", ""},
      {"coordination.k8s.io", "leases", "create", kOwnNs, ""},
      {"coordination.k8s.io", "leases", "get update", kOwnNs, kOwnLease},
      {"", "configmaps", "create get list update delete", kOwnNs, ""},
  }};
  std::vector<Right> out = expand(kRows, installation, ns);
  static constexpr std::array<RightRow, 1> kGateRow{
      {{"coordination.k8s.io", "leases", "get update", kOwnNs, kGateLease}}};
  std::ranges::copy(expand(kGateRow, installation, ns), std::back_inserter(out));
  return out;
}

std::vector<Right> gate_rights(const std::string& installation, const std::string& ns) {
  static constexpr std::array<RightRow, 8> kRows{{
      {"", "nodes", "get list watch patch", "", ""},
      {"", "nodes/status", "patch", "", ""},
      {"", "pods", "list watch", "", ""},
      {"", "pods/eviction", "create", "", ""},
      {"policy", "poddisruptionbudgets", "list watch", "", ""},
      {"", "events", "create patch", "", ""},
      {"coordination.k8s.io", "leases", "create", kOwnNs, ""},
      {"coordination.k8s.io", "leases", "get update", kOwnNs, kGateLease},
  }};
  return expand(kRows, installation, ns);
}

std::vector<Right> surge_rights() {
  static constexpr std::array<RightRow, 1> kRows{{{"", "pods", "patch", "", ""}}};
  return expand(kRows, {}, {});
}

std::vector<Right> endpoint_rights() {
  static constexpr std::array<RightRow, 2> kRows{{
      {"", "services", "list watch", "", ""},
      {"discovery.k8s.io", "endpointslices", "get list watch create patch delete", "", ""},
  }};
  return expand(kRows, {}, {});
}

DoctorReport check_rights(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kRights);
  if (!out.has(facts.rights)) return out;
  for (const SeenRight& seen : *facts.rights) {
    if (!seen.allowed) out.fail(seen.account, right_text(seen.right));
  }
  out.note = std::to_string(facts.rights->size()) + " rights asked for";
  return out;
}

DoctorReport check_gate_identity(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kGateIdentity);
  if (!facts.gated) {
    out.skip("gate.enabled is false");
    return out;
  }
  if (facts.account.starts_with(kNodeUser)) out.fail(facts.account, "is a node: it may not write taints");
  if (!out.has(facts.caller)) return out;
  if (facts.caller->starts_with(kNodeUser) && *facts.caller != facts.account) {
    out.warn(*facts.caller, "this kubeconfig is a node's: a daemon that uses it could not write taints");
  }
  return out;
}

DoctorReport check_leases(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kLeases);
  if (!out.has(facts.leases)) return out;
  for (const SeenLease& lease : *facts.leases) {
    if (!lease.exists) {
      out.fail(lease.object, "there is none: " + lease.purpose + " was never started here");
    } else if (lease.holder.empty()) {
      out.fail(lease.object, "nobody holds it: " + lease.purpose + " has ended");
    } else if (!lease.age) {
      out.fail(lease.object, "was never renewed by " + lease.holder);
    } else if (*lease.age > lease.duration) {
      out.fail(lease.object, lease.purpose + " is not at work: " + lease.holder + " renewed it " +
                                 seconds_text(*lease.age) + " ago, for " + seconds_text(lease.duration));
    }
    if (lease.holder.empty() || !lease.age) continue;
    if (!out.note.empty()) out.note += "; ";
    out.note += lease.purpose + ": " + lease.holder + ", " + seconds_text(*lease.age) + " ago";
  }
  return out;
}

DoctorReport check_clock(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kClock);
  const auto judge = [&out](const std::string& whose, base::Duration ahead) {
    const base::Duration apart = ahead < base::Duration() ? -ahead : ahead;
    if (apart <= kSkewNoticed) return;
    const char* const way = ahead < base::Duration() ? " behind" : " ahead of";
    std::string what = "is " + seconds_text(apart) + way + " the API server's";
    if (apart > kSkewHurts) {
      out.fail(whose, std::move(what));
    } else {
      out.warn(whose, std::move(what));
    }
  };
  if (!out.has(facts.clock_ahead)) return out;
  judge("the clock of this machine", *facts.clock_ahead);
  // A renewal of the past may be old; one of the future cannot be.
  if (!facts.leases) return out;
  for (const SeenLease& lease : *facts.leases) {
    if (lease.age && *lease.age < base::Duration()) judge("the clock of " + lease.holder, -*lease.age);
  }
  return out;
}

DoctorReport check_certificates(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kCertificates);
  if (!facts.wants_certificate) {
    out.skip("kubeletApi does not ask for a certificate (certificate.source is not csr)");
    return out;
  }
  if (!out.has(facts.signings)) return out;
  const auto newest = std::ranges::max_element(*facts.signings, {}, &SeenSigning::created);
  // Requests are forgotten an hour after their answer: none means that the latest was answered.
  if (newest == facts.signings->end()) {
    out.note = "no request is waiting";
  } else if (!newest->refused.empty()) {
    out.fail("CertificateSigningRequest " + newest->name, "was refused: " + newest->refused);
  } else if (!newest->approved) {
    out.warn("CertificateSigningRequest " + newest->name, "nobody has approved it");
  } else if (!newest->issued) {
    out.warn("CertificateSigningRequest " + newest->name, "is approved, but its signer has not signed it");
  }
  return out;
}

DoctorReport check_providers(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kProviders);
  for (const SeenProvider& provider : facts.providers) {
    if (!provider.error) {
      if (!out.note.empty()) out.note += "; ";
      out.note += provider.name + ": " + std::to_string(provider.offers) + " offers";
      continue;
    }
    const base::ErrorKind kind = provider.error->kind;
    if (kind == base::ErrorKind::kQuota) continue;  // it has answered; see check_provider_quota
    const bool refused = kind == base::ErrorKind::kUnauthenticated || kind == base::ErrorKind::kPermission;
    out.fail("provider " + provider.name,
             (refused ? "does not accept our credentials: " : "cannot be asked: ") + provider.error->message);
  }
  return out;
}

DoctorReport check_provider_quota(const DoctorFacts& facts) {
  DoctorReport out(DoctorCheck::kProviderQuota);
  for (const SeenProvider& provider : facts.providers) {
    if (!provider.error || provider.error->kind != base::ErrorKind::kQuota) continue;
    out.fail("provider " + provider.name, "says that our account is full: " + provider.error->message);
  }
  if (!out.has(facts.refusals)) return out;
  for (const SeenRefusal& refusal : *facts.refusals) out.warn("Pod " + refusal.pod, refusal.message);
  out.note = "by refusals of the last hour: no provider tells its quota beforehand";
  return out;
}

}  // namespace spillway::core
