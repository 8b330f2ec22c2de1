#include "vk-provider/provider/handler_runner.hpp"

#include <catch2/catch.hpp>

#include "test/support/answering_provider.hpp"
#include "test/support/virtual_time.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::provider;
using base::ErrorKind;
using model::Handler;

namespace {

/// A machine, the daemon's way out, and one handler at a time.
class Bench {
 public:
  Bench() {
    target.provider = &provider;
    target.container = "main";
  }

  base::Result<void> run(Handler handler, base::Duration timeout = 5s) {
    HandlerRunner runner(reactor.timers, [this](const std::string& host, int port, base::Deadline deadline) {
      return connect(host + ":" + std::to_string(port), deadline);
    });
    return reactor.run(runner.run(target, std::move(handler), reactor.timers.now() + timeout));
  }
  async::Task<async::ByteStreamPtr> connect(std::string where, base::Deadline /*deadline*/) {
    connected.push_back(std::move(where));
    co_return stream();
  }
  /// The next connections answer so, one after the other; the last answer is given again.
  void answers(std::vector<std::string> texts, bool silent = false) {
    answers_ = std::move(texts);
    silent_ = silent;
    provider.stream = [this] { return base::Result<async::ByteStreamPtr>(stream()); };
  }
  void exits(int code, std::string output = {}, std::string errors = {}, bool hangs = false) {
    provider.exec = [=, this] {
      return base::Result<provider::ExecSessionPtr>(
          std::make_unique<test::ScriptedExec>(reactor.timers, output, errors, code, hangs));
    };
  }

  test::VirtualReactor reactor;
  test::AnsweringProvider provider;
  HandlerTarget target;
  std::vector<std::string> connected;
  std::shared_ptr<std::string> sent = std::make_shared<std::string>();

 private:
  async::ByteStreamPtr stream() {
    std::string text = answers_.front();
    if (answers_.size() > 1) answers_.erase(answers_.begin());
    return std::make_unique<test::CannedStream>(reactor.timers, std::deque<std::string>{text}, silent_, sent);
  }

  std::vector<std::string> answers_{""};
  bool silent_ = false;
};

Handler http(int port = 8080, const std::string& path = "/healthz") {
  Handler handler;
  handler.kind = Handler::Kind::kHttpGet;
  handler.port = port;
  handler.path = path;
  return handler;
}

std::string answer(int status, const std::string& more = "") {
  return "HTTP/1.1 " + std::to_string(status) + " Whatever\r\n" + more + "Content-Length: 2\r\n\r\nok";
}

Handler of(Handler::Kind kind) {
  Handler handler;
  handler.kind = kind;
  handler.port = 5000;
  return handler;
}

std::string frame(int type, int flags, int stream, const std::string& payload) {
  std::string out{
      '\0', '\0', static_cast<char>(payload.size()), static_cast<char>(type), static_cast<char>(flags), '\0',
      '\0', '\0', static_cast<char>(stream)};
  return out + payload;
}

}  // namespace

TEST_CASE("exec: the exit code decides, and what it printed is shown") {
  Bench bench;
  Handler handler;
  handler.command = {"test", "-f", "/ready"};
  bench.exits(0, "fine");
  CHECK(bench.run(handler));
  REQUIRE(bench.provider.execs.size() == 1);
  CHECK(bench.provider.execs[0].container == "main");
  CHECK(bench.provider.execs[0].command == handler.command);
  CHECK(bench.provider.execs[0].repeated);
  bench.exits(3, "not ", "yet");
  const auto failed = bench.run(handler);
  CHECK(failed.error().kind == ErrorKind::kInvalid);
  CHECK(failed.error().message == "exit code 3: not yet");
  bench.exits(1, std::string(100'000, 'x'));
  CHECK(bench.run(handler).error().message.size() < 1100);
}

TEST_CASE("exec: a process that hangs ends the run at its time-out") {
  Bench bench;
  bench.exits(0, "", "", true);
  const base::TimePoint began = bench.reactor.timers.now();
  CHECK(bench.run(Handler(), 2s).error().kind == ErrorKind::kDeadline);
  CHECK(bench.reactor.timers.now() - began == 2s);
}

TEST_CASE("httpGet: 200 to 399 pass") {
  for (const auto& [status, passes] : std::vector<std::pair<int, bool>>{{199, false},
                                                                        {200, true},
                                                                        {204, true},
                                                                        {304, true},
                                                                        {399, true},
                                                                        {400, false},
                                                                        {404, false},
                                                                        {503, false}}) {
    INFO(status);
    Bench bench;
    bench.answers({answer(status)});
    const auto result = bench.run(http());
    if (status == 199) continue;  // an interim answer; what follows is missing
    CHECK(result.has_value() == passes);
    if (!passes) CHECK(result.error().message == "HTTP probe failed with statuscode: " + std::to_string(status));
  }
}

TEST_CASE("httpGet: what is sent, and where to") {
  Bench bench;
  bench.answers({answer(200)});
  Handler handler = http(8080, "health z?a=1");
  SECTION("through the provider, where nothing is routable") {
    CHECK(bench.run(handler));
    CHECK(bench.provider.dials == std::vector<int>{8080});
    CHECK(bench.sent->starts_with("GET /health%20z?a=1 HTTP/1.1\r\nHost: localhost:8080\r\n"));
    CHECK(bench.sent->find("User-Agent: kube-probe/") != std::string::npos);
  }
  SECTION("to the instance's address") {
    bench.target.address = "10.1.2.3";
    CHECK(bench.run(handler));
    CHECK(bench.connected == std::vector<std::string>{"10.1.2.3:8080"});
    CHECK(bench.sent->find("Host: 10.1.2.3:8080\r\n") != std::string::npos);
  }
  SECTION("to a host of its own, with headers of its own") {
    handler.host = "gateway.example";
    handler.headers.emplace_back().name = "Host";
    handler.headers.back().value = "inside.example";
    handler.headers.emplace_back().name = "X-Probe";
    handler.headers.back().value = "yes";
    CHECK(bench.run(handler));
    CHECK(bench.connected == std::vector<std::string>{"gateway.example:8080"});
    CHECK(bench.sent->find("Host: inside.example\r\n") != std::string::npos);
    CHECK(bench.sent->find("X-Probe: yes\r\n") != std::string::npos);
    CHECK(bench.sent->find("gateway") == std::string::npos);
  }
}

TEST_CASE("httpGet: redirects are followed on the same host, and lead to success elsewhere") {
  Bench bench;
  bench.target.address = "10.1.2.3";
  SECTION("a path") {
    bench.answers({answer(302, "Location: /deep\r\n"), answer(500)});
    CHECK_FALSE(bench.run(http()));
    CHECK(bench.sent->find("GET /deep HTTP/1.1\r\n") != std::string::npos);
  }
  SECTION("the same host in full") {
    bench.answers({answer(301, "Location: http://10.1.2.3:8080/deep\r\n"), answer(200)});
    CHECK(bench.run(http()));
    CHECK(bench.connected.size() == 2);
  }
  SECTION("another host") {
    bench.answers({answer(302, "Location: http://login.example/\r\n"), answer(500)});
    CHECK(bench.run(http()));
    CHECK(bench.connected.size() == 1);
  }
  SECTION("for ever") {
    bench.answers({answer(302, "Location: /again\r\n")});
    CHECK(bench.run(http()).error().message == "stopped after 10 redirects");
  }
}

TEST_CASE("httpGet: silence ends at the time-out, and rubbish is told") {
  Bench bench;
  bench.answers({"HTTP/1.1 2"}, true);
  CHECK(bench.run(http(), 1s).error().kind == ErrorKind::kDeadline);
  bench.answers({"SSH-2.0-OpenSSH\r\n\r\n"});
  CHECK(bench.run(http()).error().kind == ErrorKind::kInvalid);
  bench.answers({"HTTP/1.1 200 OK\r\n"});
  CHECK(bench.run(http()).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE("tcpSocket: whoever accepts passes") {
  Bench bench;
  bench.answers({""});
  CHECK(bench.run(of(Handler::Kind::kTcpSocket)));
  bench.provider.stream = [] {
    return base::Result<async::ByteStreamPtr>(base::fail(ErrorKind::kUnavailable, "connection refused"));
  };
  CHECK(bench.run(of(Handler::Kind::kTcpSocket)).error().message == "connection refused");
}

TEST_CASE("sleep takes its time, and no more than there is") {
  Bench bench;
  Handler handler = of(Handler::Kind::kSleep);
  handler.sleep = 3s;
  const base::TimePoint began = bench.reactor.timers.now();
  CHECK(bench.run(handler));
  CHECK(bench.reactor.timers.now() - began == 3s);
  CHECK(bench.run(handler, 1s).error().kind == ErrorKind::kDeadline);
}

TEST_CASE("grpc: SERVING passes, and what is asked is one Check of the service") {
  Bench bench;
  Handler handler = of(Handler::Kind::kGrpc);
  handler.service = "db";
  const std::string settings = frame(4, 0, 0, "");
  const std::string headers = frame(1, 4, 1, "\x88");
  const std::string serving("\0\0\0\0\2\x08\1", 7);
  SECTION("it serves") {
    bench.answers({settings + headers + frame(0, 0, 1, serving) + frame(1, 5, 1, "\x88")});
    CHECK(bench.run(handler));
    CHECK(bench.sent->starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    CHECK(bench.sent->find("/grpc.health.v1.Health/Check") != std::string::npos);
    CHECK(bench.sent->find(std::string("\0\0\0\0\4\x0a\2db", 9)) != std::string::npos);
    // The settings are acknowledged.
    CHECK(bench.sent->ends_with(std::string("\0\0\0\4\1\0\0\0\0", 9)));
  }
  SECTION("it does not serve") {
    bench.answers({settings + headers + frame(0, 0, 1, std::string("\0\0\0\0\2\x08\2", 7)) + frame(1, 5, 1, "\x88")});
    CHECK(bench.run(handler).error().message == "gRPC health check: it is not SERVING");
  }
  SECTION("it does not know the service") {
    bench.answers({settings + frame(1, 5, 1, "\x88")});
    CHECK(bench.run(handler).error().message == "gRPC health check: it answered with an error");
  }
  SECTION("it is no HTTP/2") {
    bench.answers({"HTTP/1.1 400 Bad Request\r\n\r\n"});
    CHECK_FALSE(bench.run(handler));
  }
  SECTION("it is silent") {
    bench.answers({settings}, true);
    CHECK(bench.run(handler, 1s).error().kind == ErrorKind::kDeadline);
  }
}
