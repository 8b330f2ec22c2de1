// A machine with one daemon process on it: from its start until it has stopped, or was killed.
//
// Owned by the World; stays after the process has ended, because answers to it may still be under way. One thread.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include "test/simulation/host.hpp"
#include "test/simulation/randomness.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/daemon/daemon.hpp"
#include "vk-provider/provider/registry.hpp"

namespace spillway::simulation {

class World;

class Machine {
 public:
  enum class State : std::uint8_t { kRunning, kStopping, kEnded };

  /// Starts the daemon. `number` counts the processes of the world; it is what they call themselves by.
  Machine(World& world, int number);
  ~Machine();

  Host& host() { return host_; }
  const std::string& name() const { return host_.name(); }
  State state() const { return state_; }
  bool ready() const;

  /// Dies between two handlers, without a word, also while it stops.
  void kill();
  /// After so many more handlers.
  void kill_after(int handlers) { dies_in_ = handlers; }
  /// Runs one handler; dies if it was the last one.
  void step();
  /// SIGTERM.
  void stop();
  /// What it sends now goes nowhere.
  bool dead() const { return dead_; }
  int exit_code() const { return exit_code_; }

  /// Creates that are under way.
  int buying = 0;

 private:
  /// Runs handlers until `done`, while nothing else in the world moves.
  void run_alone(const bool& done);
  void end();

  World& world_;
  Host host_;
  Stream random_;
  base::Metrics metrics_;
  std::unique_ptr<kube::KubeApi> api_;
  std::unique_ptr<kube::KubeApi> lease_api_;
  provider::Registry registry_;
  std::unique_ptr<daemon::Daemon> daemon_;
  boost::asio::cancellation_signal cut_;  // ends run() where it waits
  State state_ = State::kRunning;
  bool dead_ = false;
  bool returned_ = false;  // run() has come to its end
  int exit_code_ = 0;
  int dies_in_ = -1;
};

}  // namespace spillway::simulation
