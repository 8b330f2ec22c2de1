#include "vk-provider/core/container_order.hpp"

#include <algorithm>

namespace spillway::core {
namespace {

using model::ContainerRecord;
using model::ContainerRole;
using model::ContainerState;

size_t init_count(const model::PodRecord& record) {
  return std::min(init_containers(*record.spec).size(), record.containers.size());
}

bool any_main(const model::PodRecord& record, bool (*is_so)(const ContainerRecord&)) {
  return std::any_of(record.containers.begin() + static_cast<std::ptrdiff_t>(init_count(record)),
                     record.containers.end(), is_so);
}

bool can_start_first(const model::PodRecord& record, size_t index) {
  const ContainerRecord& c = record.containers[index];
  return c.claim.state == ContainerState::kWaiting && c.claim.created && !c.start_under_way && !c.restart_at &&
         !starts_itself(*record.spec, index);
}

bool init_failed(const model::PodRecord& record) {
  for (size_t i = 0; i < init_count(record); ++i) {
    const ContainerRecord& c = record.containers[i];
    if (role_of(*record.spec, i) == ContainerRole::kInit && ended_for_good(c) && c.claim.exit_code != 0) return true;
  }
  return false;
}

}  // namespace

const base::SharedList<model::ContainerSpec>& init_containers(const model::PodSpec& spec) {
  static const base::SharedList<model::ContainerSpec> none;
  return spec.extras ? spec.extras->init_containers : none;
}

const model::ContainerSpec& spec_of(const model::PodSpec& spec, size_t index) {
  const auto& inits = init_containers(spec);
  return index < inits.size() ? inits.at(index) : spec.containers.at(index - inits.size());
}

ContainerRole role_of(const model::PodSpec& spec, size_t index) {
  if (index >= init_containers(spec).size()) return ContainerRole::kMain;
  const bool sidecar = spec_of(spec, index).restart_policy == model::RestartPolicy::kAlways;
  return sidecar ? ContainerRole::kSidecar : ContainerRole::kInit;
}

const model::Instance* instance_of(const model::PodRecord& record) {
  if (const auto* booting = std::get_if<model::Booting>(&record.stage)) return &booting->instance;
  if (const auto* running = std::get_if<model::Running>(&record.stage)) return &running->instance;
  return nullptr;
}

const model::ContainerSpec* find_spec(const model::PodSpec& spec, const std::string& name) {
  for (size_t i = 0; i < init_containers(spec).size() + spec.containers.size(); ++i) {
    if (spec_of(spec, i).name == name) return &spec_of(spec, i);
  }
  return nullptr;
}

bool starts_itself(const model::PodSpec& spec, size_t index) {
  if (spec_of(spec, index).post_start) return false;
  return init_containers(spec).empty() || index == 0;
}

bool ever_ran(const ContainerRecord& c) {
  return c.claim.state != ContainerState::kWaiting || c.last_state || c.restarts > 0;
}

bool ended_for_good(const ContainerRecord& c) {
  return c.claim.state == ContainerState::kExited && !c.restart_at && !c.start_under_way;
}

bool is_started(const model::ContainerSpec& spec, const ContainerRecord& c) {
  return runs(c) && (!spec.startup_probe || c.started) &&
         (!spec.post_start || c.post_start == ContainerRecord::PostStart::kDone);
}

bool is_ready(const model::ContainerSpec& spec, const ContainerRecord& c) {
  return is_started(spec, c) && (!spec.readiness_probe || c.ready);
}

bool lets_pass(const model::PodRecord& record, size_t index) {
  const ContainerRecord& c = record.containers[index];
  if (role_of(*record.spec, index) == ContainerRole::kInit) return ended_for_good(c) && c.claim.exit_code == 0;
  if (is_started(spec_of(*record.spec, index), c)) return true;
  // A sidecar that fails later is restarted beside what came after it.
  return ever_ran(c) && std::any_of(record.containers.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                                    record.containers.end(), ever_ran);
}

bool is_initialized(const model::PodRecord& record) {
  if (init_containers(*record.spec).empty()) return true;
  if (record.containers.empty()) return false;
  if (any_main(record, ever_ran)) return true;
  for (size_t i = 0; i < init_count(record); ++i) {
    if (!lets_pass(record, i)) return false;
  }
  return true;
}

bool awaits_first_start(const model::PodRecord& record) {
  return any_main(record, [](const ContainerRecord& c) { return !ever_ran(c); });
}

std::vector<size_t> due_for_first_start(const model::PodRecord& record) {
  std::vector<size_t> due;
  if (!is_initialized(record)) {
    for (size_t i = 0; i < init_count(record); ++i) {
      if (lets_pass(record, i)) continue;
      if (can_start_first(record, i)) due.push_back(i);
      return due;
    }
  }
  for (size_t i = init_count(record); i < record.containers.size(); ++i) {
    if (can_start_first(record, i)) due.push_back(i);
  }
  return due;
}

bool is_being_started(const model::PodRecord& record, const std::string& container) {
  return std::ranges::any_of(record.containers,
                             [&](const auto& c) { return c.start_under_way && c.claim.name == container; });
}

bool work_is_over(const model::PodRecord& record) {
  if (record.containers.empty()) return false;
  if (!any_main(record, [](const ContainerRecord& c) { return !ended_for_good(c); })) return true;
  return !any_main(record, ever_ran) && init_failed(record);
}

bool is_moving(const model::PodRecord& record) {
  if (record.placeholder || record.containers.empty()) return false;
  const auto under_way = [](const ContainerRecord& c) { return c.start_under_way || c.stop; };
  if (std::ranges::any_of(record.containers, under_way)) return true;
  if (!is_initialized(record)) {
    return std::ranges::none_of(record.containers, [](const auto& c) { return c.restart_at.has_value(); });
  }
  return awaits_first_start(record);
}

}  // namespace spillway::core
