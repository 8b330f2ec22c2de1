// One request, carried out on the store: what it answers, by verb.
//
// Owned by the model; reactor thread only. Takes no time and injects no fault.
#pragma once

#include <optional>
#include <string>

#include "test/support/api_model/api_error.hpp"
#include "test/support/api_model/rules.hpp"
#include "test/support/api_model/store.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test::api_model {

/// An answer as it comes over the wire.
struct Answer {
  int code = 200;
  std::string body;
  std::optional<int> retry_after;  // seconds

  static Answer of(const ApiError& error);
};

class Requests {
 public:
  Requests(Store& store, const base::Clock& clock) : store_(store), clock_(clock) {}

  /// Anything but a watch.
  Answer answer(const kube::KubeRequest& request, const Target& target);

 private:
  struct Written {
    ObjectPtr object;
    int code = 200;
    bool only_status = false;  // the answer is a Status that names the object
  };

  Outcome<Answer> read(const kube::KubeRequest& request, const Target& target);
  Outcome<Written> write(const kube::KubeRequest& request, const Target& target);
  Outcome<Written> create(const Target& target, Draft object);
  Outcome<Written> bind(const Target& target, const nlohmann::json& binding);
  Outcome<Written> put(const Target& target, Draft object);
  Outcome<Written> patch(const Target& target, const kube::KubeRequest& request, nlohmann::json body);
  Outcome<Written> create_by_apply(const Target& target, const nlohmann::json& config);
  Outcome<Written> update(const Target& target, const ObjectPtr& old, Draft wanted, bool note_owner);
  Birth next_birth();
  Outcome<Written> remove(const Target& target, const nlohmann::json& options);
  Outcome<void> check_namespace(const Target& target, const std::string& name) const;
  void expire_events();

  Store& store_;
  const base::Clock& clock_;
  std::uint64_t uids_ = 0;
  std::deque<std::pair<base::WallTime, std::string>> events_;  // when each was made, oldest first
};

/// The answer is to be PartialObjectMetadata, of one object or of a list.
bool wants_metadata_only(const kube::KubeRequest& request);

}  // namespace spillway::test::api_model
