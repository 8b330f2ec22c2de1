// Idle connections of one client, the last used first, and the permits to use them. Of net/ alone.
//
// Owned by shared_ptr: by the client, and by coroutines that hold a permit. Reactor thread only. A connection that was
// idle for 60 s is closed; one that the peer has closed is found out before it is handed out.
#pragma once

#include <memory>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "vk-provider/async/semaphore.hpp"
#include "vk-provider/net/connection.hpp"

namespace spillway::net {

class ConnectionPool : public std::enable_shared_from_this<ConnectionPool> {
 public:
  ConnectionPool(const boost::asio::any_io_executor& executor, async::Timers& timers, size_t max_connections)
      : timers_(timers), permits_(timers, max_connections), reaper_(executor) {}

  async::Semaphore& permits() { return permits_; }
  /// Null if there is none that is alive.
  ConnectionPtr take();
  void put(ConnectionPtr connection);
  size_t idle() const { return idle_.size(); }

 private:
  void reap();
  void schedule_reaper();

  async::Timers& timers_;
  async::Semaphore permits_;
  boost::asio::steady_timer reaper_;
  bool reaper_runs_ = false;
  std::vector<ConnectionPtr> idle_;  // the longest idle first
};

}  // namespace spillway::net
