// The Lease in kube-node-lease that says that a virtual node lives.
//
// Owned by its node_controller; reactor thread only. On a KubeApi of its own, so that neither pods nor providers delay
// it. Does not look at the health of providers: a node with a dead cloud is still a live node.
#pragma once

#include <memory>
#include <string>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/kube/client.hpp"

namespace spillway::control {

class NodeLease {
 public:
  NodeLease(std::string node_name, kube::KubeApi& api, async::Timers& timers, base::Random& random,
            base::Metrics& metrics);
  NodeLease(const NodeLease&) = delete;
  NodeLease& operator=(const NodeLease&) = delete;

  /// The UID of the Node that owns the Lease; empty while there is none, and then nothing is renewed. A change is
  /// written at once.
  void set_owner(const std::string& uid);

  /// Renews every 10 s (and at once after a jump of the wall clock) until it is cancelled.
  async::Loop run();

 private:
  async::Task<void> renew();
  async::Task<void> read();

  std::string node_name_;
  kube::Client client_;
  async::Timers& timers_;
  base::Random& random_;
  base::Counter& renewed_;
  base::Counter& failed_;
  std::unique_ptr<async::Waiter> waiter_;
  std::string owner_uid_;
  bool owner_changed_ = false;
  kube::Lease lease_;   // as the server last answered; without a resource_version it is to be created
  bool known_ = false;  // lease_ says what stands at the server
};

}  // namespace spillway::control
