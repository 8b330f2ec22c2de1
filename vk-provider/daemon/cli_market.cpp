#include "vk-provider/daemon/cli_market.hpp"

#include <utility>

namespace spillway::daemon {

namespace {
constexpr base::Duration kCallDeadline = std::chrono::seconds(15);
}

boost::asio::awaitable<void> list_market(Surroundings in, Market* out) {
  for (provider::Provider* const provider : in.providers) {
    const provider::ProviderInfo& info = provider->info();
    auto offers = co_await provider->list_offers(in.timers->now() + kCallDeadline);
    if (offers) {
      out->book.update(info.name, std::move(*offers), in.timers->now(), info.own_machines);
    } else {
      out->unlisted.push_back({info.name.str(), offers.error().message});
    }
  }
  out->now = in.timers->both();
}

base::Result<std::unique_ptr<Market>> ask_market(const Config& config, const provider::Registry& registry) {
  auto session = CliSession::open(config, registry);
  if (!session) return base::fail(std::move(session.error()));
  auto market = std::make_unique<Market>();
  (*session)->run(list_market((*session)->surroundings(), market.get()));
  return market;
}

}  // namespace spillway::daemon
