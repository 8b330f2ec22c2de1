#include "providers/fake/http_cloud.hpp"

#include "providers/fake/codec.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;

constexpr std::size_t kMaxAnswer = 256UL * 1024 * 1024;  // a listing of 100,000 instances

// What an answer means that the fake cloud did not explain.
base::Error unexplained(const net::HttpResponse& response, bool is_write) {
  ErrorKind kind = ErrorKind::kInternal;
  if (response.status >= 500) kind = is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable;
  if (response.status == 429) kind = ErrorKind::kRateLimited;
  base::Error error(kind, "the fake cloud's socket answered HTTP " + std::to_string(response.status) +
                              " without an explanation; does `spillway fake-cloud` listen there?");
  error.retry_after = response.retry_after();
  return error;
}

// An answer that cannot be read is no answer.
template <class T>
base::Result<T> readable(base::Result<T> decoded, bool is_write) {
  if (decoded) return decoded;
  return base::fail(is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable,
                    "the fake cloud's answer cannot be read: " + decoded.error().message);
}

std::string instance_path(const std::string& id) { return "/v1/instances/" + net::encode_path_segment(id); }

std::string grace_query(std::chrono::seconds grace) {
  return "?grace=" + std::to_string(std::max<std::int64_t>(grace.count(), 0));
}

std::string_view action_word(provider::ContainerAction action) {
  switch (action) {
    case provider::ContainerAction::kStart: return "start";
    case provider::ContainerAction::kStop: return "stop";
    case provider::ContainerAction::kRestart: return "restart";
  }
  return "start";
}

}  // namespace

async::Task<std::string> HttpCloud::send(net::Method method, std::string target, std::string body,
                                         base::Deadline deadline) {
  net::HttpRequest request;
  request.method = method;
  request.target = std::move(target);
  request.body = std::move(body);
  request.content_type = "application/json";
  request.max_response = kMaxAnswer;
  auto response = co_await http_->send(std::move(request), deadline);
  if (!response) co_return base::fail(std::move(response.error()));
  if (response->status >= 200 && response->status < 300) co_return std::move(response->body);
  if (auto error = decode_error(response->body)) co_return base::fail(std::move(*error));
  co_return base::fail(unexplained(*response, method != net::Method::kGet));
}

async::Task<std::vector<model::Offer>> HttpCloud::list_offers(base::Deadline deadline) {
  const auto body = co_await send(net::Method::kGet, "/v1/offers", std::string(), deadline);
  if (!body) co_return base::fail(body.error());
  co_return readable(decode_offers(*body), false);
}

async::Task<model::Instance> HttpCloud::create(CreateRequest request, base::Deadline deadline) {
  const auto body = co_await send(net::Method::kPost, "/v1/instances", encode_create(request), deadline);
  if (!body) co_return base::fail(body.error());
  co_return readable(decode_instance(*body), true);
}

async::Task<model::Instance> HttpCloud::get(std::string id, base::Deadline deadline) {
  const auto body = co_await send(net::Method::kGet, instance_path(id), std::string(), deadline);
  if (!body) co_return base::fail(body.error());
  co_return readable(decode_instance(*body), false);
}

async::Task<provider::OwnedList> HttpCloud::list_owned(std::string tag_prefix, base::Deadline deadline) {
  std::string target = "/v1/instances?tag_prefix=" + net::encode_query_value(tag_prefix);
  const auto body = co_await send(net::Method::kGet, std::move(target), std::string(), deadline);
  if (!body) co_return base::fail(body.error());
  co_return readable(decode_list(*body), false);
}

async::Task<void> HttpCloud::terminate(std::string id, std::chrono::seconds grace, base::Deadline deadline) {
  std::string target = instance_path(id) + grace_query(grace);
  const auto body = co_await send(net::Method::kDelete, std::move(target), std::string(), deadline);
  if (!body) co_return base::fail(body.error());
  co_return base::Result<void>();
}

async::Task<void> HttpCloud::control(std::string id, std::string container, provider::ContainerAction action,
                                     std::chrono::seconds grace, base::Deadline deadline) {
  std::string target = instance_path(id) + "/containers/" + net::encode_path_segment(container) + "/" +
                       std::string(action_word(action)) + grace_query(grace);
  const auto body = co_await send(net::Method::kPost, std::move(target), std::string(), deadline);
  if (!body) co_return base::fail(body.error());
  co_return base::Result<void>();
}

async::Task<LogPage> HttpCloud::read_log(std::string id, LogRequest request, base::Deadline deadline) {
  std::string target = instance_path(id) + "/containers/" + net::encode_path_segment(request.container) +
                       "/log?previous=" + (request.previous ? "true" : "false");
  target += request.tail ? "&tail=" + std::to_string(*request.tail) : "&from=" + std::to_string(request.from);
  const auto body = co_await send(net::Method::kGet, std::move(target), std::string(), deadline);
  if (!body) co_return base::fail(body.error());
  co_return readable(decode_log_page(*body), false);
}

async::Task<std::vector<provider::Sample>> HttpCloud::samples(base::Deadline deadline) {
  const auto body = co_await send(net::Method::kGet, "/v1/samples", std::string(), deadline);
  if (!body) co_return base::fail(body.error());
  co_return readable(decode_samples(*body), false);
}

}  // namespace spillway::providers::fake
