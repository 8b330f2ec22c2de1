// What the modelled API server serves, and how a request's target names it.
//
// Pure; the table is constant. Only what the daemon and those around it use: no discovery, no custom resources.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway::test::api_model {

struct Resource {
  std::string_view plural;       // pods
  std::string_view kind;         // Pod
  std::string_view group;        // coordination.k8s.io; empty: core
  std::string_view api_version;  // v1, coordination.k8s.io/v1
  bool namespaced = true;
  bool has_status = false;           // with a subresource /status, which alone writes the status
  bool returns_deleted = false;      // DELETE answers the object, not a Status
  bool unconditional_update = true;  // PUT without a resourceVersion is taken
  bool create_on_update = false;     // PUT of what is not there creates it
  bool has_generation = false;
  bool managed = false;  // metadata.managedFields are kept: the daemon reads them

  /// pods, leases.coordination.k8s.io: as messages name it.
  std::string qualified() const;
  /// Pod, Lease.coordination.k8s.io.
  std::string qualified_kind() const;
};

std::span<const Resource> resources();
const Resource& resource_named(std::string_view plural);

/// What a request's path and query say.
struct Target {
  Target() = default;
  const Resource* resource = nullptr;
  std::string ns;           // empty: all namespaces, or the resource has none
  std::string name;         // empty: the collection
  std::string subresource;  // status, binding
  std::vector<std::pair<std::string, std::string>> query;

  /// Empty if the parameter is absent.
  std::string_view parameter(std::string_view name) const;
  /// ns/name, or name alone: where the object is kept.
  std::string key() const;
};

/// Empty for a path that is not served.
std::optional<Target> parse_target(std::string_view target);

}  // namespace spillway::test::api_model
