// HTTP to an engine, in a version of its API that both it and we speak.
//
// Owned by an EngineClient; reactor thread only. Before the first request it asks the engine what it speaks, and again
// after an error: by then it may be another engine. Targets of requests have no version; this puts it before them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "vk-provider/net/http.hpp"

namespace spillway::providers::docker {

/// Minor versions of API 1: Docker 20.10 and 26.0. Newer engines speak older versions for years.
inline constexpr int kOldestApi = 41;
inline constexpr int kNewestApi = 45;
/// From here on a part of a volume can be mounted.
inline constexpr int kApiWithSubPath = 45;

class EngineHttp final : public net::HttpClient {
 public:
  explicit EngineHttp(std::unique_ptr<net::HttpClient> http) : http_(std::move(http)) {}

  /// As net::HttpClient. An engine with which no version is shared is kUnavailable, in words that say so.
  async::Task<net::HttpResponse> send(net::HttpRequest request, base::Deadline deadline) override;
  async::Task<net::HttpStream> open(net::HttpRequest request, base::Deadline deadline) override;

  /// The minor version that is spoken.
  async::Task<int> api(base::Deadline deadline);

 private:
  std::unique_ptr<net::HttpClient> http_;
  std::optional<int> api_;
};

}  // namespace spillway::providers::docker
