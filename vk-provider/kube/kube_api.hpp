// The seam to the API server: one request, or one watch byte stream.
//
// Codec, reflector and typed calls lie above it, so that the simulator exercises them. Owned by main; reactor thread
// only.
#pragma once

#include <string>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/task.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::kube {

struct KubeRequest {
  KubeRequest() = default;
  net::Method method = net::Method::kGet;
  std::string target;  // /api/v1/pods?limit=250
  std::string body;
  std::string content_type;  // application/json, application/strategic-merge-patch+json, application/apply-patch+yaml
  std::string accept = "application/json";
};

struct KubeResponse {
  KubeResponse() = default;
  int status = 0;
  std::string body;
};

class KubeApi {
 public:
  virtual ~KubeApi() = default;

  /// An answer of 2xx. Everything else is an Error whose kind follows the status and whose message is Status.message:
  /// 400/422 kInvalid, 401 kUnauthenticated, 403 kPermission, 404 kNotFound, 409 kConflict, 410 kGone, 429
  /// kRateLimited (with retry_after), 5xx kUnavailable for a GET and kUnknownOutcome for a write. Repeats nothing, but
  /// for one 401 after the credentials were read again.
  virtual async::Task<KubeResponse> send(KubeRequest request, base::Deadline deadline) = 0;

  /// The body of a 2xx answer as it comes; the deadline covers the time to the headers. The same errors.
  virtual async::Task<async::ByteStreamPtr> watch(KubeRequest request, base::Deadline deadline) = 0;
};

}  // namespace spillway::kube
