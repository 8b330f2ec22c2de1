// api_script SCRIPT [KUBECONFIG]: runs the honesty script and prints the transcript.
//
// Without a kubeconfig on the model, with one on that API server. Exit 2: bad input; 1: the server cannot be reached.
#include <cstdio>
#include <string>

#include "test/support/api_script/servers.hpp"
#include "test/support/api_script/transcript.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/reactor.hpp"
#include "vk-provider/kube/kubeconfig.hpp"
#include "vk-provider/net/http_client.hpp"

namespace {

using namespace spillway;
using test::api_script::Said;
using test::api_script::Step;

int fail(int code, const std::string& message) {
  std::fprintf(stderr, "api_script: %s\n", message.c_str());
  return code;
}

base::Result<std::vector<Said>> run_on_model(std::vector<Step> steps) {
  test::VirtualReactor reactor;
  test::api_script::ModelServer server(reactor.timers);
  return reactor.run(test::api_script::run(std::move(steps), server));
}

base::Result<std::vector<Said>> run_on_cluster(std::vector<Step> steps, const kube::ClusterAccess& access) {
  boost::asio::io_context context{1};
  async::ReactorTimers timers(context.get_executor());
  net::BeastHttpClientFactory http(context.get_executor(), timers);
  auto client = http.make(access.endpoint);
  if (!client) return base::fail(std::move(client.error()));
  test::api_script::RealServer server(**client, access, timers);
  base::Result<std::vector<Said>> out;
  boost::asio::co_spawn(context, test::api_script::run(std::move(steps), server),
                        [&](const std::exception_ptr&, base::Result<std::vector<Said>> result) {
                          out = std::move(result);
                          context.stop();
                        });
  context.run();
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return fail(2, "usage: api_script SCRIPT [KUBECONFIG]");
  const auto text = kube::read_small_file(argv[1]);
  if (!text) return fail(2, text.error().message);
  auto steps = test::api_script::parse(*text);
  if (!steps) return fail(2, std::string(argv[1]) + ": " + steps.error().message);
  base::Result<std::vector<Said>> run;
  if (argc == 2) {
    run = run_on_model(std::move(*steps));
  } else {
    const auto access = kube::load_kubeconfig(argv[2]);
    if (!access) return fail(2, access.error().message);
    run = run_on_cluster(std::move(*steps), *access);
  }
  if (!run) return fail(1, run.error().message);
  std::fputs(test::api_script::to_transcript(*run).c_str(), stdout);
  return 0;
}
