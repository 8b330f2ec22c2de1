// Listings of the engine in memory, in the words of Docker 20.10.
#include <cstdio>

#include "test/support/docker_engine_model.hpp"

namespace spillway::test {
namespace {

using nlohmann::json;

std::string human(base::Duration age) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  const auto minutes = seconds / 60;
  const auto hours = (seconds + 1800) / 3600;
  if (seconds < 1) return "Less than a second";
  if (seconds == 1) return "1 second";
  if (seconds < 60) return std::to_string(seconds) + " seconds";
  if (minutes == 1) return "About a minute";
  if (minutes < 60) return std::to_string(minutes) + " minutes";
  if (hours == 1) return "About an hour";
  if (hours < 48) return std::to_string(hours) + " hours";
  return std::to_string(hours / 24) + " days";
}

std::string http_date(base::WallTime t) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(t - day));
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char text[32];
  std::snprintf(text, sizeof(text), "Sun, %02u %s %04d %02d:%02d:%02d GMT", static_cast<unsigned>(date.day()),
                kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

}  // namespace

std::string DockerEngineModel::status_words(const Container& container) const {
  if (container.state == "running") return "Up " + human(timers_.wall() - *container.started);
  if (!container.started) return "Created";
  return "Exited (" + std::to_string(container.exit_code) + ") " + human(timers_.wall() - *container.finished) + " ago";
}

DockerEngineModel::Response DockerEngineModel::list(const std::string& query) {
  const json filter = json::parse(query_value(query, "filters"), nullptr, false);
  const std::string wanted = filter["label"][0];
  const std::string key = wanted.substr(0, wanted.find('='));
  json out = json::array();
  for (const auto& [id, container] : containers_) {
    const std::string value = container.label(key);
    if (value.empty() || (wanted != key && wanted != key + "=" + value)) continue;
    json ports = json::array();
    for (const auto& item : container.body.value("ExposedPorts", json::object()).items()) {
      if (container.state != "running") continue;
      const int port = std::stoi(item.key());
      ports.push_back({{"PrivatePort", port}, {"PublicPort", 40000 + port}, {"IP", "127.0.0.1"}, {"Type", "tcp"}});
    }
    out.push_back({{"Id", id},
                   {"Names", {"/" + container.name}},
                   {"State", container.state},
                   {"Status", status_words(container)},
                   {"ImageID", "sha256:1"},
                   {"Labels", container.body.value("Labels", json::object())},
                   {"Created", std::chrono::floor<std::chrono::seconds>(container.created).time_since_epoch().count()},
                   {"Ports", ports}});
  }
  Response response = answer(200, out);
  response->headers.emplace_back("Date", http_date(timers_.wall()));
  return response;
}

}  // namespace spillway::test
