// Private to the fake cloud's source files: a machine, its account, what is due when, and how a call is answered.
#pragma once

#include "providers/fake/fake_cloud.hpp"
#include "vk-provider/base/boxed.hpp"
#include "vk-provider/base/maybe_time.hpp"

namespace spillway::providers::fake {

/// When a run of a container began and ended.
struct PastRun {
  PastRun() = default;
  base::WallTime started_at;
  base::WallTime finished_at;
};

/// What a machine's own view does not say of a container.
struct ContainerLife {
  ContainerLife() = default;
  int runs = 0;  // how often it was started
  bool start_at_boot = true;
};

struct FakeCloud::Machine {
  Serial serial = 0;
  bool foreign = false;
  model::Instance view;  // what the cloud says of it, always current
  std::shared_ptr<const PodOrders> orders;
  base::SharedText image_error;
  base::TimePoint created;
  std::vector<ContainerLife> lives;             // by container
  base::Boxed<std::map<size_t, PastRun>> past;  // by container: the run before the latest one
  base::SharedText pod;
  std::vector<int> public_ports;
  base::MaybeTime<base::TimePoint> gone_at;
  base::MaybeTime<base::TimePoint> meter_since;
};

/// What is never forgotten of a machine: its part of the invoice and of the audit.
struct FakeCloud::Account {
  base::SharedText tag;
  base::SharedText offer;
  base::Money price_per_hour;
  std::chrono::seconds billed{0};
  base::WallTime created;
  std::optional<base::WallTime> gone;
  std::string_view ended_by;
  int terminate_calls = 0;
  bool foreign = false;
};

/// One thing that happens at its time. `run` makes the end of an earlier run of a container void.
struct FakeCloud::Todo {
  enum class What : std::uint8_t { kBoot, kContainerEnds, kContainerStops, kPreempt, kGone, kGhost };
  What what = What::kBoot;
  Serial serial = 0;
  size_t container = 0;
  int run = 0;
  int exit_code = 0;   // of a container that stops
  bool again = false;  // then it is started again
  std::shared_ptr<CreateRequest> ghost;
};

inline base::Error no_such_instance(const std::string& id) {
  return base::Error(base::ErrorKind::kNotFound, "the fake cloud has no instance " + id);
}

/// Loss, delay and errors are the same for every call.
template <class T, class Do>
Reply<T> answer(const Verdict& verdict, Do&& work) {
  Reply<T> reply;
  reply.delay = verdict.delay;
  if (verdict.error) {
    reply.result = base::fail(*verdict.error);
  } else if (verdict.lose_request) {
    reply.lost = true;
  } else {
    reply.result = std::forward<Do>(work)();
    reply.lost = verdict.lose_answer;
  }
  return reply;
}

/// Tells the observer, if there is one.
void tell(const CloudSettings& settings, const model::Instance& instance, bool foreign, Sight::What what,
          base::TimePoint at);

}  // namespace spillway::providers::fake
