// A model of the API server, behind the KubeApi seam, for tests of the whole daemon in virtual time.
//
// Owned by a test; reactor thread only. Knows resourceVersions, UIDs, conflicts, strategic merge of the lists that we
// write, graceful deletion of pods, watches with bookmarks and streamed lists. Answers take no time. It is checked by
// tests of the real server, never instead of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test {

class ApiServerModel final : public kube::KubeApi {
 public:
  explicit ApiServerModel(async::Timers& timers);
  ~ApiServerModel() override;

  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override;

  // What users and other controllers do.
  /// Path of the collection (/api/v1/namespaces/a/pods) and the object; returns it as stored.
  nlohmann::json create(const std::string& collection, nlohmann::json object);
  /// DELETE of a pod with its grace period.
  void delete_pod(const std::string& ns, const std::string& name, int grace_seconds);
  /// Null if there is none.
  nlohmann::json get(const std::string& path) const;
  std::vector<nlohmann::json> list(const std::string& collection) const;

  /// Requests so far by "VERB resource[/subresource]".
  const std::map<std::string, int>& requests() const { return requests_; }
  void forget_requests() { requests_.clear(); }

 private:
  struct Change {
    std::uint64_t version;
    std::string type;
    std::string path;
    nlohmann::json object;
  };
  class WatchStream;
  friend class WatchStream;

  base::Result<kube::KubeResponse> answer(const kube::KubeRequest& request);
  base::Result<nlohmann::json> patch(const std::string& path, const nlohmann::json& body);
  base::Result<nlohmann::json> remove(const std::string& path, const nlohmann::json& options);
  nlohmann::json store(const std::string& path, nlohmann::json object, const std::string& type);

  async::Timers& timers_;
  std::uint64_t version_ = 100;
  std::uint64_t uids_ = 0;
  std::map<std::string, nlohmann::json> objects_;  // by path
  std::vector<Change> changes_;
  std::vector<WatchStream*> watchers_;
  std::map<std::string, int> requests_;
};

}  // namespace spillway::test
