#include "vk-provider/control/brake_keeper.hpp"

#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "vk-provider/base/log.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

constexpr base::Duration kCallDeadline = std::chrono::seconds(10);
constexpr base::Duration kWriteEvery = std::chrono::seconds(5);
constexpr std::string_view kVersion = "1";

}  // namespace

std::string encode_brake(const std::vector<core::OwnerBrake::Kept>& state) {
  const auto number = [](base::WallTime t) { return t.time_since_epoch().count(); };
  std::string out;
  for (const core::OwnerBrake::Kept& k : state) {
    out += fmt::format("{} {} {} {} {} {} {} {}", k.owner, k.failures, number(k.raised), number(k.last_failure),
                       number(k.next_launch), k.refusals, number(k.hold_until), k.ns.empty() ? "-" : k.ns);
    for (const base::WallTime t : k.failed) out += fmt::format(" {}", number(t));
    out += "\n";
  }
  return out;
}

base::Result<std::vector<core::OwnerBrake::Kept>> decode_brake(std::string_view rows) {
  std::vector<core::OwnerBrake::Kept> out;
  std::istringstream lines{std::string(rows)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    core::OwnerBrake::Kept& kept = out.emplace_back();
    const auto time = [&](base::WallTime& t) {
      std::int64_t micros = 0;
      words >> micros;
      t = base::WallTime(std::chrono::microseconds(micros));
    };
    words >> kept.owner >> kept.failures;
    time(kept.raised);
    time(kept.last_failure);
    time(kept.next_launch);
    words >> kept.refusals;
    time(kept.hold_until);
    // A row of the first days ends here.
    if (!words.fail() && !words.eof()) words >> kept.ns;
    if (kept.ns == "-") kept.ns.clear();
    while (!words.fail() && !words.eof()) time(kept.failed.emplace_back());
    if (words.fail() || kept.failures < 0 || kept.refusals < 0)
      return base::fail(base::ErrorKind::kInvalid, "line " + std::to_string(out.size()) + " is no row of the brake");
  }
  return out;
}

BrakeKeeper::BrakeKeeper(core::OwnerBrake& brake, kube::KubeApi& api, std::string ns, const std::string& installation,
                         async::Timers& timers, std::function<bool()> holds_lease)
    : brake_(brake),
      maps_(api, std::move(ns)),
      name_("spillway-brake-" + installation),
      timers_(timers),
      holds_lease_(std::move(holds_lease)) {}

async::Task<void> BrakeKeeper::load() {
  auto map = co_await maps_.get(name_, timers_.now() + kCallDeadline);
  if (!map && map.error().kind != base::ErrorKind::kNotFound) co_return base::fail(std::move(map.error()));
  loaded_ = true;
  if (!map) co_return base::Result<void>();
  version_ = map->resource_version;
  auto state = map->data["version"] == kVersion
                   ? decode_brake(map->data["owners"])
                   : base::fail(base::ErrorKind::kInvalid, "its version is \"" + map->data["version"] + "\"");
  foreign_ = !state;
  if (!state) co_return base::fail(std::move(state.error()));
  brake_.resume(*state, timers_.both());
  co_return base::Result<void>();
}

async::Task<void> BrakeKeeper::write() {
  const std::uint64_t changes = brake_.changes();
  kube::ConfigMap map;
  map.name = name_;
  map.resource_version = version_;
  map.data["version"] = kVersion;
  map.data["owners"] = encode_brake(brake_.state(timers_.both()));
  auto version = co_await maps_.put(std::move(map), timers_.now() + kCallDeadline);
  if (version) {
    version_ = std::move(*version);
    written_ = changes;
    co_return base::Result<void>();
  }
  // Somebody wrote or removed it, or an answer to us was lost: what we know is newer.
  const auto stands = co_await maps_.get(name_, timers_.now() + kCallDeadline);
  if (stands) version_ = stands->resource_version;
  if (!stands && stands.error().kind == base::ErrorKind::kNotFound) version_.clear();
  co_return base::fail(std::move(version.error()));
}

boost::asio::awaitable<void> BrakeKeeper::first_look() {
  const auto read = co_await load();
  if (read) co_return;
  failing_ = true;
  log::warn("what is known of failing owners cannot be read", {{"name", name_}, {"error", read.error()}});
}

async::Loop BrakeKeeper::run() {
  for (;;) {
    co_await timers_.sleep_for(kWriteEvery);
    brake_.forget_quiet(timers_.now());
    if (foreign_ || !holds_lease_() || (loaded_ && written_ == brake_.changes())) continue;
    const auto done = loaded_ ? co_await write() : co_await load();
    if (!done && !std::exchange(failing_, true))
      log::warn("what is known of failing owners is not kept", {{"name", name_}, {"error", done.error()}});
    if (done && std::exchange(failing_, false)) log::info("what is known of failing owners is kept again");
  }
}

}  // namespace spillway::control
