#include "vk-provider/base/log.hpp"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

namespace spillway::base::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
    case Level::kNone: return spdlog::level::off;
  }
  return spdlog::level::info;
}

struct Sink {
  Sink() : logger("spillway", std::make_shared<spdlog::sinks::stderr_sink_mt>()) { set_pattern(Format::kText); }

  void set_pattern(Format f) {
    format = f;
    // The JSON pattern leaves the object open: the payload brings the rest of it.
    logger.set_pattern(
        f == Format::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v)" : "%Y-%m-%dT%H:%M:%S.%fZ %L %v",
        spdlog::pattern_time_type::utc);
  }

  spdlog::logger logger;
  Format format = Format::kText;
};

Sink& sink() {
  static Sink s;
  return s;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

Field::Field(std::string_view k, const Error& e) : key(k), value(std::string(to_string(e.kind)) + ": " + e.message) {}

void configure(Level level, Format format) {
  sink().set_pattern(format);
  sink().logger.set_level(to_spdlog(level));
}

bool enabled(Level level) { return sink().logger.should_log(to_spdlog(level)); }

void write(Level level, std::string_view message, Fields fields) {
  Sink& s = sink();
  std::string line;
  if (s.format == Format::kJson) {
    line = "\"msg\":" + json_string(message);
    for (const Field& f : fields)
      line += "," + json_string(f.key) + ":" + (f.is_number ? f.value : json_string(f.value));
    line += "}";
  } else {
    line = message;
    for (const Field& f : fields) {
      line += ' ';
      line += f.key;
      line += '=';
      line += needs_quotes(f.value) ? json_string(f.value) : f.value;
    }
  }
  s.logger.log(to_spdlog(level), spdlog::string_view_t(line));
}

}  // namespace spillway::base::log
