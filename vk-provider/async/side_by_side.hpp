// Runs tasks side by side, as parts of the task that waits for them.
//
// Free functions; reactor thread only. The tasks begin on the reactor, not at once. When the caller is cancelled, all
// of them are; nothing runs on when the function has returned. A task that throws ends the process, as in a TaskGroup.
#pragma once

#include <utility>
#include <vector>

#include "vk-provider/async/task.hpp"

namespace spillway::async {

/// Ends when the first has ended, having cancelled the others: what that one said. kCancelled if the caller was
/// cancelled before.
Task<void> first_of(std::vector<Task<void>> tasks);
/// Ends when all have succeeded, or when the first has failed, having cancelled the others: what that one said.
/// kCancelled if the caller was cancelled before.
Task<void> all_of(std::vector<Task<void>> tasks);
/// Ends when `main` has ended, having cancelled the helper, which may end before.
Task<void> with_helper(Task<void> main, Loop helper);

/// The arguments as a list: what cannot be copied cannot stand in braces.
template <class First, class... Rest>
std::vector<First> together(First first, Rest... rest) {
  std::vector<First> all;
  all.reserve(1 + sizeof...(rest));
  all.push_back(std::move(first));
  (all.push_back(std::move(rest)), ...);
  return all;
}

}  // namespace spillway::async
