#include "test/simulation/machine.hpp"

#include <stdexcept>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>

#include "test/simulation/api_link.hpp"
#include "test/simulation/cloud_link.hpp"
#include "test/simulation/world.hpp"

namespace spillway::simulation {
namespace asio = boost::asio;

Machine::Machine(World& world, int number)
    : world_(world),
      host_("host" + std::to_string(number), world.agenda(), world.context()),
      random_(world.plan().seed, host_.name()),
      api_(world.wrap(std::make_unique<ApiLink>(world, *this))),
      lease_api_(world.wrap(std::make_unique<ApiLink>(world, *this))) {
  registry_["sim"] = cloud_type(world, *this);
  daemon::DaemonDeps deps;
  deps.executor = host_.executor();
  deps.timers = &host_;
  deps.random = &random_;
  deps.metrics = &metrics_;
  deps.api = api_.get();
  deps.lease_api = lease_api_.get();
  deps.registry = &registry_;
  deps.holder = host_.name();
  daemon_ = std::make_unique<daemon::Daemon>(world.config(), deps);
  asio::co_spawn(host_.executor(), daemon_->run(),
                 asio::bind_cancellation_slot(cut_.slot(), [this](const std::exception_ptr&, int code) {
                   exit_code_ = code;
                   returned_ = true;
                 }));
}

Machine::~Machine() { kill(); }

bool Machine::ready() const {
  if (state_ != State::kRunning || host_.frozen()) return false;
  for (const daemon::Check& check : daemon_->readiness()) {
    if (!check.problem.empty()) return false;
  }
  return true;
}

void Machine::step() {
  host_.run_one();
  if (dies_in_ > 0 && --dies_in_ == 0) return kill();
  if (returned_ && !dead_) end();
}

void Machine::kill() {
  if (state_ == State::kEnded) return;
  if (state_ == State::kStopping) world_.coverage().reach(Counter::kKilledStopping);
  dead_ = true;
  // First whoever drains what is then thrown away.
  cut_.emit(asio::cancellation_type::terminal);
  run_alone(returned_);
  bool abandoned = false;
  asio::co_spawn(host_.executor(), daemon_->abandon(), [&abandoned](const std::exception_ptr&) { abandoned = true; });
  run_alone(abandoned);
  end();
}

void Machine::run_alone(const bool& done) {
  while (!done) {
    if (host_.idle()) world_.poll_context();
    if (host_.idle()) throw std::logic_error("a daemon that was killed waits for something");
    host_.run_one();
  }
}

void Machine::stop() {
  if (state_ != State::kRunning) return;
  state_ = State::kStopping;
  dies_in_ = -1;
  daemon_->request_stop();
}

void Machine::end() {
  dead_ = true;
  state_ = State::kEnded;
  daemon_.reset();
}

}  // namespace spillway::simulation
