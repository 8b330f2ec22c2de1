// Writes JSON into one string: quotes, escapes and commas, nothing else.
//
// A value; one owner. Does not check that what is opened is closed. Bytes that are not UTF-8 become U+FFFD, so that the
// text is always valid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::kube {

class JsonWriter {
 public:
  JsonWriter& open_object() { return open('{'); }
  JsonWriter& close_object() { return close('}'); }
  JsonWriter& open_array() { return open('['); }
  JsonWriter& close_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& string(std::string_view value);
  JsonWriter& number(std::int64_t value);
  /// The shortest text that reads back as the same number; null for what is no number.
  JsonWriter& real(double value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();

  /// key and value in one.
  JsonWriter& field(std::string_view name, std::string_view value) { return key(name).string(value); }
  JsonWriter& field_number(std::string_view name, std::int64_t value) { return key(name).number(value); }
  JsonWriter& field_real(std::string_view name, double value) { return key(name).real(value); }
  JsonWriter& field_bool(std::string_view name, bool value) { return key(name).boolean(value); }
  JsonWriter& field_null(std::string_view name) { return key(name).null(); }
  /// Only if it is not empty.
  JsonWriter& field_if(std::string_view name, std::string_view value) {
    return value.empty() ? *this : field(name, value);
  }

  const std::string& text() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view value);

  std::string out_;
  bool need_comma_ = false;
};

}  // namespace spillway::kube
