// A daemon's way to the API server: latency, loss and the death of the daemon happen here.
//
// Owned by a Machine. One thread. Promises what kube/kube_api.hpp promises, and no more.
#pragma once

#include "test/simulation/api_site.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::simulation {

class Machine;
class World;

class ApiLink final : public kube::KubeApi {
 public:
  ApiLink(World& world, Machine& machine) : world_(world), machine_(machine) {}

  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override;

 private:
  World& world_;
  Machine& machine_;
  int lists_ = 0;  // of pods, through a watch
};

}  // namespace spillway::simulation
