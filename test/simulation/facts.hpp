// What is really so: of every pod, instance and lease, whatever the daemon believes. The rules judge by it.
//
// Owned by the World, which tells it of every change; O(1) per change. One thread. Decides nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "providers/fake/fake_cloud.hpp"
#include "test/simulation/owner_facts.hpp"
#include "test/support/api_model/store.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/ownership.hpp"

namespace spillway::simulation {

enum class Phase : std::uint8_t { kNone, kPending, kRunning, kTerminal };

struct PodFacts {
  std::string uid;
  std::string ns;
  std::string name;
  std::string node;
  std::uint64_t version = 0;  // resourceVersion
  int owner = -1;             // index of its owner in the world
  std::string controller;     // UID of its owner; empty: a bare pod
  base::TimePoint created;
  Phase phase = Phase::kNone;
  bool succeeded = false;
  std::string waits_for;  // the reason that its first container shows
  bool ran = false;       // was Running once
  bool deleting = false;
  bool held = false;  // by a finalizer
  bool gone = false;
  base::TimePoint changed;        // when the object last changed
  std::string tag;                // of the intent that stands on it
  std::string provider;           // of that intent
  std::string instance;           // named beside it
  std::set<std::string> intents;  // every "provider/tag" that ever stood on it
  bool had_instance = false;      // in some cloud, at some time
  bool foreign_state = false;     // our annotation on it is of another pod
  bool tampered = false;          // somebody else wrote what only the daemon writes
  std::string writer;             // the daemon that wrote its status last
  bool unsure = false;            // an answer to a status write was lost: the daemon cannot know what stands
  std::string path() const { return "/api/v1/namespaces/" + ns + "/pods/" + name; }
};

struct InstanceFacts {
  int cloud = 0;
  std::string id;
  std::string tag;
  std::string uid;  // of its pod; empty: not ours
  int attempt = 0;
  bool foreign = false;
  bool ending = false;
  bool exited = false;
  bool exit_zero = false;  // all its containers ended with 0
  bool over_cap = false;
  std::int64_t burn = 0;  // micro-dollars per hour that it costs now
  bool ran = false;
  base::TimePoint since;
  base::TimePoint ending_since;
  int sights = 0;
  bool hidden = false;         // a listing that called itself complete left it out, for no lag
  std::set<std::string> told;  // the daemons that know of it
};

class Facts {
 public:
  explicit Facts(model::Ownership ownership) : ownership_(std::move(ownership)) {}

  const model::Ownership& ownership() const { return ownership_; }
  Owners& owners() { return owners_; }
  const Owners& owners() const { return owners_; }

  /// A pod object was created or changed.
  PodFacts& pod_seen(const test::api_model::Object& object, base::TimePoint now);
  /// Its object was removed.
  PodFacts& pod_gone(const std::string& uid, base::TimePoint now);
  PodFacts* find_pod(const std::string& uid);
  const PodFacts* find_pod(const std::string& uid) const;
  /// The UID of the pod that has this path now; empty if there is none.
  std::string uid_at(const std::string& path) const;
  size_t pods() const { return pods_.size(); }
  /// Those whose object exists, by creation.
  const std::map<std::uint64_t, std::string>& living() const { return living_; }
  /// How many pods and instances existed within the last minute.
  size_t recent(base::TimePoint now);

  InstanceFacts& instance_seen(int cloud, const providers::fake::Sight& sight);
  void instance_gone(int cloud, const std::string& id, base::TimePoint now);
  const InstanceFacts* find_instance(int cloud, const std::string& id) const;
  /// A listing that calls itself complete shows these: what it should show and does not is hidden.
  void listed(int cloud, const std::vector<model::Instance>& shown, base::TimePoint since_before);
  /// These were shown to a daemon, which knows of them from now on.
  void told(int cloud, std::span<const model::Instance> shown, const std::string& daemon);
  /// The daemons that were ever shown this instance, also when it is gone.
  const std::set<std::string>& who_knew(int cloud, const std::string& id) const;
  /// Existing instances of one pod.
  std::vector<const InstanceFacts*> instances_of(const std::string& uid) const;
  /// Whether a cloud has held one of ours since before that.
  bool any_instance(int cloud, base::TimePoint before) const;
  /// What all of ours cost now, in micro-dollars per hour.
  std::int64_t burn() const { return burn_; }
  /// All that exist, by cloud and id.
  const std::map<std::string, InstanceFacts>& instances() const { return instances_; }
  /// Whether the last sight of a tag's instance had all containers ended with 0.
  bool ended_well(const std::string& tag) const { return ended_well_.contains(tag); }

 private:
  static std::string key(int cloud, const std::string& id) { return std::to_string(cloud) + "/" + id; }

  model::Ownership ownership_;
  Owners owners_;
  // Only looked up in, never walked through.
  std::unordered_map<std::string, PodFacts> pods_;
  std::unordered_map<std::string, std::string> uids_;  // by path
  std::map<std::uint64_t, std::string> living_;
  std::unordered_map<std::string, std::uint64_t> order_;  // of living pods, by UID
  std::uint64_t created_ = 0;
  std::deque<base::TimePoint> gone_at_;
  std::map<std::string, InstanceFacts> instances_;
  std::int64_t burn_ = 0;
  std::unordered_map<std::string, std::set<std::string>> by_pod_;  // keys of instances by UID
  std::set<std::string> ended_well_;
  std::unordered_map<std::string, std::set<std::string>> knew_;  // by key, of instances that are gone
};

}  // namespace spillway::simulation
