// stream_server: exec, port-forward and logs of a pod that does not exist, for clients of others to try.
//
//   stream_server [tls]
//
// Prints its port on 127.0.0.1 and serves until its standard input ends; with TLS under a certificate of nobody's.
// /exec runs what is named as `command`:
//   cat         gives its input back
//   drop        reads its input to the end and prints how many bytes there were
//   deaf        does not read its input, and ends after a second
//   both        a line on each output
//   exit N      ends with the code N
//   flood N     N MiB on the output
//   size WxH    waits until its terminal has this size, and says so
//   refused     cannot be begun
// /portForward connects to the port on 127.0.0.1. /log?mib=N streams N MiB.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "test/support/certificates.hpp"
#include "test/support/fake_process.hpp"
#include "vk-provider/api/port_forward.hpp"
#include "vk-provider/api/remote_command.hpp"
#include "vk-provider/async/reactor.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/net/http_server.hpp"
#include "vk-provider/net/tcp_stream.hpp"

namespace {

namespace asio = boost::asio;
using namespace spillway;
using async::Pipe;

constexpr std::size_t kMiB = 1024 * 1024;

std::size_t number(const std::vector<std::string>& words) { return words.size() < 2 ? 0 : std::stoul(words[1]); }

async::Loop flood(test::FakeProcessPtr process, std::size_t bytes) {
  for (std::size_t sent = 0; sent < bytes; sent += 32 * 1024) {
    process->output->put(std::string(32 * 1024, 'x'));
    co_await Pipe::wait_for_room(process->output, base::Deadline::max());
  }
}

/// Until the input ends; what came is counted, and given back if that is wanted.
asio::awaitable<std::size_t> take_input(test::FakeProcessPtr process, bool give_back) {
  for (std::size_t count = 0;;) {
    const auto bytes = co_await Pipe::read(process->input, base::Deadline::max());
    if (!bytes || bytes->empty()) co_return count;
    count += bytes->size();
    if (give_back) process->output->put(*bytes);
    co_await Pipe::wait_for_room(process->output, base::Deadline::max());
  }
}

async::Loop play(test::FakeProcessPtr process, std::vector<std::string> words, async::Timers& timers) {
  const std::string name = words.empty() ? "" : words[0];
  int code = 0;
  if (name == "cat") co_await take_input(process, true);
  if (name == "drop") process->output->put(std::to_string(co_await take_input(process, false)) + "\n");
  if (name == "deaf") co_await timers.sleep_for(std::chrono::seconds(1));
  if (name == "both") {
    process->output->put("out\n");
    process->errors->put("err\n");
  }
  if (name == "exit") code = static_cast<int>(number(words));
  if (name == "flood") co_await flood(process, number(words) * kMiB);
  if (name == "size") {
    const auto has_it = [&] {
      if (process->sizes.empty()) return false;
      const auto& size = process->sizes.back();
      return std::to_string(size.columns) + "x" + std::to_string(size.rows) == words.at(1);
    };
    while (!has_it()) co_await timers.sleep_for(std::chrono::milliseconds(5));
    process->output->put(words.at(1) + "\n");
  }
  process->exit(code);
}

class FloodStream final : public async::ByteStream {
 public:
  explicit FloodStream(std::size_t bytes) : left_(bytes) {}
  async::Task<std::string> read(base::Deadline) override {
    const std::size_t n = std::min<std::size_t>(left_, 32 * 1024);
    left_ -= n;
    co_return std::string(n, 'x');
  }
  async::Task<void> write(std::string, base::Deadline) override { co_return base::Result<void>(); }
  async::Task<void> close_write(base::Deadline) override { co_return base::Result<void>(); }

 private:
  std::size_t left_;
};

class StreamServer {
 public:
  StreamServer(async::Reactor& reactor, bool tls)
      : reactor_(reactor),
        processes_(reactor.executor()),
        server_(reactor.executor(), reactor.timers(), config(tls),
                [this](net::HttpServerRequest request) { return handle(std::move(request)); }) {}

  base::Result<void> start() { return server_.start(); }
  std::uint16_t port() const { return server_.port(); }

  async::Loop run_until_input_ends() {
    asio::posix::stream_descriptor input(reactor_.context(), ::dup(STDIN_FILENO));
    std::array<char, 64> buffer{};
    for (boost::system::error_code ec; !ec;) {
      const auto [failed, n] =
          co_await input.async_read_some(asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
      ec = failed;
    }
    co_await server_.stop(reactor_.timers().now());
    co_await processes_.stop();
    reactor_.stop();
  }

 private:
  static net::HttpServerConfig config(bool tls) {
    net::HttpServerConfig out;
    if (tls) {
      const test::Certificate leaf = test::issue(test::make_ca("nobody"), "server", {"IP:127.0.0.1"});
      out.tls.cert_pem = leaf.cert_pem;
      out.tls.key_pem = leaf.key_pem;
    }
    out.max_connections = 1000;
    out.max_streams = 1000;
    return out;
  }

  asio::awaitable<net::HttpServerResponse> handle(net::HttpServerRequest request) {
    co_return answer(std::move(request));
  }

  net::HttpServerResponse answer(net::HttpServerRequest request) {
    const net::Query query(request.query());
    if (request.path() == "/exec") {
      const auto wanted = api::parse_remote_streams(query);
      if (!wanted) return {400, "text/plain", wanted.error().message};
      provider::ExecOptions options;
      options.command = query.all("command");
      options.stdin_open = wanted->input;
      options.tty = wanted->tty;
      return api::answer_remote_command(
          std::move(request), *wanted, [this, options](base::Deadline) { return begin(options); }, reactor_.timers());
    }
    if (request.path() == "/portForward") {
      return api::answer_port_forward(
          std::move(request), "default/pod",
          [this](int port, base::Deadline deadline) {
            return net::connect_tcp(reactor_.executor(), reactor_.timers(), "127.0.0.1",
                                    static_cast<std::uint16_t>(port), deadline);
          },
          reactor_.timers());
    }
    net::HttpServerResponse response;
    const auto mib = query.find("mib");
    response.stream = std::make_unique<FloodStream>(kMiB * (mib ? std::stoul(std::string(*mib)) : 1));
    return response;
  }

  async::Task<provider::ExecSessionPtr> begin(provider::ExecOptions options) {
    if (!options.command.empty() && options.command[0] == "refused") {
      co_return base::fail(base::ErrorKind::kUnsupported, "this provider cannot run commands");
    }
    const auto process = std::make_shared<test::FakeProcess>(reactor_.timers());
    processes_.spawn(play(process, options.command, reactor_.timers()));
    co_return std::make_unique<test::FakeExecSession>(process, options);
  }

  async::Reactor& reactor_;
  async::TaskGroup processes_;
  net::HttpServer server_;
};

}  // namespace

int main(int argc, char** argv) {
  async::Reactor reactor;
  StreamServer server(reactor, argc > 1 && std::string_view(argv[1]) == "tls");
  const auto started = server.start();
  if (!started) {
    std::fprintf(stderr, "stream_server: %s\n", started.error().message.c_str());
    return 1;
  }
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  async::TaskGroup group(reactor.executor());
  group.spawn(server.run_until_input_ends());
  reactor.run();
  return 0;
}
