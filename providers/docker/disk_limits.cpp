#include "providers/docker/disk_limits.hpp"

#include <algorithm>
#include <charconv>

#include "vk-provider/model/quantity.hpp"

namespace spillway::providers::docker {
namespace {

/// 0: none.
std::int64_t limit_of(const Labels& labels, std::string_view key) {
  const std::string& text = label(labels, key);
  std::int64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  return error == std::errc{} && end == text.data() + text.size() ? limit : 0;
}

/// Of one instance. Init containers run one after the other, so that the largest of their limits counts.
struct Sum {
  std::int64_t used = 0;
  std::int64_t limit = 0;
  std::int64_t init_limit = 0;

  std::int64_t total_limit() const { return std::max(limit, init_limit); }
};

void add_container(Sum& sum, const DiskUse& container) {
  const std::int64_t limit = limit_of(container.labels, kLabelDiskLimit);
  sum.used += container.bytes;
  if (from_part_label(label(container.labels, kLabelPart)) == model::ContainerRole::kInit) {
    sum.init_limit = std::max(sum.init_limit, limit);
  } else {
    sum.limit += limit;
  }
}

}  // namespace

bool has_disk_limit(const Labels& labels) {
  return labels.contains(kLabelSizeLimit) || labels.contains(kLabelDiskLimit);
}

std::map<std::string, std::string> broken_limits(const DiskUsage& usage) {
  std::map<std::string, std::string> broken;
  std::map<std::string, Sum> sums;
  for (const DiskUse& volume : usage.volumes) {
    const std::string& tag = label(volume.labels, kLabelTag);
    const std::int64_t limit = limit_of(volume.labels, kLabelSizeLimit);
    sums[tag].used += volume.bytes;
    if (limit <= 0 || volume.bytes <= limit) continue;
    broken.emplace(tag, "Usage of EmptyDir volume \"" + label(volume.labels, kLabelVolume) + "\" exceeds the limit \"" +
                            model::quantity_text(limit) + "\".");
  }
  for (const DiskUse& container : usage.containers) add_container(sums[label(container.labels, kLabelTag)], container);
  for (const auto& [tag, sum] : sums) {
    if (sum.total_limit() <= 0 || sum.used <= sum.total_limit()) continue;
    broken.emplace(tag, "Pod ephemeral local storage usage exceeds the total limit of containers " +
                            model::quantity_text(sum.total_limit()) + ".");
  }
  for (const DiskUse& container : usage.containers) {
    const std::int64_t limit = limit_of(container.labels, kLabelDiskLimit);
    if (limit <= 0 || container.bytes <= limit) continue;
    broken.emplace(label(container.labels, kLabelTag), "Container " + label(container.labels, kLabelContainer) +
                                                           " exceeded its local ephemeral storage limit \"" +
                                                           model::quantity_text(limit) + "\".");
  }
  return broken;
}

}  // namespace spillway::providers::docker
