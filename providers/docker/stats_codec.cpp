#include "providers/docker/stats_codec.hpp"

#include <string>

#include <nlohmann/json.hpp>

namespace spillway::providers::docker {
namespace {

using nlohmann::json;

const json* find(const json* node, const char* key) {
  if (node == nullptr || !node->is_object()) return nullptr;
  const auto it = node->find(key);
  return it == node->end() ? nullptr : &*it;
}

std::optional<std::uint64_t> number(const json* node, const char* key) {
  const json* const value = find(node, key);
  if (value == nullptr || !value->is_number_unsigned()) return std::nullopt;
  return value->get<std::uint64_t>();
}

/// An engine that cannot measure something says 0, which nothing that runs uses.
std::optional<std::uint64_t> measured(const json* node, const char* key) {
  const auto value = number(node, key);
  return value == 0U ? std::nullopt : value;
}

std::optional<std::uint64_t> working_set(const json& stats) {
  const json* const memory = find(&stats, "memory_stats");
  const json* const details = find(memory, "stats");
  const auto usage = measured(memory, "usage");
  // Version 1 has both: `inactive_file` there is without the cgroups below.
  auto inactive = number(details, "total_inactive_file");
  if (!inactive) inactive = number(details, "inactive_file");
  if (!usage || !inactive || *inactive >= *usage) return std::nullopt;
  return *usage - *inactive;
}

}  // namespace

base::Result<ContainerStats> decode_stats(std::string_view body) {
  const json node = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!node.is_object()) {
    return base::fail(base::ErrorKind::kUnavailable, "the engine's answer is no description of a container's use");
  }
  ContainerStats stats;
  const json* const read = find(&node, "read");
  const auto read_at = read != nullptr && read->is_string() ? base::from_rfc3339(read->get<std::string>())
                                                            : std::optional<base::WallTime>();
  // Year 1 is the engine's word for a container that does not run.
  if (!read_at || *read_at <= base::WallTime{}) return stats;
  stats.read_at = read_at;
  stats.cpu_ns = measured(find(find(&node, "cpu_stats"), "cpu_usage"), "total_usage");
  stats.working_set = working_set(node);
  return stats;
}

}  // namespace spillway::providers::docker
