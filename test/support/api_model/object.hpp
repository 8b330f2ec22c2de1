// One version of one object, and the draft of the next one.
//
// Values; reactor thread only. Objects are immutable and shared, so that history, watches and those who look on hold
// the same one. An object is kept in parts, since most writes change one of them: the others, and their encoding, are
// handed on to the next version. The JSON has no kind, apiVersion and resourceVersion: the resource and version() say
// them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "test/support/api_model/resource.hpp"

namespace spillway::test::api_model {

/// `kRest` is an object of all other members: data, involvedObject ...
enum class Slot : std::uint8_t { kMetadata, kSpec, kStatus, kRest };
inline constexpr std::array kSlots = {Slot::kMetadata, Slot::kSpec, Slot::kStatus, Slot::kRest};
Slot slot_of(std::string_view member);

struct Part {
  explicit Part(nlohmann::json v) : value(std::move(v)) {}
  /// Encoded when it is first asked for.
  const std::string& text() const;

  nlohmann::json value;
  mutable std::string encoded;
};
/// By slot; null where the object has nothing.
using Parts = std::array<std::shared_ptr<const Part>, kSlots.size()>;

class Object {
 public:
  Object(const Resource& resource, Parts parts, std::uint64_t version)
      : resource_(resource), parts_(std::move(parts)), version_(version) {}

  const Resource& resource() const { return resource_; }
  std::uint64_t version() const { return version_; }
  const Parts& parts() const { return parts_; }

  // Null if it has none.
  const nlohmann::json& metadata() const { return part(Slot::kMetadata); }
  const nlohmann::json& spec() const { return part(Slot::kSpec); }
  const nlohmann::json& status() const { return part(Slot::kStatus); }
  const nlohmann::json& part(Slot slot) const;

  const std::string& name() const { return metadata()["name"].get_ref<const std::string&>(); }
  const std::string& uid() const { return metadata()["uid"].get_ref<const std::string&>(); }
  /// Empty if the resource has none.
  const std::string& ns() const;
  std::string key() const;
  bool deleting() const { return metadata().contains("deletionTimestamp"); }

  /// A copy in one piece, with its resourceVersion.
  nlohmann::json whole() const;
  /// As an item of a list: without kind and apiVersion.
  std::string item_text() const;
  /// As an answer or in a watch.
  std::string text() const;
  /// As PartialObjectMetadata.
  std::string metadata_text() const;

 private:
  std::string versioned_metadata() const;

  const Resource& resource_;
  Parts parts_;
  std::uint64_t version_;
};
using ObjectPtr = std::shared_ptr<const Object>;

/// What an object is to become. Shares with an older version what nobody edits.
class Draft {
 public:
  explicit Draft(const Object& old) : parts_(old.parts()) {}
  /// As a client sent it; kind and apiVersion are dropped.
  explicit Draft(nlohmann::json whole);

  const nlohmann::json& part(Slot slot) const;
  const nlohmann::json& metadata() const { return part(Slot::kMetadata); }
  const nlohmann::json& spec() const { return part(Slot::kSpec); }
  const nlohmann::json& status() const { return part(Slot::kStatus); }
  /// To be written to; null where there was nothing.
  nlohmann::json& edit(Slot slot);
  /// The part is again that of `old`.
  void restore(Slot slot, const Object& old);

  nlohmann::json whole() const;
  bool same_as(const Object& old) const;
  /// For storing: what was edited and came out as it was in `old` (may be null) is shared again.
  Parts finish(const Object* old);

 private:
  Parts parts_;
  std::array<std::shared_ptr<Part>, kSlots.size()> edited_;  // where set, in the place of parts_
};

}  // namespace spillway::test::api_model
