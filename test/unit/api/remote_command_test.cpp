#include "vk-provider/api/remote_command.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "test/support/duplex.hpp"
#include "test/support/fake_process.hpp"
#include "test/support/one_request.hpp"
#include "test/support/spdy_client.hpp"
#include "test/support/virtual_time.hpp"
#include "test/support/websocket_client.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using base::ErrorKind;
using net::spdy::FrameType;
using nlohmann::json;

namespace {

constexpr const char* kSpdyRequest =
    "POST /exec HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    "X-Stream-Protocol-Version: v5.channel.k8s.io\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";

json exit_status(int code) {
  return code == 0 ? json{{"metadata", json::object()}, {"status", "Success"}}
                   : json{{"metadata", json::object()},
                          {"status", "Failure"},
                          {"reason", "NonZeroExitCode"},
                          {"message", "command terminated with non-zero exit code: exit code " + std::to_string(code)},
                          {"details",
                           {{"causes", json::array({{{"reason", "ExitCode"}, {"message", std::to_string(code)}}})}}}};
}

async::Loop note_end(async::Loop task, bool& ended) {
  co_await std::move(task);
  ended = true;
}

struct ExecFixture {
  ExecFixture() : group(r.ctx.get_executor()) {}
  ~ExecFixture() { r.run(group.stop()); }

  static async::Task<provider::ExecSessionPtr> open_session(ExecFixture* self) {
    ++self->opened;
    if (self->refusal) co_return base::fail(*self->refusal);
    provider::ExecOptions options;
    options.stdin_open = self->wanted.input;
    options.tty = self->wanted.tty;
    co_return std::make_unique<test::FakeExecSession>(self->process, options);
  }

  /// The client's end of a connection on which a request is answered.
  async::ByteStreamPtr connect() {
    process = std::make_shared<test::FakeProcess>(r.timers);
    auto [ours, theirs] = test::make_duplex(r.timers);
    group.spawn(note_end(test::serve_one_request(std::move(ours),
                                                 [this](net::HttpServerRequest request) {
                                                   return api::answer_remote_command(
                                                       std::move(request), wanted,
                                                       [this](base::Deadline) { return open_session(this); }, r.timers,
                                                       times);
                                                 }),
                         left));
    return std::move(theirs);
  }
  base::Deadline in(base::Duration d) { return r.timers.now() + d; }

  void start_spdy() {
    async::ByteStreamPtr connection = connect();
    REQUIRE(r.run(connection->write(kSpdyRequest, in(1s))));
    CHECK_THAT(*r.run(connection->read(in(1s))),
               Catch::StartsWith("HTTP/1.1 101") && Catch::Contains("v4.channel.k8s.io"));
    client = std::make_unique<test::SpdyClient>(std::move(connection));
  }
  /// Opens a stream; its id.
  std::uint32_t open(const std::string& type) {
    const std::uint32_t id = *r.run(client->open({{"streamType", type}}));
    CHECK(next().type == FrameType::kReply);
    return id;
  }
  test::SpdyFrame next() {
    auto frame = r.run(client->next(in(1h)));
    REQUIRE(frame);
    return *frame;
  }

  std::string start_websocket(const std::string& protocol) {
    socket = std::make_unique<test::WebSocketClient>(r.ctx.get_executor(), connect());
    auto picked = r.run(socket->handshake("/exec", protocol));
    return picked ? *picked : picked.error().message;
  }
  std::string message() {
    auto got = r.run(socket->next());
    REQUIRE(got);
    return got->value_or("closed " + std::to_string(socket->close_code()));
  }
  std::string typed() { return r.run(async::Pipe::read(process->input, in(1s))).value_or("nothing"); }

  test::VirtualReactor r;
  api::RemoteStreams wanted;
  api::StreamTimes times;
  std::optional<base::Error> refusal;
  test::FakeProcessPtr process;
  std::unique_ptr<test::SpdyClient> client;
  std::unique_ptr<test::WebSocketClient> socket;
  int opened = 0;
  bool left = false;
  async::TaskGroup group;
};

}  // namespace

TEST_CASE("exec: which streams a client asks for") {
  const auto parse = [](const char* query) { return api::parse_remote_streams(net::Query(query)); };
  const auto all = parse("command=a&input=1&output=1&error=1");
  REQUIRE(all);
  CHECK((all->input && all->output && all->errors && !all->tty));
  const auto tty = parse("output=1&error=1&tty=1");
  REQUIRE(tty);
  CHECK((!tty->input && tty->output && !tty->errors && tty->tty));
  CHECK(parse("input=true&tty=1").error().kind == ErrorKind::kInvalid);
  CHECK(parse("tty=1&error=1").error().kind == ErrorKind::kInvalid);
}

TEST_CASE_METHOD(ExecFixture, "exec over SPDY: bytes both ways, errors apart, the end of input, the exit code") {
  wanted.input = wanted.output = wanted.errors = true;
  start_spdy();
  const auto status = open("error");
  const auto input = open("stdin");
  const auto output = open("stdout");
  CHECK(opened == 0);
  const auto errors = open("stderr");
  r.settle();
  CHECK(opened == 1);

  REQUIRE(r.run(client->data(input, "hello")));
  CHECK(typed() == "hello");
  REQUIRE(r.run(client->data(input, "", true)));
  CHECK(typed() == "");
  process->output->put("out");
  auto frame = next();
  CHECK(frame.stream == output);
  CHECK(frame.data == "out");
  process->errors->put("err");
  frame = next();
  CHECK(frame.stream == errors);
  CHECK(frame.data == "err");

  const int code = GENERATE(0, 3);
  process->exit(code);
  frame = next();
  CHECK(frame.stream == status);
  CHECK(json::parse(frame.data) == exit_status(code));
  CHECK(process->closed);
  frame = next();
  CHECK(frame.stream == input);  // whatever else comes there is not wanted
  CHECK(frame.type == FrameType::kReset);
  for (const auto id : {output, errors, status}) {
    frame = next();
    CHECK(frame.stream == id);
    CHECK(frame.last);
  }
  CHECK_FALSE(left);  // it is for the client to leave
  REQUIRE(r.run(client->go_away()));
  r.settle();
  CHECK(left);
}

TEST_CASE_METHOD(ExecFixture, "exec over SPDY: with a terminal its sizes come, and no errors apart") {
  wanted.input = wanted.output = wanted.tty = true;
  wanted.errors = true;  // is not heard
  start_spdy();
  open("error");
  open("stdin");
  const auto output = open("stdout");
  const auto sizes = open("resize");
  REQUIRE(r.run(client->data(sizes, R"({"Width":80,"Height":24}{"Width":100,)")));
  REQUIRE(r.run(client->data(sizes, R"("Height":30})")));
  r.settle();
  REQUIRE(process->sizes.size() == 2);
  CHECK(process->sizes[1].columns == 100);
  CHECK(process->sizes[1].rows == 30);
  REQUIRE(r.run(client->data(sizes, "rubbish}")));
  REQUIRE(r.run(client->data(sizes, "more rubbish")));
  process->output->put("$ ");
  CHECK(next().stream == output);
  process->exit(0);
  CHECK(json::parse(next().data) == exit_status(0));
  // What the client might still say is not wanted.
  CHECK(next().type == FrameType::kReset);
  CHECK(next().type == FrameType::kReset);
}

TEST_CASE_METHOD(ExecFixture, "exec over SPDY: a client that resets its sizes can still type") {
  wanted.input = wanted.output = wanted.tty = true;
  start_spdy();
  open("error");
  const auto input = open("stdin");
  open("stdout");
  const auto sizes = open("resize");
  r.settle();
  REQUIRE(r.run(client->reset(sizes)));
  r.settle();
  REQUIRE(r.run(client->data(input, "hello")));
  CHECK(typed() == "hello");
}

TEST_CASE_METHOD(ExecFixture, "exec over SPDY: streams that were not asked for are reset") {
  wanted.output = true;
  start_spdy();
  open("error");
  for (const std::string type : {"stdin", "resize", "error", "nonsense", ""}) {
    REQUIRE(r.run(client->open({{"streamType", type}})));
    CHECK(next().type == FrameType::kReset);
  }
  open("stdout");
  r.settle();
  CHECK(opened == 1);
}

TEST_CASE_METHOD(ExecFixture, "exec over SPDY: a client that does not open its streams is told so, and put out") {
  wanted.output = true;
  times.farewell = 1min;
  start_spdy();
  const auto status = open("error");
  r.run_for(31s);
  const auto frame = next();
  CHECK(frame.stream == status);
  CHECK(json::parse(frame.data)["message"] ==
        "Internal error occurred: error executing command in container: the client opened no stream in time");
  CHECK(opened == 0);
  r.run_for(1min);
  CHECK(left);
}

TEST_CASE_METHOD(ExecFixture, "exec over SPDY: a process that cannot be begun is an error that the client shows") {
  wanted.output = true;
  refusal = base::Error(ErrorKind::kUnsupported, "this provider cannot run commands");
  start_spdy();
  open("error");
  open("stdout");
  CHECK(json::parse(next().data)["message"] ==
        "Internal error occurred: error executing command in container: this provider cannot run commands");
}

TEST_CASE_METHOD(ExecFixture, "exec: a process that is lost, or whose end is not known, is an error") {
  wanted.output = true;
  start_spdy();
  open("error");
  open("stdout");
  SECTION("lost") { process->output->fail(base::Error(ErrorKind::kUnavailable, "the engine is gone")); }
  SECTION("unknown") { process->exit(base::fail(ErrorKind::kUnavailable, "the engine is gone")); }
  const json status = json::parse(next().data);
  CHECK(status["reason"] == "InternalError");
  CHECK_THAT(status["message"].get<std::string>(), Catch::EndsWith("the engine is gone"));
}

TEST_CASE_METHOD(ExecFixture, "attach: without an exit code its end is a success") {
  wanted.output = true;
  start_spdy();
  open("error");
  open("stdout");
  process->exit(base::fail(ErrorKind::kUnsupported, "an attach has no exit code"));
  CHECK(json::parse(next().data) == exit_status(0));
}

TEST_CASE_METHOD(ExecFixture, "exec: a client that leaves ends the session, not the process") {
  wanted.input = wanted.output = true;
  SECTION("SPDY") {
    start_spdy();
    open("error");
    open("stdin");
    open("stdout");
    r.settle();
    REQUIRE(opened == 1);
    client->close();
  }
  SECTION("WebSocket") {
    start_websocket("v5.channel.k8s.io");
    r.settle();
    REQUIRE(opened == 1);
    socket->drop();
  }
  r.settle();
  CHECK(process->closed);
  CHECK(left);
  CHECK(typed() == "");
}

TEST_CASE_METHOD(ExecFixture, "exec: a process that does not read its input does not keep the client from leaving") {
  wanted.input = wanted.output = true;
  start_spdy();
  const auto status = open("error");
  const auto input = open("stdin");
  open("stdout");
  process->input->close_reader();
  for (int i = 0; i < 100; ++i) REQUIRE(r.run(client->data(input, std::string(16 * 1024, 'x'))));
  process->exit(1);
  CHECK(next().stream == status);
  REQUIRE(r.run(client->go_away()));
  r.settle();
  CHECK(left);
}

TEST_CASE_METHOD(ExecFixture, "exec: a client that reads no more does not stop the process") {
  wanted.output = true;
  start_spdy();
  const auto status = open("error");
  const auto output = open("stdout");
  REQUIRE(r.run(client->reset(output)));
  for (int i = 0; i < 100; ++i) {
    process->output->put(std::string(16 * 1024, 'x'));
    r.settle();
    CHECK(process->output->has_room());
  }
  process->exit(2);
  const auto frame = next();
  CHECK(frame.stream == status);
  CHECK(json::parse(frame.data) == exit_status(2));
}

TEST_CASE_METHOD(ExecFixture, "exec over WebSocket: channels, the status as JSON, and a goodbye") {
  wanted.input = wanted.output = wanted.errors = true;
  const bool v5 = GENERATE(false, true);
  const std::string protocol = v5 ? "v5.channel.k8s.io" : "v4.channel.k8s.io";
  CHECK(start_websocket(protocol) == protocol);
  CHECK(message() == "\x01");  // somebody listens
  REQUIRE(r.run(socket->send(std::string("\0hello", 6))));
  CHECK(typed() == "hello");
  if (v5) {
    REQUIRE(r.run(socket->send(std::string("\xff\0", 2))));
    CHECK(typed() == "");
  }
  process->output->put("out");
  CHECK(message() == "\x01out");
  process->errors->put("oops");
  CHECK(message() == "\x02oops");
  process->exit(3);
  const std::string status = message();
  CHECK(status.front() == '\x03');
  CHECK(json::parse(status.substr(1)) == exit_status(3));
  CHECK(message() == "closed 1000");
  r.settle();
  CHECK(left);
}

TEST_CASE_METHOD(ExecFixture, "exec over WebSocket: older protocols want the status as a text, none for a success") {
  wanted.errors = true;
  const std::string protocol = GENERATE(as<std::string>{}, "channel.k8s.io", "");
  CHECK(start_websocket(protocol) == protocol);
  CHECK(message() == "\x02");
  const int code = GENERATE(0, 3);
  process->exit(code);
  if (code != 0)
    CHECK(message() ==
          "\x03"
          "command terminated with non-zero exit code: exit code 3");
  CHECK(message() == "closed 1000");
}

TEST_CASE_METHOD(ExecFixture, "exec over WebSocket: base64 for those who have no bytes") {
  wanted.input = true;
  CHECK(start_websocket("v4.base64.channel.k8s.io") == "v4.base64.channel.k8s.io");
  CHECK(message() == "3");
  REQUIRE(r.run(socket->send("0aGVsbG8=", /*text=*/true)));
  CHECK(typed() == "hello");
  process->exit(0);
  CHECK_THAT(message(), Catch::StartsWith("3ey"));
  CHECK(socket->got_text());
}

TEST_CASE_METHOD(ExecFixture, "exec over WebSocket: sizes of the terminal come on channel 4") {
  wanted.output = wanted.tty = true;
  start_websocket("v5.channel.k8s.io");
  CHECK(message() == "\x01");
  REQUIRE(r.run(socket->send("\x04{\"Width\":90,\"Height\":20}")));
  r.settle();
  REQUIRE(process->sizes.size() == 1);
  CHECK(process->sizes[0].columns == 90);
}

TEST_CASE_METHOD(ExecFixture, "exec: what cannot be agreed on is answered without a process") {
  wanted.output = true;
  CHECK_THAT(start_websocket("v9.channel.k8s.io"), Catch::StartsWith("403 ") && Catch::Contains("unable to upgrade"));
  async::ByteStreamPtr connection = connect();
  REQUIRE(r.run(connection->write("GET /exec HTTP/1.1\r\n\r\n", in(1s))));
  CHECK_THAT(*r.run(connection->read(in(1s))), Catch::StartsWith("HTTP/1.1 400"));
  CHECK(opened == 0);
}

namespace {

/// 100 MB in pieces of odd sizes; the same for all who ask.
std::string piece_of(int i) {
  return std::string(static_cast<size_t>(30'000 + i % 7), static_cast<char>('a' + i % 26));
}
constexpr int kPieces = 3400;

async::Loop type_all(test::SpdyClient& client, std::uint32_t input) {
  for (int i = 0; i < kPieces; ++i) static_cast<void>(co_await client.data(input, piece_of(i)));
  static_cast<void>(co_await client.data(input, "", true));
}

/// Gives its input back, and looks that neither waits for the other with more than a bit in hand.
async::Loop play_cat(test::FakeProcessPtr process, size_t& most) {
  for (;;) {
    const auto bytes = co_await async::Pipe::read(process->input, base::Deadline::max());
    if (!bytes || bytes->empty()) break;
    most = std::max(most, bytes->size());
    process->output->put(*bytes);
    co_await async::Pipe::wait_for_room(process->output, base::Deadline::max());
  }
  process->exit(0);
}

}  // namespace

TEST_CASE_METHOD(ExecFixture, "exec over SPDY: a hundred megabytes through a process and back are intact") {
  wanted.input = wanted.output = true;
  start_spdy();
  const auto status = open("error");
  const auto input = open("stdin");
  const auto output = open("stdout");
  size_t most = 0;
  group.spawn(type_all(*client, input));
  group.spawn(play_cat(process, most));
  size_t total = 0;
  std::string expected;
  size_t at = 0;
  int piece = 0;
  bool same = true;
  for (;;) {
    const auto frame = next();
    if (frame.stream == status) break;
    REQUIRE(frame.stream == output);
    total += frame.data.size();
    std::string_view data = frame.data;
    while (!data.empty()) {
      if (at == expected.size()) {
        expected = piece_of(piece++);
        at = 0;
      }
      const size_t n = std::min(data.size(), expected.size() - at);
      same = same && data.substr(0, n) == std::string_view(expected).substr(at, n);
      at += n;
      data.remove_prefix(n);
    }
  }
  CHECK(same);
  CHECK(piece == kPieces);
  CHECK(at == expected.size());
  CHECK(total > 100'000'000);
  CHECK(most <= 3 * 64 * 1024);
}
