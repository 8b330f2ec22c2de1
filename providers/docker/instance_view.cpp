#include "providers/docker/instance_view.hpp"

#include <algorithm>
#include <charconv>

namespace spillway::providers::docker {
namespace {

using model::ContainerState;
using model::InstanceContainer;
using model::InstanceState;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

bool is_dead(const ContainerEntry& sandbox) { return sandbox.state == "exited" || sandbox.state == "dead"; }

const ContainerEntry* find_container(const InstanceGroup& group, const std::string& name) {
  const auto it = std::find_if(group.containers.begin(), group.containers.end(), [&](const ContainerEntry* entry) {
    return label(entry->labels, kLabelContainer) == name;
  });
  return it == group.containers.end() ? nullptr : *it;
}

bool has_ended(const ContainerFacts& facts) { return !facts.running() && !facts.never_started(); }

bool is_active(const ContainerEntry& entry) {
  return entry.state == "running" || entry.state == "paused" || entry.state == "restarting";
}

/// Empty: it has not ended, or is not known to have.
std::optional<int> exit_code(const InstanceGroup& group, const FactsMap& facts, const std::string& name) {
  const ContainerEntry* const entry = find_container(group, name);
  if (entry == nullptr) return std::nullopt;
  const auto it = facts.find(entry->id);
  // Facts of a container that was started again since are of no use.
  if (it == facts.end() || it->second.state != entry->state || !has_ended(it->second)) return std::nullopt;
  return it->second.exit_code;
}

int order_of(const ContainerEntry& entry) {
  const std::string& text = label(entry.labels, kLabelOrder);
  int order = 0;
  std::from_chars(text.data(), text.data() + text.size(), order);
  return order;
}

/// Before its first start. `reason` is a kubelet's word for one that nothing is wrong with.
InstanceContainer to_waiting(const std::string& name, std::string_view reason, const Progress* progress) {
  InstanceContainer out;
  out.name = name;
  out.reason = reason;
  if (progress == nullptr) return out;
  const auto failure = progress->failures.find(name);
  if (failure != progress->failures.end()) {
    out.reason = failure->second.reason;
    out.message = failure->second.message;
  }
  return out;
}

InstanceContainer to_container(const ViewContext& context, InstanceContainer out, const ContainerEntry* entry,
                               const ContainerFacts* facts, const Progress* progress) {
  if (entry == nullptr) return out;
  out.container_id = context.container_scheme + "://" + entry->id;
  out.image_id = entry->image_id;
  if (facts == nullptr || facts->never_started()) {
    // While a bring-up is at work it may be the one to start it.
    out.created = facts != nullptr && (progress == nullptr || !progress->active);
    return out;
  }
  out.reason.clear();
  out.message = facts->error;
  out.started_at = facts->started_at;
  if (facts->running()) {
    out.state = ContainerState::kRunning;
    out.message.clear();
    return out;
  }
  out.state = ContainerState::kExited;
  out.exit_code = facts->exit_code;
  out.oom_killed = facts->oom_killed;
  out.finished_at = facts->finished_at;
  out.termination_message = facts->termination_message;
  if (facts->start_failed()) out.reason = "ContainerCannotRun";
  return out;
}

void set_state(model::Instance& instance, InstanceState state, std::string message) {
  instance.state = state;
  instance.message = std::move(message);
}

/// A container that existed before the listing was asked for and is not in it: somebody removed it.
std::string removed_container(const InstanceGroup& group, const std::vector<ExpectedContainer>& expected,
                              const Progress* progress, base::TimePoint listed_at) {
  if (progress == nullptr) return "";
  for (const auto& [name, part] : expected) {
    const auto seen = progress->seen.find(name);
    if (seen == progress->seen.end() || seen->second > listed_at) continue;
    if (find_container(group, name) == nullptr) return name;
  }
  return "";
}

void decide_state(model::Instance& instance, const InstanceGroup& group, const FactsMap& facts,
                  const Progress* progress, const std::vector<ExpectedContainer>& expected, base::TimePoint listed_at) {
  const auto in_state = [&](ContainerState state) {
    return std::count_if(instance.containers.begin(), instance.containers.end(),
                         [state](const InstanceContainer& c) { return c.state == state; });
  };
  const auto exited = in_state(ContainerState::kExited);
  const bool all_exited = !instance.containers.empty() && exited == std::ssize(instance.containers);
  if (progress != nullptr && progress->ending) return set_state(instance, InstanceState::kTerminating, "");
  if (has_ended_for_good(group, facts)) return set_state(instance, InstanceState::kExited, "");
  if (group.sandbox == nullptr) {
    return set_state(instance, InstanceState::kFailed, "the sandbox was removed from the engine");
  }
  if (is_dead(*group.sandbox)) {
    return set_state(instance, InstanceState::kFailed,
                     "the sandbox ended (" + group.sandbox->status + "), and with it the network of its containers");
  }
  const std::string removed = removed_container(group, expected, progress, listed_at);
  if (!removed.empty()) {
    return set_state(instance, InstanceState::kFailed, "container " + removed + " was removed from the engine");
  }
  if (all_exited) return set_state(instance, InstanceState::kExited, "");
  if (exited > 0 || in_state(ContainerState::kRunning) > 0) return set_state(instance, InstanceState::kRunning, "");
  if (progress != nullptr && !progress->failures.empty() && !progress->active) {
    const StartFailure& failure = progress->failures.begin()->second;
    instance.image_error = failure.image_error;
    // The text about an image says it all; the others need the reason before it.
    return set_state(instance, InstanceState::kFailed,
                     failure.image_error ? failure.message : failure.reason + ": " + failure.message);
  }
  set_state(instance, InstanceState::kPending, progress == nullptr ? "" : progress->activity);
}

}  // namespace

InstanceGroups group_by_tag(const std::vector<ContainerEntry>& entries) {
  InstanceGroups groups;
  for (const ContainerEntry& entry : entries) {
    const std::string& tag = label(entry.labels, kLabelTag);
    if (tag.empty()) continue;
    InstanceGroup& group = groups[tag];
    const std::string& role = label(entry.labels, kLabelRole);
    if (role == kRoleSandbox) {
      group.sandbox = &entry;
    } else if (role == kRoleVolumes) {
      group.keeper = &entry;
    } else {
      group.containers.push_back(&entry);
    }
  }
  return groups;
}

std::vector<ExpectedContainer> expected_containers(const InstanceGroup& group) {
  std::vector<ExpectedContainer> expected;
  const auto expect = [&expected](std::string name, std::string_view part) {
    ExpectedContainer& container = expected.emplace_back();
    container.name = std::move(name);
    container.part = from_part_label(part);
  };
  if (group.sandbox != nullptr) {
    const std::vector<std::string> parts = split(label(group.sandbox->labels, kLabelParts));
    size_t index = 0;
    for (std::string& name : split(label(group.sandbox->labels, kLabelContainers))) {
      expect(std::move(name), index < parts.size() ? parts[index] : "");
      ++index;
    }
    return expected;
  }
  std::vector<const ContainerEntry*> entries = group.containers;
  std::sort(entries.begin(), entries.end(), [](const ContainerEntry* a, const ContainerEntry* b) {
    return std::pair(order_of(*a), a->id) < std::pair(order_of(*b), b->id);
  });
  for (const ContainerEntry* const entry : entries) {
    expect(label(entry->labels, kLabelContainer), label(entry->labels, kLabelPart));
  }
  return expected;
}

std::vector<std::vector<const ContainerEntry*>> stop_order(const InstanceGroup& group) {
  std::vector<const ContainerEntry*> first;
  std::vector<const ContainerEntry*> sidecars;
  for (const ContainerEntry* const entry : group.containers) {
    if (!is_active(*entry)) continue;
    const bool last = from_part_label(label(entry->labels, kLabelPart)) == model::ContainerRole::kSidecar;
    (last ? sidecars : first).push_back(entry);
  }
  std::sort(sidecars.begin(), sidecars.end(),
            [](const ContainerEntry* a, const ContainerEntry* b) { return order_of(*a) > order_of(*b); });
  std::vector<std::vector<const ContainerEntry*>> batches;
  if (!first.empty()) batches.push_back(std::move(first));
  for (const ContainerEntry* const sidecar : sidecars) batches.push_back({sidecar});
  return batches;
}

bool has_ended_for_good(const InstanceGroup& group, const FactsMap& facts) {
  if (group.sandbox == nullptr) return false;
  const std::string& policy = label(group.sandbox->labels, kLabelRestartPolicy);
  if (policy != "Never" && policy != "OnFailure") return false;
  if (std::any_of(group.containers.begin(), group.containers.end(), [](const auto* e) { return is_active(*e); })) {
    return false;
  }
  const std::vector<ExpectedContainer> expected = expected_containers(group);
  const bool init_failed = std::any_of(expected.begin(), expected.end(), [&](const ExpectedContainer& c) {
    return c.part == model::ContainerRole::kInit && exit_code(group, facts, c.name).value_or(0) != 0;
  });
  if (init_failed) return policy == "Never";
  return std::all_of(expected.begin(), expected.end(), [&](const ExpectedContainer& c) {
    if (c.part != model::ContainerRole::kMain) return true;
    const auto code = exit_code(group, facts, c.name);
    return code && (policy == "Never" || *code == 0);
  });
}

model::Instance to_instance(const ViewContext& context, const std::string& tag, const InstanceGroup& group,
                            const FactsMap& facts, const Progress* progress) {
  model::Instance instance;
  instance.ref = model::InstanceRef(context.provider, to_instance_id(context.host, tag));
  instance.tag = base::InstanceTag(tag);
  const std::vector<ExpectedContainer> expected = expected_containers(group);
  const bool initializes = std::any_of(expected.begin(), expected.end(), [](const ExpectedContainer& c) {
    return c.part != model::ContainerRole::kMain;
  });
  for (const auto& [name, part] : expected) {
    const ContainerEntry* const entry = find_container(group, name);
    const auto it = entry == nullptr ? facts.end() : facts.find(entry->id);
    instance.containers.push_back(
        to_container(context, to_waiting(name, initializes ? "PodInitializing" : "ContainerCreating", progress), entry,
                     it == facts.end() ? nullptr : &it->second, progress));
  }
  if (group.sandbox != nullptr) {
    instance.created_at = group.sandbox->created;
    instance.billing.from = group.sandbox->created;
    instance.ports = group.sandbox->ports;
    const std::string& price = label(group.sandbox->labels, kLabelPrice);
    std::int64_t micros = 0;
    const auto [end, error] = std::from_chars(price.data(), price.data() + price.size(), micros);
    if (!price.empty() && error == std::errc{} && end == price.data() + price.size()) {
      instance.price_per_hour = base::Money::from_micros(micros);
    }
  }
  if (progress != nullptr) instance.evicted = progress->broken_limit;
  decide_state(instance, group, facts, progress, expected, context.listed_at);
  return instance;
}

base::InstanceId to_instance_id(const std::string& host, const std::string& tag) {
  return base::InstanceId(host + "/" + tag);
}

std::optional<ParsedInstanceId> from_instance_id(const base::InstanceId& id) {
  const size_t slash = id.str().find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == id.str().size()) return std::nullopt;
  ParsedInstanceId parsed;
  parsed.host = id.str().substr(0, slash);
  parsed.tag = id.str().substr(slash + 1);
  return parsed;
}

}  // namespace spillway::providers::docker
