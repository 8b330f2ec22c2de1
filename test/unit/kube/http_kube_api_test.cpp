#include <catch2/catch.hpp>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>

#include "test/support/virtual_time.hpp"
#include "vk-provider/kube/http_kube_api.hpp"
#include "vk-provider/kube/status_codec.hpp"

using namespace std::chrono_literals;
namespace kube = spillway::kube;
namespace net = spillway::net;
namespace async = spillway::async;
namespace base = spillway::base;
using base::ErrorKind;
using net::Method;

namespace {

class TextStream final : public async::ByteStream {
 public:
  explicit TextStream(std::string text) : text_(std::move(text)) {}
  async::Task<std::string> read(base::Deadline) override { co_return std::exchange(text_, {}); }
  async::Task<void> write(std::string, base::Deadline) override { co_return base::fail(ErrorKind::kUnsupported, ""); }
  async::Task<void> close_write(base::Deadline) override { co_return base::fail(ErrorKind::kUnsupported, ""); }

 private:
  std::string text_;
};

/// Answers what it is told to, and notes what it is asked.
class FakeHttp final : public net::HttpClient {
 public:
  void answer(int status, std::string body, std::vector<net::Header> headers = {}) {
    net::HttpResponse response;
    response.status = status;
    response.body = std::move(body);
    response.headers = std::move(headers);
    answers.emplace_back(std::move(response));
  }
  async::Task<net::HttpResponse> send(net::HttpRequest request, base::Deadline) override {
    requests.push_back(std::move(request));
    co_return next();
  }
  async::Task<net::HttpStream> open(net::HttpRequest request, base::Deadline) override {
    requests.push_back(std::move(request));
    base::Result<net::HttpResponse> head = next();
    if (!head) co_return base::fail(head.error());
    net::HttpStream stream;
    stream.head = std::move(*head);
    if (stream.head.status < 400) stream.body = std::make_unique<TextStream>(std::exchange(stream.head.body, {}));
    co_return stream;
  }
  base::Result<net::HttpResponse> next() {
    auto result = std::move(answers.at(0));
    answers.pop_front();
    return result;
  }

  std::deque<base::Result<net::HttpResponse>> answers;
  std::vector<net::HttpRequest> requests;
};

std::string status_object(const std::string& message) {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" + message + R"("})";
}

struct ApiFixture {
  ApiFixture() {
    std::string name = (std::filesystem::temp_directory_path() / "spillway-XXXXXX").string();
    directory = ::mkdtemp(name.data());
    access.token = base::Secret("one");
    access.token_file = directory / "token";
    write_token("one");
    credentials.emplace(access, r.timers);
    api.emplace(http, *credentials, "/prefix", "spillway/1.2.3");
  }
  ~ApiFixture() { std::filesystem::remove_all(directory); }
  void write_token(const std::string& token) const { std::ofstream(directory / "token") << token; }

  base::Result<kube::KubeResponse> send(Method method) {
    kube::KubeRequest request;
    request.method = method;
    request.target = "/api/v1/pods";
    request.body = method == Method::kGet ? "" : "{}";
    request.content_type = "application/json";
    return r.run(api->send(std::move(request), r.timers.now() + 10s));
  }
  base::Result<async::ByteStreamPtr> watch() {
    kube::KubeRequest request;
    request.target = "/api/v1/pods?watch=1";
    return r.run(api->watch(std::move(request), r.timers.now() + 10s));
  }

  spillway::test::VirtualReactor r;
  std::filesystem::path directory;
  kube::ClusterAccess access;
  FakeHttp http;
  std::optional<kube::Credentials> credentials;
  std::optional<kube::HttpKubeApi> api;
};

}  // namespace

TEST_CASE_METHOD(ApiFixture, "a request carries prefix, token, user agent and what is accepted") {
  http.answer(201, "{}");
  const auto answer = send(Method::kPost);
  REQUIRE(answer);
  CHECK(answer->status == 201);
  CHECK(answer->body == "{}");
  REQUIRE(http.requests.size() == 1);
  const net::HttpRequest& request = http.requests[0];
  CHECK(request.target == "/prefix/api/v1/pods");
  CHECK(request.bearer.reveal() == "one");
  CHECK(request.content_type == "application/json");
  CHECK(request.body == "{}");
  CHECK(request.headers == std::vector<net::Header>{{"Accept", "application/json"}, {"User-Agent", "spillway/1.2.3"}});
}

TEST_CASE_METHOD(ApiFixture, "every status has its kind") {
  const std::vector<std::tuple<int, ErrorKind, ErrorKind>> cases = {
      {400, ErrorKind::kInvalid, ErrorKind::kInvalid},
      {401, ErrorKind::kUnauthenticated, ErrorKind::kUnauthenticated},
      {403, ErrorKind::kPermission, ErrorKind::kPermission},
      {404, ErrorKind::kNotFound, ErrorKind::kNotFound},
      {409, ErrorKind::kConflict, ErrorKind::kConflict},
      {410, ErrorKind::kGone, ErrorKind::kGone},
      {422, ErrorKind::kInvalid, ErrorKind::kInvalid},
      {429, ErrorKind::kRateLimited, ErrorKind::kRateLimited},
      {500, ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {503, ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {504, ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome},
      {302, ErrorKind::kUnavailable, ErrorKind::kUnavailable},
  };
  for (const auto& [status, for_read, for_write] : cases) {
    CAPTURE(status);
    for (int i = 0; i < 3; ++i) http.answer(status, status_object("because"));
    const auto read = send(Method::kGet);
    REQUIRE_FALSE(read);
    CHECK(read.error().kind == for_read);
    CHECK(read.error().message == "because");
    CHECK(send(Method::kPatch).error().kind == for_write);
    CHECK(watch().error().kind == for_read);
  }
}

TEST_CASE_METHOD(ApiFixture, "a wait that the server asks for is handed on") {
  http.answer(429, status_object("slow"), {{"Retry-After", "3"}});
  CHECK(send(Method::kPost).error().retry_after == 3s);
  http.answer(503, R"({"kind":"Status","message":"m","details":{"retryAfterSeconds":5}})");
  CHECK(send(Method::kGet).error().retry_after == 5s);
  http.answer(503, "");
  CHECK_FALSE(send(Method::kGet).error().retry_after);
}

TEST_CASE_METHOD(ApiFixture, "an answer that is no Status is quoted in part") {
  http.answer(502, "<html>" + std::string(1000, 'x'));
  const auto answer = send(Method::kGet);
  CHECK_THAT(answer.error().message, Catch::Contains("502") && Catch::Contains("<html>"));
  CHECK(answer.error().message.size() < 300);
}

TEST_CASE_METHOD(ApiFixture, "after a 401 a newer token is tried once, for writes and watches, too") {
  http.answer(401, status_object("who?"));
  http.answer(200, "done");
  write_token("two");
  CHECK(send(Method::kPost)->body == "done");
  REQUIRE(http.requests.size() == 2);
  CHECK(http.requests[1].bearer.reveal() == "two");
  CHECK(http.requests[1].body == "{}");

  http.answer(401, status_object("who?"));
  http.answer(401, status_object("who?"));
  write_token("three");
  CHECK(watch().error().kind == ErrorKind::kUnauthenticated);
  CHECK(http.requests.size() == 4);
}

TEST_CASE_METHOD(ApiFixture, "after a 401 the same token is not tried again") {
  http.answer(401, status_object("who?"));
  CHECK(send(Method::kGet).error().kind == ErrorKind::kUnauthenticated);
  CHECK(http.requests.size() == 1);
}

TEST_CASE_METHOD(ApiFixture, "a watch is the body of the answer") {
  http.answer(200, "event\n");
  const auto stream = watch();
  REQUIRE(stream);
  CHECK(*r.run((*stream)->read(r.timers.now() + 1s)) == "event\n");
  CHECK(*r.run((*stream)->read(r.timers.now() + 1s)) == "");
}

TEST_CASE_METHOD(ApiFixture, "errors of the transport are handed on") {
  http.answers.emplace_back(base::fail(ErrorKind::kUnknownOutcome, "lost"));
  CHECK(send(Method::kPost).error().kind == ErrorKind::kUnknownOutcome);
}

TEST_CASE("a Status is read, anything else is not") {
  CHECK(kube::decode_status(status_object("m")).message == "m");
  for (const char* text :
       {"", "{", "[]", "7", "null", R"({"message":"m"})", R"({"kind":7,"message":"m"})",
        R"({"kind":"Status","message":7,"details":[]})", R"({"kind":"Status","details":{"retryAfterSeconds":-1}})",
        R"({"kind":"Status","details":{"retryAfterSeconds":1e300}})"}) {
    CAPTURE(text);
    CHECK(kube::decode_status(text).message.empty());
    CHECK_FALSE(kube::decode_status(text).retry_after);
  }
}
