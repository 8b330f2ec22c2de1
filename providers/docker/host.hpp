// One Docker Engine: what it has to offer, and the life of the instances on it.
//
// Owned by DockerProvider, which ends the background work before it dies; reactor thread only. The engine's containers
// and their labels are the truth; what is kept here is either about work under way in this process, or a translation
// that the engine's next listing confirms or contradicts (facts_).
//
//   host.cpp           looking: offers, listings, single instances
//   host_create.cpp    buying: the sandbox, under the lock that gives out GPUs
//   host_bring_up.cpp  in the background: images, containers
//   host_pull.cpp      in the background: the images of containers
//   host_volumes.cpp   volumes, files and termination messages
//   host_disk.cpp      in the background: what pods with a limit on disk space take
//   host_end.cpp       in the background: stop, remove; and start or stop of one container
//   host_exec.cpp      processes that join a container, and connections to ports
//   host_logs.cpp      what containers write
//   host_samples.cpp   what they use
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "providers/docker/client.hpp"
#include "providers/docker/config.hpp"
#include "providers/docker/exec_session.hpp"
#include "providers/docker/instance_view.hpp"
#include "providers/docker/run_book.hpp"
#include "vk-provider/async/semaphore.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::docker {

struct HostContext {
  HostContext() = default;
  boost::asio::any_io_executor executor;
  async::Timers* timers = nullptr;
  async::TaskGroup* background = nullptr;
  base::ProviderName provider;
  base::Duration pull_progress_timeout{};
  base::Duration disk_usage_every{};
  std::string container_scheme;
};

class Host {
 public:
  Host(HostConfig config, std::unique_ptr<net::HttpClient> http, HostContext context);

  const std::string& name() const { return config_.name; }

  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline);
  /// All offers as sold out: what is shown of a host that cannot be asked.
  std::vector<model::Offer> unavailable_offers() const;

  async::Task<std::vector<model::Instance>> list_owned(std::string tag_prefix, base::Deadline deadline);
  async::Task<model::Instance> get(std::string tag, base::Deadline deadline);
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod, base::Deadline deadline);
  async::Task<void> terminate(std::string tag, std::chrono::seconds grace, base::Deadline deadline);
  async::Task<void> control(std::string tag, std::string container, provider::ContainerAction action,
                            std::chrono::seconds grace, base::Deadline deadline);

  async::Task<provider::ExecSessionPtr> open_exec(std::string tag, provider::ExecOptions options,
                                                  base::Deadline deadline);
  async::Task<async::ByteStreamPtr> dial(std::string tag, int port, base::Deadline deadline);
  async::Task<async::ByteStreamPtr> open_logs(std::string tag, provider::LogOptions options, base::Deadline deadline);
  async::Task<std::vector<provider::Sample>> samples(base::Deadline deadline);
  async::Task<void> put_files(std::string tag, std::vector<model::ResolvedFile> files, base::Deadline deadline);

  /// Ends the pulls, so that the background work can be awaited.
  void cancel_pulls();

 private:
  /// What this process does for one instance.
  struct Work {
    Progress progress;
    // Bring-up.
    boost::asio::cancellation_signal cancel_pull;
    std::unique_ptr<async::Waiter> pause;     // between attempts; woken to end
    std::unique_ptr<async::Waiter> finished;  // woken when the bring-up has ended
    std::optional<base::TimePoint> finished_at;
    // Ending.
    base::TimePoint force_at;                // containers that still run then are killed
    std::unique_ptr<async::Waiter> changed;  // force_at moved, or a container stopped
    int stopping = 0;                        // containers whose stop is not answered yet
  };
  using WorkPtr = std::shared_ptr<Work>;

  struct Observed {
    Observed() = default;
    base::TimePoint asked_at{};
    std::vector<ContainerEntry> entries;
    FactsMap facts;
  };

  struct Sandbox {
    Sandbox() = default;
    std::string id;  // empty: it is gone, though containers with the tag exist
    std::string state;
    std::vector<int> gpus;
    bool existed = false;
  };

  /// GPUs that were promised to a create whose outcome is unknown.
  struct Reservation {
    std::vector<int> gpus;
    base::TimePoint until;
  };

  struct Holdings {
    std::set<int> gpus;
    bool gpus_known = true;  // false: a label cannot be read, so none can be given out
    int instances = 0;
  };

  // host.cpp
  async::Task<Observed> observe(std::string label, base::Deadline deadline);
  bool needs_inspection(const ContainerEntry& entry, std::optional<base::WallTime> engine_time) const;
  void remember(ContainerFacts facts);
  void forget_what_is_gone(const Observed& all);
  Holdings holdings(const InstanceGroups& groups);
  std::vector<model::Offer> offers(const std::optional<Holdings>& held) const;
  async::Task<ContainerFacts> look_at(ContainerEntry entry, base::Deadline deadline);
  model::Instance view(const std::string& tag, const InstanceGroup& group, const Observed& observed) const;
  WorkPtr work_of(const std::string& tag);

  // host_create.cpp
  async::Task<Sandbox> find_or_make_sandbox(InstancePlan plan, int gpu_count, base::Deadline deadline);
  async::Task<Sandbox> make_sandbox(InstancePlan plan, base::Deadline deadline);
  async::Task<Sandbox> look_up_sandbox(std::string tag, base::Result<Answer> answer, base::Deadline deadline);
  async::Task<void> start_sandbox(std::string id, base::Deadline deadline);
  async::Task<void> check_gpus(std::string tag, Sandbox sandbox, base::Deadline deadline);
  async::Task<void> remove_unused(std::string id, base::Deadline deadline);
  static Sandbox to_sandbox(const InstanceGroup& group);
  static bool overlap(const std::vector<int>& gpus, const Holdings& held);
  async::Task<void> ensure_sandbox_image(base::Deadline deadline);
  model::Instance fresh_instance(const InstancePlan& plan) const;

  // host_bring_up.cpp
  enum class Step { kDone, kFailed, kAgain };
  using PlanPtr = std::shared_ptr<const InstancePlan>;
  using Ids = std::vector<std::string>;  // of the plan's containers; empty: to be made
  void begin_bring_up(InstancePlan plan, std::string sandbox_id);
  async::Loop bring_up(WorkPtr work, PlanPtr plan, std::string sandbox_id);
  boost::asio::awaitable<Step> try_bring_up(WorkPtr work, PlanPtr plan, std::string sandbox_id);
  boost::asio::awaitable<Step> look(WorkPtr work, PlanPtr plan, std::shared_ptr<Ids> ids,
                                    std::shared_ptr<Ids> to_start);
  boost::asio::awaitable<Step> make_containers(WorkPtr work, PlanPtr plan, std::string sandbox_id,
                                               std::shared_ptr<Ids> ids, std::shared_ptr<Ids> to_start);
  boost::asio::awaitable<Step> make_container(WorkPtr work, PlanPtr plan, size_t index,
                                              std::shared_ptr<Surroundings> around, std::shared_ptr<Ids> ids);
  boost::asio::awaitable<Step> start_container(WorkPtr work, PlanPtr plan, size_t index, std::string id);

  // host_pull.cpp
  boost::asio::awaitable<Step> ensure_image(WorkPtr work, PlanPtr plan, size_t index);
  boost::asio::awaitable<PullResult> pull(WorkPtr work, PlanPtr plan, ImageReference image);
  boost::asio::awaitable<PullResult> pull_once(WorkPtr work, ImageReference image, base::Secret account);

  // host_volumes.cpp
  boost::asio::awaitable<Step> surround(WorkPtr work, PlanPtr plan, size_t missing,
                                        std::shared_ptr<Surroundings> around);
  boost::asio::awaitable<Step> check_user(WorkPtr work, PlanPtr plan, size_t index,
                                          std::shared_ptr<Surroundings> around);
  async::Task<std::string> termination_message(ContainerEntry entry, ContainerFacts facts, base::Deadline deadline);
  async::Task<void> turn_page(std::string tag, std::string container, ContainerFacts ended, base::Deadline deadline);
  async::Task<void> make_parts(std::string tag, ContainerFacts facts, base::Deadline deadline);
  async::Task<bool> has_volumes(std::string tag, base::Deadline deadline);
  boost::asio::awaitable<void> remove_left_volumes(std::string tag);

  // host_disk.cpp
  /// Begins a measurement if one is due; the listing is of all that is ours.
  void consider_disk(const Observed& all, const std::vector<VolumeEntry>& volumes);
  async::Loop measure_disk();

  // host_end.cpp
  async::Loop end_instance(WorkPtr work, std::string tag);
  boost::asio::awaitable<void> stop_in_order(WorkPtr work, InstanceGroup group);
  async::Loop stop_container(WorkPtr work, std::string id, std::chrono::seconds grace);
  async::Task<void> start_again(std::string tag, std::string container, ContainerFacts before, base::Deadline deadline);
  async::Loop stop_or_restart(std::string tag, std::string container, ContainerFacts facts,
                              provider::ContainerAction action, std::chrono::seconds grace);

  // host_exec.cpp
  async::Task<provider::ExecSessionPtr> attach(std::string tag, std::string name, provider::ExecOptions options,
                                               base::Deadline deadline);
  async::Task<provider::ExecSessionPtr> begin_session(DockerExecSession::Kind kind, std::string container,
                                                      std::string id, async::ByteStreamPtr stream, bool raw,
                                                      provider::ExecOptions options, base::Deadline deadline);
  async::Task<void> check_left(std::string container, std::vector<std::string> command, base::Deadline deadline);

  // host_logs.cpp
  async::Task<ContainerFacts> find_container(std::string tag, std::string container, base::Deadline deadline);
  base::Error waits_to_start(const std::string& tag, const std::string& container) const;
  async::Task<RunBook> runs_before(std::string tag, std::string container, ContainerFacts facts,
                                   base::Deadline deadline);
  async::Task<RunBook> read_run_book(std::string tag, std::string container, base::Deadline deadline);

  // host_samples.cpp
  async::Task<std::optional<provider::Sample>> measure(ContainerEntry entry, base::Deadline deadline);

  base::TimePoint in(base::Duration d) const { return context_.timers->now() + d; }

  HostConfig config_;
  HostContext context_;
  EngineClient client_;
  async::Semaphore purchases_;     // one create at a time decides about GPUs
  async::Semaphore measurements_;  // an engine looks into a machine's files for each
  bool sandbox_image_present_ = false;
  std::map<std::string, Reservation> reservations_;  // by tag
  std::map<std::string, WorkPtr> works_;             // by tag
  FactsMap facts_;
  /// Execs of repeated commands that nobody listens to any more, by container (its name) and command: an engine has no
  /// call that ends one.
  std::map<std::pair<std::string, std::vector<std::string>>, std::set<std::string>> left_execs_;
  bool measuring_ = false;                               // what everything takes on the disk
  base::TimePoint measure_at_{};                         // not before
  std::map<std::string, base::WallTime> failed_starts_;  // by container id: when we last tried in vain
};

/// The number of GPUs that an offer of this host stands for; empty if it is none of its offers.
std::optional<int> gpus_of_offer(const HostConfig& host, const base::OfferId& offer);
base::Money price_of(const HostConfig& host, int gpu_count);

}  // namespace spillway::providers::docker
