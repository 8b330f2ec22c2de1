// Execs, attaches and dials: what is asked of an engine, and what its answers mean.
#include "test/support/docker_stream.hpp"
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
using nlohmann::json;

namespace {

constexpr const char* kTag = "spw-a-1";

/// An engine that hands over `script` for whatever is started or attached to.
struct ExecRig : DockerRig {
  ExecRig() : script(std::make_shared<DockerStreamScript>(reactor.timers)) {
    REQUIRE(create(placement(kTag)));
    settle();
    engine().before = [this](const net::HttpRequest& request) { return answer(request); };
    engine().streams = [this](const net::HttpRequest& request) { return open_stream(request); };
  }

  std::optional<DockerEngineModel::Response> answer(const net::HttpRequest& request) {
    const auto done = [](int status, const json& body) { return DockerEngineModel::answer(status, body); };
    if (request.target.ends_with("/exec")) {
      bodies.push_back(json::parse(request.body));
      if (create_status != 201) return done(create_status, {{"message", "no exec here"}});
      if (numbered) ++execs;
      return done(201, {{"Id", "e" + std::to_string(execs)}});
    }
    if (request.target.contains("/exec/e") && request.target.ends_with("/json")) {
      const json state = states.front();
      if (states.size() > 1) states.pop_front();
      return done(state.is_null() ? 404 : 200, state);
    }
    if (request.target.contains("/resize")) {
      sizes.push_back(request.target.substr(request.target.find('?')));
      if (resize_refusals-- > 0) return done(500, {{"message", "no such process"}});
      return done(200, json::object());
    }
    return std::nullopt;
  }

  std::optional<base::Result<net::HttpStream>> open_stream(const net::HttpRequest& request) {
    const bool start = request.target.contains("/exec/e") && request.target.ends_with("/start");
    if (!start && !request.target.contains("/attach")) return std::nullopt;
    opened = request;
    net::HttpStream stream;
    stream.head.status = start_status;
    if (start_status < 400) stream.body = std::make_unique<DockerModelStream>(script);
    return stream;
  }

  base::Result<provider::ExecSessionPtr> open(provider::ExecOptions options) {
    return reactor.run(provider().open_exec(ref(kTag), std::move(options), soon()));
  }
  base::Result<async::ByteStreamPtr> dial(int port) { return reactor.run(provider().dial(ref(kTag), port, soon())); }

  static provider::ExecOptions options() {
    provider::ExecOptions out;
    out.container = "main";
    out.command = {"ls", "-l"};
    return out;
  }

  std::shared_ptr<DockerStreamScript> script;
  std::vector<json> bodies;
  std::deque<json> states = {{{"Running", false}, {"ExitCode", 0}}};
  std::vector<std::string> sizes;
  std::optional<net::HttpRequest> opened;
  bool numbered = false;  // each exec has an id of its own
  int execs = 1;
  int create_status = 201;
  int start_status = 101;
  int resize_refusals = 0;
};

std::string output_frame(const std::string& bytes) {
  return std::string("\1\0\0\0\0\0\0", 7) + static_cast<char>(bytes.size()) + bytes;
}

}  // namespace

TEST_CASE_METHOD(ExecRig, "docker exec: what is asked for") {
  provider::ExecOptions wanted = options();
  wanted.stdin_open = true;
  auto session = open(wanted);
  REQUIRE(session);
  CHECK(engine().count("POST /v1.41/containers/spw-a-1-main/exec") == 1);
  CHECK(bodies.front() == json::parse(R"({"AttachStdin": true, "AttachStdout": true, "AttachStderr": true,
                                          "Tty": false, "Cmd": ["ls", "-l"]})"));
  REQUIRE(opened);
  CHECK(opened->headers == std::vector<net::Header>{{"Connection", "Upgrade"}, {"Upgrade", "tcp"}});
  CHECK(json::parse(opened->body) == json::parse(R"({"Detach": false, "Tty": false})"));

  REQUIRE(reactor.run((*session)->input()->write("in", soon())));
  REQUIRE(reactor.run((*session)->input()->close_write(soon())));
  CHECK(script->written == "in");
  CHECK(script->write_closed);
  script->give(output_frame("out"));
  CHECK(*reactor.run((*session)->output().read(soon())) == "out");
  CHECK(reactor.run((*session)->output().write("x", soon())).error().kind == ErrorKind::kUnsupported);
  CHECK(reactor.run((*session)->input()->read(soon())).error().kind == ErrorKind::kUnsupported);
  session->reset();
  CHECK(script->destroyed);
}

TEST_CASE_METHOD(ExecRig, "docker exec: an exit code is waited for, also when the engine first knows none") {
  states = {{{"Running", false}, {"ExitCode", nullptr}},
            {{"Running", true}, {"ExitCode", nullptr}},
            {{"Running", true}, {"ExitCode", 0}},
            {{"Running", false}, {"ExitCode", 42}}};
  auto session = open(options());
  REQUIRE(session);
  CHECK((*session)->input() == nullptr);
  CHECK(reactor.run((*session)->exit_code(soon())) == 42);

  states = {{{"Running", true}}};
  CHECK(reactor.run((*session)->exit_code(soon())).error().kind == ErrorKind::kDeadline);
  states = {nullptr};  // the engine was started anew, and knows no execs
  CHECK(reactor.run((*session)->exit_code(soon())).error().kind == ErrorKind::kNotFound);
  engine().reachable = false;
  engine().before = nullptr;
  CHECK(reactor.run((*session)->exit_code(soon())).error().kind == ErrorKind::kUnavailable);
}

TEST_CASE_METHOD(ExecRig, "docker exec: refusals are no outage of the host") {
  create_status = 404;
  CHECK(open(options()).error().kind == ErrorKind::kNotFound);
  create_status = 409;
  CHECK(open(options()).error().kind == ErrorKind::kConflict);
  CHECK(dial(80).error().kind == ErrorKind::kConflict);
  create_status = 201;
  start_status = 409;
  CHECK(open(options()).error().kind == ErrorKind::kConflict);
  provider::ExecOptions binary = options();
  binary.command = {"\xff"};
  CHECK(open(binary).error().kind == ErrorKind::kInvalid);
}

TEST_CASE_METHOD(ExecRig, "docker exec: an engine that does not hand over the connection can be read at best") {
  start_status = 200;
  auto readable = open(options());
  REQUIRE(readable);
  script->give(output_frame("out"));
  CHECK(*reactor.run((*readable)->output().read(soon())) == "out");
  provider::ExecOptions writing = options();
  writing.stdin_open = true;
  CHECK(open(writing).error().kind == ErrorKind::kUnsupported);
}

TEST_CASE_METHOD(ExecRig, "docker exec: a terminal gets its size once the process has begun") {
  states = {{{"Running", false}}, {{"Running", true}}};
  resize_refusals = 2;
  provider::ExecOptions wanted = options();
  wanted.tty = true;
  wanted.size = provider::TerminalSize();
  auto session = open(wanted);
  REQUIRE(session);
  CHECK(sizes == std::vector<std::string>(3, "?h=24&w=80"));
  CHECK((*session)->errors() == nullptr);
  script->give("raw");
  CHECK(*reactor.run((*session)->output().read(soon())) == "raw");
  provider::TerminalSize size;
  size.rows = 0;
  CHECK(reactor.run((*session)->resize(size, soon())));
  CHECK(sizes.size() == 3);

  states = {{{"Running", false}, {"ExitCode", 0}}};
  resize_refusals = 1000;
  CHECK(reactor.run((*session)->resize(provider::TerminalSize(), soon())));
  states = {nullptr};
  CHECK(reactor.run((*session)->resize(provider::TerminalSize(), soon())));
  states = {{{"Running", true}}};
  CHECK(reactor.run((*session)->resize(provider::TerminalSize(), soon())).error().kind == ErrorKind::kDeadline);
}

TEST_CASE_METHOD(ExecRig, "docker attach: no command joins the container's own process") {
  provider::ExecOptions wanted = options();
  wanted.command.clear();
  wanted.stdin_open = true;
  auto session = open(wanted);
  REQUIRE(session);
  REQUIRE(opened);
  CHECK(says(opened->target, "/attach?stream=1&stdout=1&stderr=1&stdin=1"));
  CHECK(opened->body.empty());
  CHECK(reactor.run((*session)->exit_code(soon())).error().kind == ErrorKind::kUnsupported);

  engine().exit("spw-a-1-main", 0);
  const auto stopped = open(wanted);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().kind == ErrorKind::kConflict);
  CHECK(says(stopped.error().message, "is not running"));
}

TEST_CASE_METHOD(ExecRig, "docker dial: the relay runs in the sandbox, and its status byte is taken off") {
  script->give(output_frame(std::string("\0\0\2hi", 5)));
  const auto stream = dial(8080);
  REQUIRE(stream);
  CHECK(engine().count("POST /v1.41/containers/spw-a-1/exec") == 1);
  CHECK(bodies.front()["Cmd"] == json({"/relay", "8080"}));
  CHECK(bodies.front()["AttachStdin"] == true);
  CHECK(*reactor.run((*stream)->read(soon())) == "hi");
  REQUIRE(reactor.run((*stream)->write("yo", soon())));
  REQUIRE(reactor.run((*stream)->write("", soon())));
  REQUIRE(reactor.run((*stream)->close_write(soon())));
  CHECK(script->written == std::string("\0\2yo\0\0", 6));
  CHECK_FALSE(script->write_closed);  // that would be the death of the daemon
  script->give(output_frame(std::string(2, '\0')));
  CHECK(*reactor.run((*stream)->read(soon())) == "");
  CHECK(*reactor.run((*stream)->read(soon())) == "");
}

TEST_CASE_METHOD(ExecRig, "docker exec: a repeated command that hangs is not begun again for ever") {
  numbered = true;
  states = {{{"Running", true}, {"ExitCode", nullptr}}};
  provider::ExecOptions probe = options();
  probe.repeated = true;
  // Each session dies before its process.
  for (int i = 0; i < 5; ++i) REQUIRE(open(probe));
  CHECK(engine().count("GET /v1.41/exec/") == 0);
  const auto refused = open(probe);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kDeadline);
  CHECK(refused.error().message == "5 earlier runs of the command have not ended yet");
  CHECK(execs == 6);
  SECTION("another command, and a person's, are begun") {
    REQUIRE(open(options()));
    probe.command = {"other"};
    REQUIRE(open(probe));
  }
  SECTION("once one has ended there is room for another") {
    states = {{{"Running", false}, {"ExitCode", 1}}, {{"Running", true}, {"ExitCode", nullptr}}};
    REQUIRE(open(probe));
    CHECK_FALSE(open(probe));
  }
  SECTION("a process that is known to have ended is none that was left") {
    states = {{{"Running", false}, {"ExitCode", 0}}};
    probe.command = {"other"};
    for (int i = 0; i < 9; ++i) {
      auto session = open(probe);
      REQUIRE(session);
      CHECK(*reactor.run((*session)->exit_code(soon())) == 0);
    }
  }
  SECTION("with its container they are forgotten") {
    engine().before = nullptr;
    engine().remove("spw-a-1-main");
    REQUIRE(list());
    CHECK(open(probe).error().kind != ErrorKind::kDeadline);
  }
}

TEST_CASE_METHOD(ExecRig, "docker dial: a connection that breaks off is no end") {
  script->give(output_frame(std::string(1, '\0')));
  const auto stream = dial(8080);
  REQUIRE(stream);
  script->give_end();
  const auto cut = reactor.run((*stream)->read(soon()));
  REQUIRE_FALSE(cut);
  CHECK(cut.error().kind == ErrorKind::kUnavailable);
  CHECK(cut.error().message == "the connection to port 8080 of instance spw-a-1 broke off");
}

TEST_CASE_METHOD(ExecRig, "docker dial: why a port cannot be reached") {
  const auto why = [this](const std::string& bytes) {
    script = std::make_shared<DockerStreamScript>(reactor.timers);
    bytes.empty() ? script->give_end() : script->give(output_frame(bytes));
    const auto refused = dial(8080);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind == ErrorKind::kConflict);
    CHECK(script->destroyed);
    return refused.error().message;
  };
  const std::string prefix = "port 8080 of instance spw-a-1 cannot be connected to: ";
  CHECK(why(std::string(1, static_cast<char>(ECONNREFUSED))) == prefix + "nothing listens on it");
  CHECK(why(std::string(1, static_cast<char>(EINPROGRESS))) == prefix + "what listens on it accepts no connection");
  CHECK(why("") == prefix + "its sandbox has ended");
  CHECK(says(why("OCI runtime exec failed: \"/relay\": no such file"), "does not run the relay: OCI runtime"));
  script = std::make_shared<DockerStreamScript>(reactor.timers);
  CHECK(dial(8080).error().message == prefix + "it did not answer in time");
}
