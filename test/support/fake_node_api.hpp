// Nodes and Leases of an API server, in memory, with what the node controller needs of their rules.
//
// Owned by a test; reactor thread only. Knows versions, UIDs, preconditions, apply and merge patches, lists and
// watches. No stand-in for the real API server: test/e2e runs the same controller against that one.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test {

class FakeNodeApi final : public kube::KubeApi {
 public:
  struct Request {
    base::TimePoint at;
    std::string verb;  // GET, LIST, WATCH, POST, PUT, PATCH
    std::string target;
    std::string body;
  };
  /// A planned fault: answers `error` to the next `times` requests whose verb and path begin so.
  struct Fault {
    std::string verb;
    std::string path;
    base::Error error;
    int times = 1;
    bool performed = false;  // the write happens all the same, and only its answer is lost
  };

  explicit FakeNodeApi(async::Timers& timers) : timers_(timers) {}

  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override;

  // What others do.
  void put_node(nlohmann::json node);
  void edit_node(const std::string& name, const std::function<void(nlohmann::json&)>& edit);
  void delete_node(const std::string& name);
  void edit_lease(const std::string& name, const std::function<void(nlohmann::json&)>& edit);
  void delete_lease(const std::string& name) { leases_.erase(name); }

  bool has_node(const std::string& name) const { return nodes_.contains(name); }
  const nlohmann::json& node(const std::string& name) const { return nodes_.at(name); }
  bool has_lease(const std::string& name) const { return leases_.contains(name); }
  const nlohmann::json& lease(const std::string& name) const { return leases_.at(name); }

  /// Requests whose verb is this one and whose target begins so.
  std::vector<Request> requests(const std::string& verb, const std::string& target) const;
  size_t count(const std::string& verb, const std::string& target) const { return requests(verb, target).size(); }
  void forget_requests() { log_.clear(); }

  std::vector<Fault> faults;
  base::Duration delay{};  // of each answer

 private:
  friend class FakeWatch;
  struct Event {
    std::uint64_t version;
    std::string name;
    std::string line;
  };
  using Objects = std::map<std::string, nlohmann::json>;

  base::Result<nlohmann::json> perform(const kube::KubeRequest& request);
  base::Result<nlohmann::json> on_node(const kube::KubeRequest& request, const std::string& name, bool status);
  base::Result<nlohmann::json> on_lease(const kube::KubeRequest& request, const std::string& name);
  base::Result<nlohmann::json> create(Objects& objects, nlohmann::json object);
  nlohmann::json list_nodes(const std::string& name) const;
  void store_node(const std::string& name, nlohmann::json node);
  void publish(const char* type, const nlohmann::json& node);
  std::optional<Fault> fault_for(const std::string& verb, const std::string& target);

  async::Timers& timers_;
  std::uint64_t version_ = 100;
  int uids_ = 0;
  Objects nodes_;
  Objects leases_;
  std::deque<Event> events_;
  std::vector<async::Waiter*> watchers_;
  std::vector<Request> log_;
};

}  // namespace spillway::test
