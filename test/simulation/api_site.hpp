// The API server of the simulated world, and what is wrong with it.
//
// Owned by the World. One thread. The model behind it is test/support's; here are the faults of the way to it, and the
// facts that every accepted write leaves. Knows no daemon: links (api_link.hpp) do.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/simulation/coverage.hpp"
#include "test/simulation/facts.hpp"
#include "test/simulation/host.hpp"
#include "test/simulation/randomness.hpp"
#include "test/support/api_server_model.hpp"

namespace spillway::simulation {

/// What becomes of one request.
struct ApiFate {
  base::Duration there{0};  // how long it takes to arrive
  base::Duration back{0};
  bool lose_request = false;
  bool lose_answer = false;
  std::optional<base::Error> refuse;  // the server answers this and does nothing
  std::optional<base::Error> lie;     // the server does it and answers this
  bool overtaken = false;             // somebody else writes the object just before
};

struct ApiFault {
  enum class What : std::uint8_t {
    kLoseRequest,
    kLoseAnswer,
    kBusy,
    kBroken,
    kTimeout,
    kSlow,
    kReject,
    kConflict,   // 409 as if somebody else had written, and nothing has changed
    kOvertaken,  // somebody else does write, just before
    kCount
  };
  enum class Which : std::uint8_t { kAny, kReads, kWrites, kPods, kLeases, kWatches, kCount };
  What what{};
  Which which{};
  int percent = 100;
  base::TimePoint until;
};

class ApiSite {
 public:
  ApiSite(std::uint64_t seed, base::Duration latency, Host& host, Facts& facts, Coverage& coverage);

  Host& host() { return host_; }
  test::ApiServerModel& model() { return model_; }

  void add_fault(const ApiFault& fault) { faults_.push_back(fault); }
  void cut_watches() { ++cut_; }
  void silence_watches(base::TimePoint until) { silent_until_ = until; }
  void lag_watches(base::Duration lag, base::TimePoint until);
  void clear_faults();
  /// Since when nothing was wrong.
  base::TimePoint good_since() const { return bad_until_; }

  base::Duration lag();
  ApiFate judge(const kube::KubeRequest& request, bool watch);
  /// Applies a request now.
  base::Result<kube::KubeResponse> handle(const kube::KubeRequest& request);

  /// Told of every pod that was created, changed or removed, by whomever, after the facts.
  void on_pod(std::function<void(const PodFacts&)> told) { on_pod_ = std::move(told); }

  // What a watch asks of its way here.
  std::uint64_t cuts() const { return cut_; }
  base::TimePoint silent_until() const { return silent_until_; }

  // What users and other controllers do; they are near, and nothing goes wrong on their way.
  /// Returns its UID.
  std::string create_pod(nlohmann::json object);
  void delete_pod(const std::string& path, int grace);
  /// A merge patch of the object or of its status; false if it was refused.
  bool patch(const std::string& path, const nlohmann::json& body);
  /// Somebody notes something on an object, of whatever kind: its version is another one then.
  void overtake(const std::string& path);
  /// The history is forgotten: a watch that begins before now is answered 410.
  void compact() { model_.compact(); }

 private:
  void changed(const test::api_model::Change& change);
  base::Duration travel();

  Host& host_;
  Facts& facts_;
  Coverage& coverage_;
  test::ApiServerModel model_;
  Stream latencies_;
  Stream dice_;
  base::Duration latency_;
  std::vector<ApiFault> faults_;
  std::uint64_t cut_ = 0;
  std::uint64_t notes_ = 0;  // by overtake()
  base::TimePoint silent_until_{};
  base::Duration lag_{0};
  base::TimePoint lag_until_{};
  base::TimePoint bad_until_{};
  std::function<void(const PodFacts&)> on_pod_;
};

}  // namespace spillway::simulation
