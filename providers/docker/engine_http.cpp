#include "providers/docker/engine_http.hpp"

#include <algorithm>
#include <utility>

#include "providers/docker/codec.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;

std::string name_of(int api) { return "1." + std::to_string(api); }

std::string prefix_of(int api) { return "/v" + name_of(api); }

}  // namespace

async::Task<int> EngineHttp::api(base::Deadline deadline) {
  if (api_) co_return *api_;
  net::HttpRequest request;
  request.target = "/version";
  const auto response = co_await http_->send(std::move(request), deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) {
    co_return base::fail(ErrorKind::kUnavailable, "version: the engine answered " + std::to_string(response->status) +
                                                      ": " + decode_message(response->body));
  }
  const auto version = decode_version(response->body);
  if (!version) co_return base::fail(version.error());
  if (version->newest < kOldestApi || version->oldest > kNewestApi) {
    co_return base::fail(ErrorKind::kUnavailable, "the engine speaks API " + name_of(version->oldest) + " to " +
                                                      name_of(version->newest) + "; this Spillway speaks " +
                                                      name_of(kOldestApi) + " to " + name_of(kNewestApi));
  }
  api_ = std::min(version->newest, kNewestApi);
  co_return *api_;
}

async::Task<net::HttpResponse> EngineHttp::send(net::HttpRequest request, base::Deadline deadline) {
  const auto spoken = co_await api(deadline);
  if (!spoken) co_return base::fail(spoken.error());
  request.target = prefix_of(*spoken) + request.target;
  auto response = co_await http_->send(std::move(request), deadline);
  // "client version 1.45 is too new": the engine was replaced.
  const bool refused = response && response->status == 400 && response->body.contains("client version");
  if (!response || refused) api_.reset();
  co_return response;
}

async::Task<net::HttpStream> EngineHttp::open(net::HttpRequest request, base::Deadline deadline) {
  const auto spoken = co_await api(deadline);
  if (!spoken) co_return base::fail(spoken.error());
  request.target = prefix_of(*spoken) + request.target;
  auto stream = co_await http_->open(std::move(request), deadline);
  if (!stream) api_.reset();
  co_return stream;
}

}  // namespace spillway::providers::docker
