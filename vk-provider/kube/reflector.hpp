// Keeps a sink up to date with a collection: list, watch, resume, 410, bookmarks, idle limits.
//
// Drives reflector_fsm (pure) over a KubeApi. Owned by the component that owns the sink; reactor thread only. A list is
// never a DOM: objects are cut out of the bytes one by one, and the loop yields to the reactor between batches.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/base/metrics.hpp"
#include "vk-provider/base/random.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::kube {

class ReflectorSink {
 public:
  virtual ~ReflectorSink() = default;
  /// A complete list begins: every object comes through on_object, then on_list_end. What is known and did not come is
  /// gone. A list that breaks off is begun again; nothing may be concluded from its part.
  virtual void on_list_begin() = 0;
  virtual void on_list_end() = 0;
  /// An object of the list, or one that was added or changed.
  virtual void on_object(std::string_view json) = 0;
  virtual void on_deleted(std::string_view json) = 0;
};

struct ReflectorConfig {
  ReflectorConfig() = default;
  std::string name;            // label of the metrics: pods, node
  std::string path;            // /api/v1/pods
  std::string field_selector;  // spec.nodeName=burst; may be empty
  std::string label_selector;  // a=b,c=d; may be empty
  /// How long one watch lasts before it is renewed from where it stands; zero: 5 to 10 minutes, at random. The server
  /// sends a bookmark shortly before that, so a watch that stays silent beyond it is dead: this bounds how long a
  /// change can go unnoticed on a connection that died without a word.
  base::Duration watch_time{0};
};

class Reflector {
 public:
  Reflector(ReflectorConfig config, KubeApi& api, ReflectorSink& sink, async::Timers& timers, base::Random& random,
            base::Metrics& metrics);
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  /// Runs until it is cancelled. Never ends by an error of the server.
  async::Loop run();

  /// True while a watch is open or was until a moment ago: what the sink knows is current.
  bool synced() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spillway::kube
