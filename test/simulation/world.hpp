// One run: an API server, clouds, users and daemons in virtual time, from a plan to a verdict.
//
// Made for one plan and thrown away. One thread. The parts know one another through it; what must hold is in rules.hpp,
// what happens when is in the plan.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

#include "test/simulation/agenda.hpp"
#include "test/simulation/api_site.hpp"
#include "test/simulation/cloud_site.hpp"
#include "test/simulation/coverage.hpp"
#include "test/simulation/exchange.hpp"
#include "test/simulation/facts.hpp"
#include "test/simulation/machine.hpp"
#include "test/simulation/mutants.hpp"
#include "test/simulation/plan.hpp"
#include "test/simulation/rules.hpp"
#include "test/simulation/trace.hpp"
#include "test/simulation/users.hpp"
#include "vk-provider/daemon/config.hpp"

namespace spillway::simulation {

struct Options {
  Options() = default;
  const Mutant* mutant = nullptr;  // null: the product as it is
  bool print = false;
};

struct Outcome {
  std::optional<Violation> violation;
  std::uint64_t lives = 0;  // pods that were made
  std::uint64_t trace_hash = 0;
  base::Duration virtual_time{0};
  Coverage coverage;
};

class World {
 public:
  World(Plan plan, Options options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Outcome run();

  const Plan& plan() const { return plan_; }
  Agenda& agenda() { return agenda_; }
  boost::asio::execution_context& context() { return context_; }
  /// Runs what Asio keeps in the context.
  void poll_context();
  const daemon::Config& config() const { return config_; }
  ApiSite& api() { return api_; }
  Users& users() { return users_; }
  Facts& facts() { return facts_; }
  Coverage& coverage() { return coverage_; }
  Trace& trace() { return trace_; }
  CloudSite& cloud(const std::string& name);
  CloudSite& cloud(std::int64_t index) { return clouds_.at(static_cast<size_t>(index) % clouds_.size()); }

  // Daemons. `which` counts those that run; there may be none.
  void start_daemon();
  void kill_daemon(std::int64_t which, int handlers, base::Duration restart);
  void stop_daemon(std::int64_t which, base::Duration restart);
  /// Told to stop, and killed after so many more handlers unless it has ended by then.
  void kill_stopping_daemon(std::int64_t which, int handlers, base::Duration restart);
  void freeze_daemon(std::int64_t which, base::Duration how_long);
  void jump_clock(std::int64_t which, base::Duration by);

  // What links do.
  void deliver(Machine& from, kube::KubeRequest request, std::shared_ptr<Exchange<kube::KubeResponse>> exchange);
  providers::fake::Reply<model::Instance> buy(const std::string& buyer, CloudSite& site,
                                              const providers::fake::CreateRequest& request);
  void touch(CloudSite& site, const std::string& id, std::string_view call);
  void count_call(Machine& from, CloudSite& site, providers::fake::Call call);

  // Where a planted bug comes between the daemon and the world.
  std::unique_ptr<kube::KubeApi> wrap(std::unique_ptr<kube::KubeApi> api);
  std::unique_ptr<provider::Provider> wrap(std::unique_ptr<provider::Provider> provider);

 private:
  Machine* running(std::int64_t which);
  Machine* pick();
  /// Runs what is ready, then moves to the next entry of the agenda; false at the limit, or if a rule is broken.
  bool turn(base::TimePoint limit);
  void run_until(base::TimePoint limit);
  template <class Calm>
  void run_until_calm(base::Duration limit, std::string_view what, Calm calm);
  void look();
  void make_peace();
  void finish();
  std::string audit();

  void arrive(Machine& from, const ApiFate& fate, const kube::KubeRequest& request,
              const std::shared_ptr<Exchange<kube::KubeResponse>>& exchange);
  base::Result<kube::KubeResponse> apply(Machine& from, const kube::KubeRequest& request);
  void note_lease(const kube::KubeRequest& request);
  void note_write(const PodWrite& write);
  void note_owner(const PodWrite& write);
  void check_burn();
  void seen(CloudSite& site, const providers::fake::Sight& sight);
  void violate(std::string_view rule, std::string what);

  Plan plan_;
  Options options_;
  Agenda agenda_;
  boost::asio::io_context context_;
  Coverage coverage_;
  Trace trace_;
  daemon::Config config_;
  Facts facts_;
  Host server_;
  ApiSite api_;
  Users users_;
  std::deque<CloudSite> clouds_;
  std::deque<Machine> machines_;
  Stream order_;
  Stream dice_;
  std::optional<Violation> violation_;
  bool prices_stand_ = false;
  bool closing_ = false;          // nobody starts a daemon any more
  std::set<std::string> harmed_;  // daemons that were killed or frozen
  std::string identity_;          // in the installation's lease
  std::string holder_;            // of it: the daemon's name
  std::string good_holder_;
  base::TimePoint good_since_{};
  std::map<std::string, base::TimePoint> node_leases_;
};

}  // namespace spillway::simulation
