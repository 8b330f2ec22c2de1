#include "test/simulation/host.hpp"

#include <optional>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace spillway::simulation {
namespace asio = boost::asio;

namespace {

/// Behaves as the waiter over Asio's timers does: a wake that comes early is kept, and a cancelled wait just ends.
class HostWaiter final : public async::Waiter {
 public:
  explicit HostWaiter(Host& host) : host_(host) {}
  ~HostWaiter() override { leave(); }

  asio::awaitable<bool> wait_until(base::TimePoint when) override {
    if (std::exchange(woken_, false)) co_return false;
    if (when <= host_.now()) {
      co_await asio::post(host_.executor(), asio::use_awaitable);
    } else {
      co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
          [this, when](auto&& handler) { enter(std::forward<decltype(handler)>(handler), when); }, asio::use_awaitable);
    }
    leave();
    co_return !std::exchange(woken_, false);
  }

  void wake() override {
    woken_ = true;
    resume();
  }

 private:
  template <class Handler>
  void enter(Handler handler, base::TimePoint when) {
    slot_ = asio::get_associated_cancellation_slot(handler);
    if (slot_.is_connected()) slot_.assign([this](asio::cancellation_type) { resume(); });
    // A wait without end is kept off the agenda: time cannot wake it.
    if (when != base::TimePoint::max()) {
      entry_ = host_.agenda().at(when, [this] {
        entry_.reset();
        resume();
      });
    }
    handler_ = [h = std::move(handler)]() mutable { asio::post(std::move(h)); };
  }

  void resume() {
    if (auto handler = std::exchange(handler_, nullptr)) handler();
  }

  void leave() {
    if (entry_) host_.agenda().cancel(*entry_);
    entry_.reset();
    if (slot_.is_connected()) slot_.clear();
    slot_ = {};
  }

  Host& host_;
  std::move_only_function<void()> handler_;
  asio::cancellation_slot slot_;
  std::optional<Agenda::Key> entry_;
  bool woken_ = false;
};

}  // namespace

asio::any_io_executor Host::executor() { return HostExecutor(*this); }

std::unique_ptr<async::Waiter> Host::make_waiter() { return std::make_unique<HostWaiter>(*this); }

void Host::run_one() {
  auto handler = std::move(ready_.front());
  ready_.pop_front();
  ++steps_;
  handler();
}

}  // namespace spillway::simulation
