// What probes cost: thousands of pods with a readiness probe, real sockets on loopback, the CPU of the one thread that
// runs them. The containers that answer are another process, whose CPU does not count.
//
//   probe_bench [--pods N] [--period SECONDS] [--seconds N] [--kind http|tcp] [--limit PERCENT]
//
// Prints one line of JSON; exits 1 if a probe failed, or if it cost more than the limit (10 % of a core).
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <CLI/CLI.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include "test/support/answering_provider.hpp"
#include "test/support/pod_builder.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/control/probe_controller.hpp"
#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/net/tcp_stream.hpp"

namespace spillway {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// A connection that was closed keeps its pair of addresses for a minute: pods share so many addresses that there are
// always free ones.
constexpr int kAddresses = 16;

std::string address_of(int number) { return "127.0.0." + std::to_string(1 + number % kAddresses); }

// ---- the containers

asio::awaitable<void> answer(tcp::socket socket) {
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
  std::string request;
  const auto [failed, size] = co_await asio::async_read_until(socket, asio::dynamic_buffer(request, 8192), "\r\n\r\n",
                                                              asio::as_tuple(asio::use_awaitable));
  if (!failed && size > 0) {
    co_await asio::async_write(socket, asio::buffer(kAnswer), asio::as_tuple(asio::use_awaitable));
  }
}

asio::awaitable<void> serve(tcp::acceptor& acceptor, async::TaskGroup& group) {
  for (;;) {
    auto [failed, socket] = co_await acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
    if (!failed) group.spawn(answer(std::move(socket)));
  }
}

/// Listens at all addresses, says through the pipe on which port, and answers until it is killed.
[[noreturn]] void run_containers(int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  asio::io_context context(1);
  async::TaskGroup group(context.get_executor());
  std::vector<tcp::acceptor> acceptors;
  std::uint16_t port = 0;
  for (int i = 0; i < kAddresses; ++i) {
    acceptors.emplace_back(context, tcp::endpoint(asio::ip::make_address(address_of(i)), port));
    acceptors.back().listen(4096);
    port = acceptors.back().local_endpoint().port();
  }
  for (tcp::acceptor& acceptor : acceptors) group.spawn(serve(acceptor, group));
  if (write(pipe, &port, sizeof(port)) != sizeof(port)) std::_Exit(1);
  context.run();
  std::_Exit(0);
}

// ---- the probes

struct Options {
  int pods = 5000;
  int period = 10;
  int seconds = 20;
  std::string kind = "http";
  double limit = 10;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

model::PodRecord a_record(const Options& options, int number, std::uint16_t port, base::Now now) {
  model::Probe probe;
  probe.handler.kind = options.kind == "tcp" ? model::Handler::Kind::kTcpSocket : model::Handler::Kind::kHttpGet;
  probe.handler.port = port;
  probe.handler.path = "/healthz";
  probe.period = std::chrono::seconds(options.period);
  probe.timeout = std::chrono::seconds(5);
  model::PodSpec spec = test::a_pod("web-" + std::to_string(number));
  spec.key.uid = base::PodUid("uid-" + std::to_string(number));
  spec.containers.edit()[0].readiness_probe = probe;
  model::PodRecord record = core::admit(test::share(std::move(spec)), test::seen_at(), now);
  model::Instance instance = test::an_instance(model::InstanceState::kRunning);
  instance.address = address_of(number);
  instance.containers[0].started_at = now.wall;
  record.provider.address_routable = true;
  record.containers = core::make_container_records(*record.spec, record.observed.status);
  core::apply_claims(record, instance, now);
  record.stage = model::Running{instance};
  return record;
}

struct Figures {
  double cpu_percent = 0;
  std::int64_t probes = 0;
  int ready = 0;
  int failures = 0;
};

/// Begins the pods over one period, as in a cluster that has grown; then measures.
asio::awaitable<void> measure(const Options& options, std::uint16_t port, async::Timers& timers,
                              control::ProbeController& probes, const std::int64_t& connections, Figures& out) {
  const base::Duration step = std::chrono::seconds(options.period) / options.pods;
  const base::TimePoint begin = timers.now();
  for (int i = 0; i < options.pods; ++i) {
    co_await timers.sleep_until(begin + step * i);
    probes.follow(a_record(options, i, port, timers.both()));
  }
  co_await timers.sleep_for(std::chrono::seconds(1));
  const std::int64_t before = connections;
  const double cpu = cpu_seconds();
  const base::TimePoint from = timers.now();
  co_await timers.sleep_for(std::chrono::seconds(options.seconds));
  const double wall = std::chrono::duration<double>(timers.now() - from).count();
  out.cpu_percent = (cpu_seconds() - cpu) / wall * 100;
  out.probes = connections - before;
}

Figures run(const Options& options, std::uint16_t port) {
  asio::io_context context(1);
  async::ReactorTimers timers(context.get_executor());
  base::Metrics metrics;
  std::int64_t connections = 0;
  provider::HandlerRunner handlers(timers, [&](std::string host, int to, base::Deadline deadline) {
    ++connections;
    return net::connect_tcp(context.get_executor(), timers, std::move(host), static_cast<std::uint16_t>(to), deadline);
  });
  control::ProviderSet providers;
  providers.add(std::make_unique<provider::ThrottledProvider>(std::make_unique<test::AnsweringProvider>(),
                                                              provider::ThrottleConfig(), timers, metrics));
  Figures figures;
  control::ProbeDeps deps;
  deps.executor = context.get_executor();
  deps.timers = &timers;
  deps.handlers = &handlers;
  deps.providers = &providers;
  deps.changed = [&](const base::PodUid&, const core::event::ProbeChanged& e) { figures.ready += e.passes ? 1 : -1; };
  deps.unhealthy = [&](const model::PodKey&, const std::string& message) {
    if (figures.failures++ == 0) std::fprintf(stderr, "probe_bench: %s\n", message.c_str());
  };
  control::ProbeController probes(std::move(deps));
  async::TaskGroup group(context.get_executor());
  group.spawn(probes.run());
  asio::co_spawn(context, measure(options, port, timers, probes, connections, figures), [&](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
    context.stop();
  });
  context.run();
  context.restart();
  asio::co_spawn(context, group.stop(), [](const std::exception_ptr&) {});
  asio::co_spawn(context, probes.stop(), [](const std::exception_ptr&) {});
  context.run();
  return figures;
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) {
  spillway::Options options;
  CLI::App app("What probes cost, on real sockets");
  app.add_option("--pods", options.pods, "pods, each with one readiness probe")->check(CLI::Range(1, 100'000));
  app.add_option("--period", options.period, "seconds between two runs of a probe")->check(CLI::Range(1, 3600));
  app.add_option("--seconds", options.seconds, "how long to measure")->check(CLI::Range(1, 3600));
  app.add_option("--kind", options.kind, "http or tcp")->check(CLI::IsMember({"http", "tcp"}));
  app.add_option("--limit", options.limit, "percent of one core");
  CLI11_PARSE(app, argc, argv);
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) spillway::run_containers(ends[1]);
  std::uint16_t port = 0;
  if (read(ends[0], &port, sizeof(port)) != sizeof(port)) return 2;
  const spillway::Figures figures = spillway::run(options, port);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const nlohmann::json out = {{"pods", options.pods},         {"period_s", options.period},
                              {"kind", options.kind},         {"seconds", options.seconds},
                              {"probes", figures.probes},     {"ready", figures.ready},
                              {"failures", figures.failures}, {"cpu_percent", figures.cpu_percent}};
  std::puts(out.dump().c_str());
  const bool all_ready = figures.ready == options.pods && figures.failures == 0;
  return all_ready && figures.cpu_percent < options.limit ? 0 : 1;
}
