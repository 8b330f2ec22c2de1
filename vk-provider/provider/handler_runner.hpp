// Does what a probe or a lifecycle hook says, once: exec, httpGet, tcpSocket, grpc, sleep. As a kubelet does it.
//
// Owned by the daemon, or by a test; reactor thread only. It neither counts nor decides: control/ does. An error is
// what the handler came to: kInvalid if it was done and failed (exit code, status), kDeadline if it took too long,
// anything else if it could not be done. Messages are for people, and hold no output of more than 1 KiB.
#pragma once

#include <functional>
#include <string>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/model/container_spec.hpp"
#include "vk-provider/model/instance.hpp"
#include "vk-provider/net/http.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::provider {

/// Opens a TCP connection from this machine.
using ConnectTcp = std::function<async::Task<async::ByteStreamPtr>(std::string host, int port, base::Deadline)>;

/// Whose handler it is.
struct HandlerTarget {
  Provider* provider = nullptr;
  model::InstanceRef ref;
  std::string container;
  std::string address;  // of the instance, if this machine can reach it; empty: the provider dials
};

class HandlerRunner {
 public:
  HandlerRunner(async::Timers& timers, ConnectTcp connect) : timers_(timers), connect_(std::move(connect)) {}

  async::Task<void> run(HandlerTarget target, model::Handler handler, base::Deadline deadline);

 private:
  async::Task<void> exec(const HandlerTarget& target, const model::Handler& handler, base::Deadline deadline);
  async::Task<void> http_get(const HandlerTarget& target, const model::Handler& handler, base::Deadline deadline);
  async::Task<net::HttpResponse> get_once(const HandlerTarget& target, const model::Handler& handler,
                                          const std::string& path, base::Deadline deadline);
  async::Task<async::ByteStreamPtr> open(const HandlerTarget& target, const model::Handler& handler,
                                         base::Deadline deadline);

  async::Timers& timers_;
  ConnectTcp connect_;
};

}  // namespace spillway::provider
