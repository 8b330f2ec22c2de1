// What the modelled API server holds: objects, the one counter of versions, and a bounded history of changes.
//
// Owned by the model; reactor thread only. Knows nothing of rules: what is put here is stored. Objects are immutable
// and shared, so that history, watches and those who look on hold the same one; each is encoded at most once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/support/api_model/object.hpp"

namespace spillway::test::api_model {

struct Change {
  const Resource* resource = nullptr;
  std::uint64_t version = 0;
  ObjectPtr before;  // null: it was created
  ObjectPtr after;   // null: it was deleted
  /// What a watch shows: `after`, or for a deletion the last state with the version of the deletion.
  ObjectPtr shown;
};

class Store {
 public:
  /// Changes of one resource that are remembered; a watch or a page that needs older ones is answered 410.
  static constexpr size_t kHistory = 1024;

  std::uint64_t version() const { return version_; }
  /// Null if there is none.
  ObjectPtr find(const Resource& resource, const std::string& key) const;
  /// Creates or replaces, under the next version.
  ObjectPtr put(const Resource& resource, const std::string& key, Draft draft);
  /// Returns the last state with the version of the deletion.
  ObjectPtr erase(const Resource& resource, const std::string& key);

  const std::map<std::string, ObjectPtr>& all(const Resource& resource) const;
  /// The collection as it was; the version must not be older than oldest_version().
  std::map<std::string, ObjectPtr> all_at(const Resource& resource, std::uint64_t version) const;
  /// The lowest version from which this resource's changes are all known.
  std::uint64_t oldest_version(const Resource& resource) const;
  /// Changes after a version, oldest first.
  void replay(const Resource& resource, std::uint64_t since, const std::function<void(const Change&)>& take) const;
  /// Forgets all changes so far, as the server's compaction does.
  void compact();

  /// Called after each change, in the order in which they were added.
  void observe(std::function<void(const Change&)> observer) { observers_.push_back(std::move(observer)); }

 private:
  static constexpr std::uint64_t kFirstVersion = 100;

  struct Collection {
    std::map<std::string, ObjectPtr> objects;  // by key, the order of lists
    std::deque<Change> history;
    std::uint64_t oldest = kFirstVersion;  // what was before the server began is not known
  };

  Collection& collection(const Resource& resource);
  const Collection& collection(const Resource& resource) const;
  void note(Change change);

  std::uint64_t version_ = kFirstVersion;
  std::map<std::string_view, Collection> collections_;  // by plural
  std::vector<std::function<void(const Change&)>> observers_;
};

}  // namespace spillway::test::api_model
