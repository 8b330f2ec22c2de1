// Walks JSON text without building a tree: members of an object, elements of an array, one scalar.
//
// Pure; a cursor is a value that points into the text, which must outlive it. Looks only at what is asked for: a value
// that is skipped is not checked beyond its brackets and quotes. Does not read what is not UTF-8 any better than it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::kube {

/// Members of an object, in the order of the text.
///
///   JsonObject members(text);
///   while (members.next()) if (members.key() == "uid") ...
///   if (members.failed()) ...
class JsonObject {
 public:
  /// Anything but an object (null, a number, nothing) has no members and has not failed.
  explicit JsonObject(std::string_view text);

  bool next();
  /// As it stands between the quotes; escapes are not resolved (see json_unescape).
  std::string_view key() const { return key_; }
  /// As it stands, without white space around it.
  std::string_view value() const { return value_; }
  /// The text ended or broke off where it must not have.
  bool failed() const { return failed_; }

  /// What follows the key of the first such member: its value and the rest of the text. Empty if there is none.
  static std::string_view from_member(std::string_view object, std::string_view key);

 private:
  bool next_key();
  bool skip();
  bool fail();

  std::string_view text_;
  size_t at_ = 0;
  bool done_ = false;
  bool first_ = true;
  bool failed_ = false;
  std::string_view key_;
  std::string_view value_;
};

/// Elements of an array. The same rules.
class JsonArray {
 public:
  explicit JsonArray(std::string_view text);

  bool next();
  std::string_view value() const { return value_; }
  bool failed() const { return failed_; }

 private:
  bool fail();

  std::string_view text_;
  size_t at_ = 0;
  bool done_ = false;
  bool first_ = true;
  bool failed_ = false;
  std::string_view value_;
};

inline bool json_is_null(std::string_view value) { return value.empty() || value == "null"; }
inline bool json_is_object(std::string_view value) { return !value.empty() && value.front() == '{'; }
inline bool json_is_array(std::string_view value) { return !value.empty() && value.front() == '['; }
inline bool json_is_true(std::string_view value) { return value == "true"; }

/// The text of a string value; empty optional if the value is no string or its escapes are wrong.
std::optional<std::string> json_string(std::string_view value);
/// The same, with an empty text for everything that is no string.
std::string json_string_or_empty(std::string_view value);
/// A whole number that fits.
std::optional<std::int64_t> json_int(std::string_view value);
/// Resolves the escapes of what stands between the quotes of a string or key.
std::optional<std::string> json_unescape(std::string_view raw);

/// The value of the first member with this key; empty if there is none, or if the text breaks off before it: not for
/// texts of which it matters that they are whole.
std::string_view json_member(std::string_view object, std::string_view key);
/// The same for a member of a member that is an object, whose other members are looked at only as far as needed: what
/// is asked for stands near the beginning of metadata, and its managedFields, at the end, are half of a small object.
std::string_view json_member(std::string_view object, std::string_view outer, std::string_view inner);

}  // namespace spillway::kube
