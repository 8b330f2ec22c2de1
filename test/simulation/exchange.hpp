// A question that is on its way, and its answer if one comes.
//
// Shared by the coroutine that asks and the agenda that answers: either may be gone before the other.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::simulation {

template <class T>
struct Exchange {
  explicit Exchange(async::Timers& timers) : waiter(timers.make_waiter()) {}

  void reply(base::Result<T> result) {
    answer.emplace(std::move(result));
    waiter->wake();
  }

  std::unique_ptr<async::Waiter> waiter;
  std::optional<base::Result<T>> answer;
};

}  // namespace spillway::simulation
