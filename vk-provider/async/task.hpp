// The type of every operation that waits.
//
// A Task<T> never throws except for cancellation, which only TaskGroup sees; failures are in the Result. All tasks run
// on the reactor's one thread. Parameters of coroutines are values, unless the caller awaits the call in the same
// expression.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "vk-provider/base/error.hpp"

namespace spillway::async {

template <class T>
using Task = boost::asio::awaitable<base::Result<T>>;

/// A task that has nothing to report: a loop that runs until it is cancelled.
using Loop = boost::asio::awaitable<void>;

}  // namespace spillway::async
