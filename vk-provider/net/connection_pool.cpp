#include "vk-provider/net/connection_pool.hpp"

#include <algorithm>

namespace spillway::net {
namespace {

constexpr base::Duration kIdleLimit = std::chrono::seconds(60);

}  // namespace

ConnectionPtr ConnectionPool::take() {
  while (!idle_.empty()) {
    ConnectionPtr connection = std::move(idle_.back());
    idle_.pop_back();
    const bool fresh = timers_.now() - connection->idle_since() < kIdleLimit;
    if (fresh && connection->is_open() && connection->is_quiet()) return connection;
    connection->close();
  }
  return nullptr;
}

void ConnectionPool::put(ConnectionPtr connection) {
  if (!connection->is_open()) return;
  connection->set_idle_since(timers_.now());
  connection->input().shrink_to_fit();  // 16 KiB that an idle connection has no use for
  idle_.push_back(std::move(connection));
  schedule_reaper();
}

void ConnectionPool::reap() {
  const base::TimePoint now = timers_.now();
  const auto first_fresh =
      std::ranges::find_if(idle_, [now](const ConnectionPtr& c) { return now - c->idle_since() < kIdleLimit; });
  std::for_each(idle_.begin(), first_fresh, [](const ConnectionPtr& c) { c->close(); });
  idle_.erase(idle_.begin(), first_fresh);
  schedule_reaper();
}

void ConnectionPool::schedule_reaper() {
  if (reaper_runs_ || idle_.empty()) return;
  reaper_runs_ = true;
  reaper_.expires_after(idle_.front()->idle_since() + kIdleLimit - timers_.now());
  reaper_.async_wait([weak = weak_from_this()](const boost::system::error_code& ec) {
    const std::shared_ptr<ConnectionPool> pool = weak.lock();
    if (ec || !pool) return;
    pool->reaper_runs_ = false;
    pool->reap();
  });
}

}  // namespace spillway::net
