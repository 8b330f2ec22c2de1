// The two servers that the honesty script runs on: the model in virtual time, and a real API server over TLS.
//
// Owned by a test or a program; reactor thread only.
#pragma once

#include <memory>
#include <string>

#include "test/support/api_script/runner.hpp"
#include "test/support/api_server_model.hpp"
#include "vk-provider/kube/credentials.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::test::api_script {

class ModelServer final : public Server {
 public:
  explicit ModelServer(async::Timers& timers) : timers_(timers), model_(timers) {}

  async::Timers& timers() override { return timers_; }
  async::Task<Answer> exchange(kube::KubeRequest request) override;
  async::Task<std::expected<async::ByteStreamPtr, Answer>> open(kube::KubeRequest request) override;
  async::Task<void> forget() override;

 private:
  async::Timers& timers_;
  ApiServerModel model_;
};

/// Sends what kube::HttpKubeApi would send, and keeps the answers that are none of success.
class RealServer final : public Server {
 public:
  RealServer(net::HttpClient& client, const kube::ClusterAccess& access, async::Timers& timers)
      : client_(client), access_(access), timers_(timers) {}

  async::Timers& timers() override { return timers_; }
  async::Task<Answer> exchange(kube::KubeRequest request) override;
  async::Task<std::expected<async::ByteStreamPtr, Answer>> open(kube::KubeRequest request) override;
  /// Compaction comes by itself; this waits a little for it.
  async::Task<void> forget() override;

 private:
  net::HttpRequest to_http(const kube::KubeRequest& request) const;

  net::HttpClient& client_;
  const kube::ClusterAccess& access_;
  async::Timers& timers_;
};

}  // namespace spillway::test::api_script
