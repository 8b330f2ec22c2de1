// `spillway why POD`: where a pod stands, why its offer was chosen or what it waits for, and what stood next.
//
// Asks the API server, so that it works while the daemon is down; and, where it can be reached, the daemon's admin
// port, which alone knows what stands next now. Reads only.
#pragma once

#include <string>
#include <vector>

#include "vk-provider/daemon/cli_output.hpp"
#include "vk-provider/daemon/cli_session.hpp"
#include "vk-provider/model/pod_status.hpp"

namespace spillway::daemon {

struct WhyOptions {
  WhyOptions() = default;
  std::string ns;
  std::string pod;
  net::Endpoint admin;  // of the daemon
};

struct WhyReport {
  WhyReport() = default;
  struct Next {
    std::string provider;
    std::string offer;
    base::Money per_hour;
    base::Money index;
    std::string lost_by;
    std::string closed;  // why it cannot be asked, and until when; empty: it can
  };
  struct Event {
    std::string last_seen;
    std::string reason;
    std::string message;
    std::int64_t count = 1;
  };
  int exit_code = kExitDone;
  std::string problem;  // the pod cannot be read
  std::string ns;
  std::string name;
  std::string uid;
  std::string node;
  std::string stage;
  std::string waits_for;                        // empty: for nothing
  std::optional<model::StateRecord> placement;  // as it stands on the pod
  std::string choice;                           // why that offer, in one line
  std::vector<Event> events;                    // the oldest first
  std::string events_problem;                   // they cannot be read
  std::string daemon_problem;                   // its admin port does not answer, or does not know the pod
  std::string daemon_json;                      // /debug/placement/<uid>; empty without an answer
  std::vector<Next> next;
  std::vector<std::string> changes;  // what would change it
};

boost::asio::awaitable<WhyReport> find_why(Surroundings in, WhyOptions options);

std::string to_text(const WhyReport& report, Output output);

}  // namespace spillway::daemon
