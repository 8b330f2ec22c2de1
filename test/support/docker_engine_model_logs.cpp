// Logs and use of containers on the engine in memory.
#include <algorithm>

#include <fmt/format.h>

#include "test/support/docker_engine_model.hpp"

namespace spillway::test {
namespace {

using nlohmann::json;
using Record = DockerEngineModel::LogRecord;

std::optional<base::WallTime> time_of(const std::string& seconds) {
  if (seconds.empty()) return std::nullopt;
  const size_t point = std::min(seconds.find('.'), seconds.size());
  std::string micros = point < seconds.size() ? seconds.substr(point + 1) : "";
  micros.resize(6, '0');
  return base::WallTime(std::chrono::seconds(std::stoll(seconds.substr(0, point))) +
                        std::chrono::microseconds(std::stoll(micros)));
}

}  // namespace

std::string DockerEngineModel::frame(int type, const std::string& bytes) {
  std::string out(8, '\0');
  out[0] = static_cast<char>(type);
  for (size_t i = 0; i < 4; ++i) out[4 + i] = static_cast<char>((bytes.size() >> (24 - 8 * i)) & 0xff);
  return out + bytes;
}

std::string DockerEngineModel::send(const Record& record, bool tty, bool times) {
  std::string bytes = record.bytes;
  if (times) {
    std::string time = base::to_rfc3339_micro(record.at);
    time.insert(time.size() - 1, "789");
    bytes = time + " " + bytes;
  }
  return tty ? bytes : frame(record.errors ? 2 : 1, bytes);
}

/// An engine counts a tail before it looks at times and outputs.
DockerEngineModel::Response DockerEngineModel::log(const Container& container, const std::string& target) {
  net::HttpResponse response;
  response.status = 200;
  if (const auto whole = logs.find(container.name); whole != logs.end()) {
    response.body = whole->second;
    return response;
  }
  const std::vector<Record>& all = records[container.name];
  const std::string tail = query_value(target, "tail");
  const auto since = time_of(query_value(target, "since"));
  const auto until = time_of(query_value(target, "until"));
  const size_t skip = tail.empty() ? 0 : all.size() - std::min(all.size(), static_cast<size_t>(std::stoul(tail)));
  for (size_t i = skip; i < all.size(); ++i) {
    const Record& record = all[i];
    if ((since && record.at < *since) || (until && record.at > *until)) continue;
    if (query_value(target, record.errors ? "stderr" : "stdout") != "1") continue;
    response.body += send(record, container.body.value("Tty", false), query_value(target, "timestamps") == "1");
  }
  return response;
}

DockerEngineModel::Response DockerEngineModel::use(const Container& container) const {
  json out = {{"read", "0001-01-01T00:00:00Z"}, {"cpu_stats", {{"cpu_usage", {{"total_usage", 0}}}}}};
  if (container.state != "running") return answer(200, out);
  out["read"] = base::to_rfc3339_micro(timers_.wall());
  const auto age = std::chrono::duration_cast<std::chrono::nanoseconds>(timers_.wall() - *container.started);
  out["cpu_stats"]["cpu_usage"]["total_usage"] = 5'000'000 + age.count() / 4;
  out["memory_stats"] = {{"usage", 30'000'000}, {"stats", {{"total_inactive_file", 10'000'000}}}};
  return answer(200, out);
}

}  // namespace spillway::test
