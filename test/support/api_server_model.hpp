// A model of the API server, behind the KubeApi seam, for tests of the whole daemon in virtual time.
//
// Owned by a test or the simulator; reactor thread only. Serves what api_model/resource.hpp lists, with the versions,
// conflicts, patches, deletions, pages and watches of Kubernetes 1.36, and answers as over the wire. Answers take no
// time and nothing fails by itself: FaultyKubeApi in front of it does that. One script runs on it and on the real
// server, and both must say the same (test/README.md); it is checked by that server, never instead of it.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/api_model/requests.hpp"
#include "test/support/api_model/watch.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test {

class ApiServerModel final : public kube::KubeApi {
 public:
  /// Has the namespaces of a new cluster, and the one that config/deploy makes.
  explicit ApiServerModel(async::Timers& timers);
  ~ApiServerModel() override;

  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override;

  /// The answer as it comes over the wire, at once: what users, controllers and a scheduler do in a test.
  api_model::Answer exchange(const kube::KubeRequest& request);

  /// A watch, or the answer that refuses it.
  std::expected<async::ByteStreamPtr, api_model::Answer> open_watch(const kube::KubeRequest& request);

  // What users and other controllers do most. These throw if the server would refuse: the test is wrong then.
  /// Path of the collection (/api/v1/namespaces/a/pods) and the object; returns it as stored. Makes the namespace.
  nlohmann::json create(const std::string& collection, nlohmann::json object);
  /// A merge patch, such as an edit.
  void edit(const std::string& path, const nlohmann::json& patch);
  /// DELETE of a pod with its grace period. Nothing if it is gone.
  void delete_pod(const std::string& ns, const std::string& name, int grace_seconds);
  /// Null if there is none. Without kind and apiVersion, as all objects here.
  nlohmann::json get(const std::string& path) const;
  std::vector<nlohmann::json> list(const std::string& collection) const;

  // The same without copies, for those who look at every step.
  /// Null if there is none.
  api_model::ObjectPtr find(const std::string& path) const;
  /// All objects of a resource by namespace/name.
  const std::map<std::string, api_model::ObjectPtr>& all(std::string_view plural) const;
  /// Called after each change, with what was and what is. May send requests itself.
  void observe(std::function<void(const api_model::Change&)> observer) { store_.observe(std::move(observer)); }
  std::uint64_t version() const { return store_.version(); }

  // What happens to the server.
  /// Forgets the history: watches and pages that start before now are answered 410. Open watches go on.
  void compact() { store_.compact(); }
  /// Ends all watches, as a restart does.
  void end_watches() { watches_.end_all(); }
  size_t open_watches() const { return watches_.size(); }
  /// How long a change takes until a watch shows it, asked for each event and watch. Null: no time.
  std::function<base::Duration()> watch_lag;

  /// Requests so far by "VERB resource[/subresource]".
  const std::map<std::string, int>& requests() const { return counts_; }
  void forget_requests() { counts_.clear(); }

 private:
  void count(const kube::KubeRequest& request, const api_model::Target& target, bool watch);

  api_model::Store store_;
  api_model::Requests requests_;
  api_model::Watches watches_;
  std::map<std::string, int> counts_;
};

}  // namespace spillway::test
