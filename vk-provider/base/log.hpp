// Structured log lines: a constant message, data as fields.
//
//   log::info("instance created", {{"pod", key}, {"provider", name}, {"took_ms", 12}});
//
// One process-wide sink on stderr, set up once by main before any other thread exists; afterwards any thread may log.
// A Secret does not convert to a field. Does not rotate or ship: the container runtime does.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/base/ids.hpp"

namespace spillway::base::log {

enum class Level { kDebug, kInfo, kWarn, kError, kNone };  // kNone: to configure only
enum class Format { kText, kJson };

/// Until this is called, lines go to stderr as text at level info.
void configure(Level level, Format format);

struct Field {
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  template <std::integral T>
  Field(std::string_view k, T v) : key(k), value(std::to_string(v)), is_number(true) {}
  Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), is_number(true) {}
  Field(std::string_view k, const Error& e);
  template <class Tag>
  Field(std::string_view k, const Id<Tag>& id) : key(k), value(id.str()) {}

  std::string_view key;
  std::string value;
  bool is_number = false;  // written without quotes in JSON
};
using Fields = std::initializer_list<Field>;

bool enabled(Level level);
void write(Level level, std::string_view message, Fields fields);

inline void debug(std::string_view message, Fields fields = {}) {
  if (enabled(Level::kDebug)) write(Level::kDebug, message, fields);
}
inline void info(std::string_view message, Fields fields = {}) {
  if (enabled(Level::kInfo)) write(Level::kInfo, message, fields);
}
inline void warn(std::string_view message, Fields fields = {}) {
  if (enabled(Level::kWarn)) write(Level::kWarn, message, fields);
}
inline void error(std::string_view message, Fields fields = {}) {
  if (enabled(Level::kError)) write(Level::kError, message, fields);
}

}  // namespace spillway::base::log
