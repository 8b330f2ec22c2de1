#include "providers/docker/disk_limits.hpp"

#include <catch2/catch.hpp>

namespace spillway::providers::docker {
namespace {

DiskUse volume(const std::string& tag, const std::string& name, std::int64_t bytes, const std::string& limit = "") {
  DiskUse use;
  use.bytes = bytes;
  use.labels = {{std::string(kLabelTag), tag}, {std::string(kLabelVolume), name}};
  if (!limit.empty()) use.labels.emplace(kLabelSizeLimit, limit);
  return use;
}

DiskUse container(const std::string& tag, const std::string& name, const std::string& part, std::int64_t bytes,
                  const std::string& limit = "") {
  DiskUse use;
  use.bytes = bytes;
  use.labels = {{std::string(kLabelTag), tag}, {std::string(kLabelContainer), name}, {std::string(kLabelPart), part}};
  if (!limit.empty()) use.labels.emplace(kLabelDiskLimit, limit);
  return use;
}

using Broken = std::map<std::string, std::string>;

TEST_CASE("disk limits: a volume above its own") {
  DiskUsage usage;
  usage.volumes = {volume("a", "data", 1025, "1024"), volume("b", "data", 1024, "1024"), volume("c", "data", 5000)};
  CHECK(broken_limits(usage) == Broken{{"a", "Usage of EmptyDir volume \"data\" exceeds the limit \"1Ki\"."}});
  usage.volumes = {volume("a", "data", 9, "0"), volume("b", "data", 9, "much")};
  CHECK(broken_limits(usage).empty());
}

TEST_CASE("disk limits: a pod above the sum of its containers'") {
  DiskUsage usage;
  usage.containers = {container("a", "x", "main", 400, "1000"), container("a", "y", "sidecar", 400, "1000")};
  usage.volumes = {volume("a", "data", 1200)};
  CHECK(broken_limits(usage).empty());
  usage.volumes[0].bytes = 1201;
  CHECK(broken_limits(usage) ==
        Broken{{"a", "Pod ephemeral local storage usage exceeds the total limit of containers 2000."}});
  // An init container that may take more than all that follows.
  usage.containers.push_back(container("a", "setup", "init", 0, "3000"));
  CHECK(broken_limits(usage).empty());
}

TEST_CASE("disk limits: a container above its own") {
  DiskUsage usage;
  usage.containers = {container("a", "x", "main", 1001, "1000"), container("a", "y", "main", 0, "5000")};
  CHECK(broken_limits(usage) == Broken{{"a", "Container x exceeded its local ephemeral storage limit \"1000\"."}});
}

TEST_CASE("disk limits: which labels are one") {
  CHECK(has_disk_limit(volume("a", "v", 0, "1").labels));
  CHECK(has_disk_limit(container("a", "c", "main", 0, "1").labels));
  CHECK_FALSE(has_disk_limit(volume("a", "v", 0).labels));
}

}  // namespace
}  // namespace spillway::providers::docker
