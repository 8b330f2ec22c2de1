// `spillway doctor`: reads a live cluster, judges it (core/doctor), and shows what is wrong, why, and how to mend it.
//
// Stands alone: it asks the API server with the rights of whoever calls it, and the providers by their listing of
// offers. Changes nothing. A list that may not be read makes its checks fail to run; that is shown, too.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/core/doctor.hpp"
#include "vk-provider/daemon/cli_output.hpp"
#include "vk-provider/daemon/cli_session.hpp"

namespace spillway::daemon {

/// Of this command alone: 0 all is well, 1 warnings, 2 bad input or no answer of the API server, 3 errors.
inline constexpr int kExitWarnings = 1;
inline constexpr int kExitErrors = 3;

/// Whom the daemon is to the API server.
struct DoctorAccount {
  DoctorAccount() = default;
  std::string ns;  // of a ServiceAccount; empty: `name` is a user
  std::string name;
};
/// NAMESPACE/NAME of a ServiceAccount, or the name of a user, which has a colon. kInvalid if it is neither.
base::Result<DoctorAccount> parse_account(const std::string& text);

/// What of the configuration and the command line the doctor needs.
struct DoctorOptions {
  DoctorOptions() = default;
  InstallationConfig installation;
  core::DoctorFacts known;     // its first part: what needs no reading
  bool gate_apart = false;     // gates run in `spillway gate`
  bool surges = false;         // one of them drains with mode surge
  bool leads_traffic = false;  // endpoints.mode is direct
  DoctorAccount account;
};

/// An account without a name is that of config/deploy, in the installation's namespace.
DoctorOptions doctor_options(const Config& config, DoctorAccount account, const std::string& training_class);

struct DoctorOutcome {
  DoctorOutcome() = default;
  int exit_code = kExitDone;
  std::string problem;  // the API server cannot be asked; then only providers were checked
  std::vector<core::DoctorReport> reports;
};

boost::asio::awaitable<DoctorOutcome> run_doctor(Surroundings in, DoctorOptions options);

std::string to_text(const DoctorOutcome& outcome, Output output);

}  // namespace spillway::daemon
