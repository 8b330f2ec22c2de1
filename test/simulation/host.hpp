// One machine of the simulated world: an executor, timers and clocks of its own, so that the process on it can be
// frozen, or can die, between any two of its handlers while all else goes on.
//
// Owned by the World and alive as long as it, because what was sent from here may be answered after the process is
// gone. One thread. Runs handlers in the order in which they became ready, as a reactor does.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>

#include "test/simulation/agenda.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::simulation {

class Host final : public async::Timers {
 public:
  /// `context` serves what Asio keeps per context; nothing of the host runs in it.
  Host(std::string name, Agenda& agenda, boost::asio::execution_context& context)
      : name_(std::move(name)), agenda_(agenda), context_(context) {}

  const std::string& name() const { return name_; }
  boost::asio::any_io_executor executor();

  base::TimePoint now() const override { return agenda_.now(); }
  base::WallTime wall() const override {
    return agenda_.wall() + std::chrono::duration_cast<std::chrono::microseconds>(wall_offset_);
  }
  std::unique_ptr<async::Waiter> make_waiter() override;
  Agenda& agenda() { return agenda_; }

  /// Moves the wall clock alone, as NTP or an operator does.
  void jump_wall(base::Duration d) { wall_offset_ += d; }

  /// SIGSTOP and SIGCONT: handlers become ready meanwhile, and wait.
  void freeze(bool frozen) { frozen_ = frozen; }
  bool frozen() const { return frozen_; }

  void post(std::move_only_function<void()> handler) { ready_.push_back(std::move(handler)); }
  bool can_run() const { return !frozen_ && !ready_.empty(); }
  /// Runs the next handler, also of a frozen host.
  void run_one();
  bool idle() const { return ready_.empty(); }
  /// Handlers that were run so far: the places at which a process can die.
  std::uint64_t steps() const { return steps_; }

 private:
  friend class HostExecutor;

  std::string name_;
  Agenda& agenda_;
  boost::asio::execution_context& context_;
  base::Duration wall_offset_{0};
  bool frozen_ = false;
  std::uint64_t steps_ = 0;
  std::deque<std::move_only_function<void()>> ready_;
};

/// The executor of a host's coroutines: every handler goes through the host's queue.
class HostExecutor {
 public:
  explicit HostExecutor(Host& host) : host_(&host) {}

  boost::asio::execution_context& query(boost::asio::execution::context_t) const noexcept { return host_->context_; }
  static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  HostExecutor require(boost::asio::execution::blocking_t::never_t) const { return *this; }
  template <class F>
  void execute(F f) const {
    host_->post(std::move(f));
  }
  bool operator==(const HostExecutor&) const noexcept = default;

 private:
  Host* host_;
};

}  // namespace spillway::simulation
