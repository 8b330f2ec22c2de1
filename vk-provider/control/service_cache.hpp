// The services of a namespace, listed once for all pods that start within a second; that of the API server once a
// minute.
//
// Owned by the pod resolver; reactor thread only. Two hundred pods of one namespace make one list, and a namespace in
// which nothing starts is not looked at. Nothing is watched: the variables are those at the start.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vk-provider/async/semaphore.hpp"
#include "vk-provider/kube/client.hpp"

namespace spillway::control {

class ServiceCache {
 public:
  using Services = std::shared_ptr<const std::vector<model::Service>>;

  ServiceCache(kube::Client& client, async::Timers& timers) : client_(client), timers_(timers) {}

  /// Those whose variables a pod of the namespace gets: default/kubernetes always, as with a kubelet, and with `links`
  /// those of the namespace, which come first.
  async::Task<std::vector<model::Service>> services_for(std::string ns, bool links, base::Deadline deadline);

 private:
  struct Entry {
    explicit Entry(async::Timers& timers) : turn(timers, 1) {}
    async::Semaphore turn;  // of two who ask at once, one lists and the other takes what came
    base::TimePoint good_until{};
    base::Result<Services> services{};
  };
  /// Of one namespace; of an empty one the service default/kubernetes.
  async::Task<Services> listed(std::string ns, base::Deadline deadline);
  async::Task<Services> list(std::string ns, base::Deadline deadline);
  void forget_old();

  kube::Client& client_;
  async::Timers& timers_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace spillway::control
