#include "vk-provider/api/client_ca.hpp"

#include <utility>

#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/kube/credentials.hpp"

namespace spillway::api {
namespace log = base::log;

namespace {

constexpr base::Duration kCallDeadline = std::chrono::seconds(10);
constexpr base::Duration kFileEvery = std::chrono::seconds(30);
constexpr base::Duration kClusterEvery = std::chrono::hours(1);
constexpr base::BackoffPolicy kAgain{std::chrono::seconds(1), std::chrono::minutes(1)};
// Whoever shows a foreign certificate must not make us ask the API server each time.
constexpr base::Duration kBetweenDoubts = std::chrono::seconds(30);

}  // namespace

ClientCa::ClientCa(std::string file, kube::KubeApi& api, async::Timers& timers)
    : file_(std::move(file)), client_(api), timers_(timers), waiter_(timers.make_waiter()) {}

async::Task<std::string> ClientCa::read() {
  if (!file_.empty()) co_return kube::read_small_file(file_);
  co_return co_await client_.get_client_ca(timers_.now() + kCallDeadline);
}

void ClientCa::doubt() { waiter_->wake(); }

/// The pause between two looks. A doubt ends it, but not at once.
boost::asio::awaitable<void> ClientCa::rest(int failures) {
  if (failures > 0) co_return co_await timers_.sleep_for(base::backoff_delay(kAgain, failures));
  if (!file_.empty()) co_return co_await timers_.sleep_for(kFileEvery);
  const base::TimePoint now = timers_.now();
  co_await timers_.sleep_until(now + kBetweenDoubts);
  co_await waiter_->wait_until(now + kClusterEvery);
}

async::Loop ClientCa::run(Use use) {
  for (int failures = 0;;) {
    auto ca = co_await read();
    const bool known_already = ca && *ca == known_;
    const auto used = !ca ? base::fail(ca.error()) : known_already ? base::Result<void>() : use(*ca);
    if (used) {
      failures = 0;
      problem_.clear();
      complaint_.clear();
      if (!known_already)
        log::info("the CA of client certificates is known", {{"from", file_.empty() ? "cluster" : file_}});
      known_ = std::move(*ca);
    } else {
      ++failures;
      if (known_.empty()) problem_ = used.error().message;
      if (std::exchange(complaint_, used.error().message) != used.error().message) {
        log::warn(
            known_.empty() ? "the CA of client certificates cannot be read, and none is believed: the API server "
                             "gets no log and no exec"
                           : "the CA of client certificates cannot be read again; the last one stays",
            {{"error", used.error()}, {"remedy", "set kubeletApi.clientCaFile, or apply config/deploy/rbac.yaml"}});
      }
    }
    co_await rest(failures);
  }
}

}  // namespace spillway::api
