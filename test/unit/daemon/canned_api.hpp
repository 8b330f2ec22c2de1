// An API server that says what a test wrote down: the body of the longest target that a request begins with.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test {

class CannedApi final : public kube::KubeApi {
 public:
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline /*deadline*/) override {
    if (on_request) on_request(request.target);
    const auto found = find(request.target);
    if (found == answers.end()) co_return base::fail(base::ErrorKind::kNotFound, request.target + " not found");
    if (!found->second) co_return base::fail(found->second.error());
    kube::KubeResponse response;
    response.status = 200;
    response.body = *found->second;
    co_return response;
  }
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest /*request*/, base::Deadline /*deadline*/) override {
    co_return base::fail(base::ErrorKind::kUnsupported, "no watch here");
  }

  std::map<std::string, base::Result<std::string>> answers;  // by the beginning of the target
  std::function<void(const std::string& target)> on_request;

 private:
  std::map<std::string, base::Result<std::string>>::iterator find(const std::string& target) {
    auto best = answers.end();
    for (auto it = answers.begin(); it != answers.end(); ++it) {
      const bool longer = best == answers.end() || it->first.size() > best->first.size();
      if (target.starts_with(it->first) && longer) best = it;
    }
    return best;
  }
};

}  // namespace spillway::test
