#include "vk-provider/kube/http_kube_api.hpp"

#include "vk-provider/kube/status_codec.hpp"

namespace spillway::kube {
namespace {

using base::ErrorKind;

// A page of 250 pods is about 2 MB, one object at most 1.5 MB (etcd's limit).
constexpr size_t kMaxResponse = 64 * 1024 * 1024;
constexpr size_t kMaxQuoted = 200;

bool is_success(const net::HttpResponse& response) { return response.status >= 200 && response.status < 300; }

ErrorKind kind_of(net::Method method, int status) {
  switch (status) {
    case 401: return ErrorKind::kUnauthenticated;
    case 403: return ErrorKind::kPermission;
    case 404: return ErrorKind::kNotFound;
    case 409: return ErrorKind::kConflict;
    case 410: return ErrorKind::kGone;
    case 429: return ErrorKind::kRateLimited;
    default: break;
  }
  // What is neither an answer of the API server nor a refusal comes from something in front of it.
  if (status < 400) return ErrorKind::kUnavailable;
  if (status < 500) return ErrorKind::kInvalid;
  const bool is_read = method == net::Method::kGet || method == net::Method::kHead;
  return is_read ? ErrorKind::kUnavailable : ErrorKind::kUnknownOutcome;
}

}  // namespace

base::Error error_of(net::Method method, const net::HttpResponse& response) {
  DecodedStatus status = decode_status(response.body);
  if (status.message.empty()) {
    status.message = "the API server answered with HTTP status " + std::to_string(response.status);
    if (response.status < 400) status.message += "; check the server's URL";
    if (!response.body.empty()) status.message += ": " + response.body.substr(0, kMaxQuoted);
  }
  base::Error error(kind_of(method, response.status), std::move(status.message));
  error.retry_after = response.retry_after();
  if (!error.retry_after) error.retry_after = status.retry_after;
  return error;
}

HttpKubeApi::HttpKubeApi(net::HttpClient& client, Credentials& credentials, std::string path_prefix,
                         std::string user_agent)
    : client_(client),
      credentials_(credentials),
      path_prefix_(std::move(path_prefix)),
      user_agent_(std::move(user_agent)) {}

net::HttpRequest HttpKubeApi::to_http(const KubeRequest& request) {
  net::HttpRequest out;
  out.method = request.method;
  out.target = path_prefix_ + request.target;
  out.headers.emplace_back("Accept", request.accept);
  out.headers.emplace_back("User-Agent", user_agent_);
  out.body = request.body;
  out.content_type = request.content_type;
  out.bearer = credentials_.bearer();
  out.max_response = kMaxResponse;
  return out;
}

async::Task<KubeResponse> HttpKubeApi::send(KubeRequest request, base::Deadline deadline) {
  base::Result<net::HttpResponse> answer = co_await client_.send(to_http(request), deadline);
  if (answer && answer->status == 401 && credentials_.reload()) {
    answer = co_await client_.send(to_http(request), deadline);
  }
  if (!answer) co_return base::fail(answer.error());
  if (!is_success(*answer)) co_return base::fail(error_of(request.method, *answer));
  KubeResponse out;
  out.status = answer->status;
  out.body = std::move(answer->body);
  co_return out;
}

async::Task<async::ByteStreamPtr> HttpKubeApi::watch(KubeRequest request, base::Deadline deadline) {
  base::Result<net::HttpStream> answer = co_await client_.open(to_http(request), deadline);
  if (answer && answer->head.status == 401 && credentials_.reload()) {
    answer = co_await client_.open(to_http(request), deadline);
  }
  if (!answer) co_return base::fail(answer.error());
  if (!is_success(answer->head)) co_return base::fail(error_of(request.method, answer->head));
  co_return std::move(answer->body);
}

}  // namespace spillway::kube
