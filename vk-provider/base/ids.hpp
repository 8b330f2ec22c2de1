// Strings that must not be confused with one another.
//
// Values, any thread. An Id is only a name with a type; it does not check what it holds. Copies share their text.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

#include "vk-provider/base/shared_text.hpp"

namespace spillway::base {

template <class Tag>
class Id {
 public:
  Id() = default;
  explicit Id(SharedText value) : value_(std::move(value)) {}
  explicit Id(std::string value) : value_(std::move(value)) {}
  explicit Id(const char* value) : value_(value) {}

  const std::string& str() const { return value_.str(); }
  const SharedText& text() const { return value_; }
  bool empty() const { return value_.empty(); }

  auto operator<=>(const Id&) const = default;

 private:
  SharedText value_;
};

/// metadata.uid of a pod: its identity. A name that is created again is another pod.
using PodUid = Id<struct PodUidTag>;
/// A provider's own id of an instance; opaque to everybody else.
using InstanceId = Id<struct InstanceIdTag>;
/// `name` of an entry of `providers[]` in the configuration.
using ProviderName = Id<struct ProviderNameTag>;
/// A provider's own id of an offer; stable while its price moves.
using OfferId = Id<struct OfferIdTag>;
/// What we write on every instance, and the idempotency key of its purchase (model/ownership.hpp).
using InstanceTag = Id<struct InstanceTagTag>;

}  // namespace spillway::base

template <class Tag>
struct std::hash<spillway::base::Id<Tag>> {
  size_t operator()(const spillway::base::Id<Tag>& id) const noexcept {
    return std::hash<spillway::base::SharedText>{}(id.text());
  }
};
