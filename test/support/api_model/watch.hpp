// One watch: what changes in a collection, as lines.
//
// Owned by whoever reads it, known to the model, which must outlive it; reactor thread only. Lines are made when they
// are read, from objects that are encoded once for all watches.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "test/support/api_model/selector.hpp"
#include "test/support/api_model/store.hpp"
#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::test::api_model {

class WatchStream;

/// The watches that are open.
class Watches {
 public:
  /// `lag` is how long a change takes until watches show it; may be null.
  Watches(Store& store, async::Timers& timers, std::function<base::Duration()> lag);

  /// 422 and 400 as for a list; a version that is too old is told in the stream.
  Outcome<async::ByteStreamPtr> open(const Target& target, bool metadata_only);
  /// The server ends all of them, as when it restarts.
  void end_all();
  size_t size() const { return open_.size(); }

 private:
  friend class WatchStream;

  Store& store_;
  async::Timers& timers_;
  std::function<base::Duration()> lag_;
  std::vector<WatchStream*> open_;
};

}  // namespace spillway::test::api_model
