#include "providers/fake/fake_cloud_command.hpp"

#include <fstream>
#include <iterator>

#include "providers/fake/config.hpp"
#include "providers/fake/fake_cloud.hpp"
#include "providers/fake/fake_cloud_server.hpp"
#include "vk-provider/async/reactor.hpp"
#include "vk-provider/async/task_group.hpp"
#include "vk-provider/base/log.hpp"

namespace spillway::providers::fake {
namespace {

namespace log = base::log;

constexpr int kFailed = 1;
constexpr int kBadInput = 2;
constexpr base::Duration kStopTime = std::chrono::seconds(5);

base::Result<CloudSettings> load_settings(const FakeCloudOptions& options) {
  CloudSettings settings;
  if (!options.config_file.empty()) {
    std::ifstream file(options.config_file);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) return base::fail(base::ErrorKind::kInvalid, options.config_file + " cannot be read");
    auto read = read_cloud_settings(text);
    if (!read) return base::fail(read.error().kind, options.config_file + ": " + read.error().message);
    settings = std::move(*read);
  }
  if (options.seed) settings.seed = *options.seed;
  return settings;
}

async::Loop stop(FakeCloudServer& server, async::Reactor& reactor) {
  co_await server.stop(reactor.timers().now() + kStopTime);
  reactor.stop();
}

}  // namespace

int run_fake_cloud(const FakeCloudOptions& options) {
  auto settings = load_settings(options);
  if (!settings) {
    log::error("fake cloud cannot start", {{"error", settings.error()}});
    return kBadInput;
  }
  async::Reactor reactor;
  FakeCloud cloud(std::move(*settings), reactor.timers().both());
  FakeCloudServer server(reactor.executor(), reactor.timers(), cloud, options.socket);
  if (const auto started = server.start(); !started) {
    log::error("fake cloud cannot start", {{"error", started.error()}});
    return kFailed;
  }
  async::TaskGroup group(reactor.executor());
  reactor.on_stop_signal([&] { group.spawn(stop(server, reactor)); });
  log::info("fake cloud listens", {{"socket", options.socket}});
  reactor.run();
  reactor.context().restart();
  reactor.context().poll();  // lets the last coroutine leave the group
  log::info("fake cloud stopped", {{"instances", cloud.size(reactor.timers().now())}});
  return 0;
}

}  // namespace spillway::providers::fake
