// ConfigMaps that we keep ourselves: listed by label, written on top of what was read, removed.
//
// Owned by whoever uses it, over a KubeApi that outlives it; reactor thread only. Repeats nothing and keeps nothing.
// What pods refer to is read by client.hpp instead.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vk-provider/kube/kube_api.hpp"

namespace spillway::kube {

struct ConfigMap {
  ConfigMap() = default;
  std::string name;
  std::string resource_version;  // empty when it is to be created
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> data;
};

class ConfigMapClient {
 public:
  ConfigMapClient(KubeApi& api, std::string ns) : api_(api), ns_(std::move(ns)) {}

  /// All that the label selector matches, page by page; kUnavailable if a page was cut.
  async::Task<std::vector<ConfigMap>> list(std::string selector, base::Deadline deadline);
  /// The same without their data.
  async::Task<std::vector<ConfigMap>> list_names(std::string selector, base::Deadline deadline);
  async::Task<ConfigMap> get(std::string name, base::Deadline deadline);
  /// POST if resource_version is empty, otherwise PUT with it. kConflict: there is one, or somebody else wrote. Returns
  /// the version that stands now.
  async::Task<std::string> put(ConfigMap map, base::Deadline deadline);
  /// kConflict if somebody wrote it since it was read.
  async::Task<void> remove(std::string name, std::string resource_version, base::Deadline deadline);

 private:
  std::string collection() const;
  async::Task<std::vector<ConfigMap>> list_pages(std::string query, std::string accept, base::Deadline deadline);

  KubeApi& api_;
  std::string ns_;
};

}  // namespace spillway::kube
