#include "providers/docker/client.hpp"

#include <algorithm>
#include <array>

#include "providers/docker/status_text.hpp"
#include "vk-provider/net/line_splitter.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;

constexpr size_t kLargestListing = 64UL * 1024 * 1024;
constexpr size_t kLongestProgressLine = 1024UL * 1024;

net::HttpRequest json_request(net::Method method, std::string target, std::string body) {
  net::HttpRequest request;
  request.method = method;
  request.target = std::move(target);
  request.max_response = kLargestListing;
  if (!body.empty()) request.content_type = "application/json";
  request.body = std::move(body);
  return request;
}

ErrorKind kind_of_refusal(int status) {
  if (status == 401) return ErrorKind::kUnauthenticated;
  if (status == 403) return ErrorKind::kPermission;
  if (status == 404) return ErrorKind::kNotFound;
  if (status == 409) return ErrorKind::kConflict;
  if (status == 429) return ErrorKind::kRateLimited;
  return status >= 500 ? ErrorKind::kUnavailable : ErrorKind::kInvalid;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return text.contains(w); });
}

}  // namespace

PullResult::Kind classify_pull_error(std::string_view text) {
  using Kind = PullResult::Kind;
  if (text.contains("invalid reference format")) return Kind::kMalformed;
  if (contains_any(text, {"toomanyrequests", "Too Many Requests", "pull rate limit"})) return Kind::kRateLimited;
  if (contains_any(text, {"no matching manifest for", "cannot be used on this platform",
                          "does not match the specified platform"})) {
    return Kind::kNoPlatform;
  }
  if (contains_any(
          text, {"dial tcp", "connection refused", "connection reset", "no such host", "i/o timeout",
                 "TLS handshake timeout", "server misbehaving", "Client.Timeout", "unexpected EOF", "status code 5",
                 "received unexpected HTTP status: 5", "x509:", "http: server gave HTTP response to HTTPS client"})) {
    return Kind::kUnreachable;
  }
  // A registry hides what one may not see: "pull access denied for x, repository does not exist or may require ...".
  if (contains_any(text, {"manifest unknown", "not found", "does not exist", "name unknown"})) {
    return Kind::kMissing;
  }
  if (contains_any(text, {"denied", "unauthorized", "authentication required", "no basic auth credentials"})) {
    return Kind::kDenied;
  }
  return Kind::kOther;
}

base::Error EngineClient::named(base::Error error) const {
  error.message = "docker host " + host_ + ": " + error.message;
  return error;
}

base::Error EngineClient::refusal(const net::HttpResponse& response, std::string_view what) const {
  base::Error error(kind_of_refusal(response.status), std::string(what) + ": the engine answered " +
                                                          std::to_string(response.status) + ": " +
                                                          decode_message(response.body));
  error.retry_after = response.retry_after();
  return named(std::move(error));
}

async::Task<net::HttpResponse> EngineClient::send(net::Method method, std::string target, std::string body,
                                                  base::Deadline deadline) {
  auto response = co_await http_->send(json_request(method, std::move(target), std::move(body)), deadline);
  if (!response) co_return base::fail(named(std::move(response.error())));
  co_return std::move(*response);
}

std::string EngineClient::path_of(const std::string& container, std::string_view rest) {
  return "/containers/" + net::encode_path_segment(container) + std::string(rest);
}

async::Task<Answer> EngineClient::write(net::Method method, std::string target, std::string body,
                                        base::Deadline deadline) {
  co_return co_await answer_to(json_request(method, std::move(target), std::move(body)), deadline);
}

async::Task<Answer> EngineClient::answer_to(net::HttpRequest request, base::Deadline deadline) {
  auto response = co_await http_->send(std::move(request), deadline);
  if (!response) {
    base::Error error = named(std::move(response.error()));
    // The deadline of a write that was never sent.
    if (error.kind == ErrorKind::kDeadline) error.kind = ErrorKind::kUnavailable;
    co_return base::fail(std::move(error));
  }
  Answer answer;
  answer.status = response->status;
  answer.text = answer.ok() ? std::move(response->body) : decode_message(response->body);
  co_return answer;
}

async::Task<Listing> EngineClient::list(std::string label, base::Deadline deadline) {
  const auto response =
      co_await send(net::Method::kGet, "/containers/json?all=true&" + encode_label_filter(label), "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) co_return base::fail(refusal(*response, "list of containers"));
  auto entries = decode_list(response->body);
  if (!entries) co_return base::fail(named(std::move(entries.error())));
  Listing listing;
  listing.entries = std::move(*entries);
  if (const auto date = response->header("Date")) listing.engine_time = parse_http_date(*date);
  co_return listing;
}

async::Task<ContainerFacts> EngineClient::inspect(std::string container, base::Deadline deadline) {
  const auto response = co_await send(net::Method::kGet, path_of(container, "/json"), "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) co_return base::fail(refusal(*response, "container " + container));
  auto facts = decode_container(response->body);
  if (!facts) co_return base::fail(named(std::move(facts.error())));
  co_return std::move(*facts);
}

async::Task<Answer> EngineClient::create(std::string name, std::string body, base::Deadline deadline) {
  auto answer = co_await write(net::Method::kPost, "/containers/create?name=" + net::encode_query_value(name),
                               std::move(body), deadline);
  if (!answer || !answer->ok()) co_return answer;
  auto id = decode_created(answer->text);
  if (!id) {
    base::Error error = named(std::move(id.error()));
    error.kind = ErrorKind::kUnknownOutcome;  // something was made
    co_return base::fail(std::move(error));
  }
  answer->text = std::move(*id);
  co_return answer;
}

async::Task<Answer> EngineClient::start(std::string id, base::Deadline deadline) {
  co_return co_await write(net::Method::kPost, path_of(id, "/start"), "", deadline);
}

async::Task<Answer> EngineClient::slow_post(std::string target, base::Deadline deadline) {
  net::HttpRequest request;
  request.method = net::Method::kPost;
  request.target = std::move(target);
  auto stream = co_await http_->open(std::move(request), deadline);
  if (!stream) co_return base::fail(named(std::move(stream.error())));
  Answer answer;
  answer.status = stream->head.status;
  if (!answer.ok()) answer.text = decode_message(stream->head.body);
  co_return answer;
}

async::Task<Answer> EngineClient::stop(std::string id, std::chrono::seconds grace, base::Deadline deadline) {
  co_return co_await slow_post(path_of(id, "/stop?t=" + std::to_string(grace.count())), deadline);
}

async::Task<Answer> EngineClient::restart(std::string id, std::chrono::seconds grace, base::Deadline deadline) {
  co_return co_await slow_post(path_of(id, "/restart?t=" + std::to_string(grace.count())), deadline);
}

async::Task<Answer> EngineClient::remove(std::string id, base::Deadline deadline) {
  co_return co_await write(net::Method::kDelete, path_of(id) + "?force=true&v=true", "", deadline);
}

async::Task<bool> EngineClient::has_image(std::string name, base::Deadline deadline) {
  const auto response =
      co_await send(net::Method::kGet, "/images/" + net::encode_path_segment(name) + "/json", "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status == 404) co_return false;
  if (response->status != 200) co_return base::fail(refusal(*response, "image " + name));
  co_return true;
}

async::Task<std::string> EngineClient::architecture(base::Deadline deadline) {
  const auto response = co_await send(net::Method::kGet, "/version", "", deadline);
  if (!response) co_return base::fail(response.error());
  if (response->status != 200) co_return base::fail(refusal(*response, "version"));
  auto version = decode_version(response->body);
  if (!version) co_return base::fail(named(std::move(version.error())));
  co_return std::move(version->architecture);
}

async::Task<int> EngineClient::api(base::Deadline deadline) {
  auto spoken = co_await http_->api(deadline);
  if (!spoken) co_return base::fail(named(std::move(spoken.error())));
  co_return *spoken;
}

async::Task<void> EngineClient::import_image(std::string repository, std::string tag, std::string tar,
                                             base::Deadline deadline) {
  net::HttpRequest request;
  request.method = net::Method::kPost;
  request.target = "/images/create?fromSrc=-&repo=" + net::encode_query_value(repository) +
                   "&tag=" + net::encode_query_value(tag) +
                   "&changes=" + net::encode_query_value("LABEL spillway.dev/role=sandbox");
  request.body = std::move(tar);
  request.content_type = "application/x-tar";
  const auto response = co_await http_->send(std::move(request), deadline);
  if (!response) co_return base::fail(named(response.error()));
  if (response->status != 200) co_return base::fail(refusal(*response, "import of the sandbox image"));
  // Errors after the first byte come inside the body of a 200.
  net::LineSplitter lines(kLongestProgressLine);
  static_cast<void>(lines.feed(response->body + "\n"));
  while (const auto line = lines.next()) {
    if (const auto error = decode_pull_error(*line)) {
      co_return base::fail(named(base::Error(ErrorKind::kUnavailable, "import of the sandbox image: " + *error)));
    }
  }
  co_return base::Result<void>();
}

async::Task<PullResult> EngineClient::pull(ImageReference image, base::Secret account, base::Duration no_progress) {
  net::HttpRequest request;
  request.method = net::Method::kPost;
  request.target = "/images/create?fromImage=" + net::encode_query_value(image.repository) +
                   "&tag=" + net::encode_query_value(image.version());
  if (!account.empty()) request.headers.emplace_back("X-Registry-Auth", account.reveal());
  PullResult result;
  auto stream = co_await http_->open(std::move(request), timers_.now() + no_progress);
  if (!stream) {
    result.kind = PullResult::Kind::kEngineLost;
    result.text = named(std::move(stream.error())).message;
    co_return result;
  }
  if (stream->head.status >= 400) {
    result.text = decode_message(stream->head.body);
    result.kind = classify_pull_error(result.text);
    co_return result;
  }
  net::LineSplitter lines(kLongestProgressLine);
  const auto look = [&result](std::string_view line) {
    const auto error = decode_pull_error(line);
    if (!error) return;
    result.text = *error;
    result.kind = classify_pull_error(*error);
  };
  while (true) {
    const auto chunk = co_await stream->body->read(timers_.now() + no_progress);
    if (!chunk) {
      const bool silent = chunk.error().kind == ErrorKind::kDeadline;
      result.kind = silent ? PullResult::Kind::kNoProgress : PullResult::Kind::kEngineLost;
      result.text = silent ? "no progress for " +
                                 std::to_string(std::chrono::ceil<std::chrono::seconds>(no_progress).count()) + " s"
                           : named(chunk.error()).message;
      co_return result;
    }
    if (chunk->empty()) break;
    if (!lines.feed(*chunk)) {
      result.kind = PullResult::Kind::kOther;
      result.text = "the engine's progress is not made of lines";
      co_return result;
    }
    while (const auto line = lines.next()) look(*line);
  }
  look(lines.rest());
  co_return result;
}

}  // namespace spillway::providers::docker
