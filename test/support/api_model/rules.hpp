// What the API server makes of an object before it stores it: defaults, what a client may not set, and validation.
//
// Pure. Follows the strategies in pkg/registry and pkg/apis/core/validation of Kubernetes 1.36, as far as the daemon
// and those around it can run into them; the rest is taken as sent.
#pragma once

#include <string>

#include "test/support/api_model/api_error.hpp"
#include "test/support/api_model/object.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::test::api_model {

/// What the server gives to a new object.
struct Birth {
  std::string uid;
  base::WallTime now;
};

/// `object` as a client sent it becomes what is stored.
Outcome<void> prepare_create(const Target& target, Draft& object, const Birth& birth);

/// `wanted` is the whole object as a PUT or a patch would have it; it becomes what is stored. The target's subresource
/// says what may change.
Outcome<void> prepare_update(const Target& target, const Object& old, Draft& wanted);

/// An update that takes the last finalizer of an object whose grace is over ends it.
bool ends_by_update(const Object& old, const Draft& wanted);

}  // namespace spillway::test::api_model
