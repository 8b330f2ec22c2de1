#include "vk-provider/control/decision_log.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "test/unit/core/market.hpp"
#include "vk-provider/control/decision_replay.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::control;
namespace fs = std::filesystem;
namespace market = core::test_market;

namespace {

/// A folder that goes with the test.
struct Folder {
  Folder() : path(fs::temp_directory_path() / ("spillway-decisions-" + std::to_string(::getpid()))) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name = "log") const { return (path / name).string(); }
  fs::path path;
};

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

base::Result<void> replay(const std::vector<std::string>& files, std::uint64_t* decisions = nullptr) {
  DecisionReplay replay;
  for (const std::string& file : files) {
    for (const std::string& line : lines_of(file)) {
      if (auto fed = replay.feed(line); !fed) return fed;
    }
  }
  if (decisions != nullptr) *decisions = replay.decisions();
  return {};
}

std::vector<core::ProviderAbility> abilities() {
  std::vector<core::ProviderAbility> out;
  for (const char* name : {"a", "b", "c"}) {
    out.emplace_back().name = name;
    out.back().capabilities = {model::Capability::kFiles, model::Capability::kExitCode};
  }
  return out;
}

/// A market that lives for a while, and all that decides in it in a log.
void live(DecisionLog& log, std::uint64_t seed, int decisions) {
  base::SeededRandom random(seed);
  market::Market m;
  m.selector.set_abilities(abilities());
  log.begin(abilities());
  std::vector<model::Offer> offers = market::random_offers(random, 40);
  const auto list = [&] {
    std::map<base::ProviderName, std::vector<model::Offer>> by_provider;
    for (const model::Offer& o : offers) by_provider[o.provider].push_back(o);
    for (auto& [provider, all] : by_provider) {
      log.listed(provider, all, m.now, false);
      m.book.update(provider, std::move(all), m.now);
    }
  };
  list();
  for (int i = 0; i < decisions; ++i) {
    m.now += std::chrono::seconds(random.next() % 90);
    if (random.next() % 4 == 0) {
      model::Offer& moved = offers[random.next() % offers.size()];
      moved.price_per_hour = *moved.price_per_hour + base::Money::from_micros(10'000);
      offers[random.next() % offers.size()].available = random.next() % 3 != 0;
      if (random.next() % 8 == 0) offers.erase(offers.begin());
      list();
    }
    core::Shape shape =
        market::a_shape(static_cast<std::int64_t>(random.next() % 5) * 1'000'000, random.next() % 2 == 0);
    core::Query query;
    query.shape = &shape;
    query.pods = shape.hash;
    if (random.next() % 3 == 0) query.avoid = {offers.front().id};
    if (random.next() % 3 == 0) {
      query.budgets.push_back({base::ProviderName("a"), base::Money::from_micros(2'000'000), 1.0 + 1.0 / 3});
    }
    const core::Decision d = m.selector.choose(query, m.now);
    log.decided(query, d, m.now);
    if (d.kind != core::Decision::Kind::kBuy) continue;
    const base::InstanceTag who("pod-" + std::to_string(i));
    log.asked(m.beliefs.pools().key(d.best->pool), who, m.now);
    m.beliefs.begin(d.best->pool, who, m.now);
    core::Beliefs::Report report;
    report.pool = d.best->pool;
    report.offer = d.best->offer.id;
    report.who = who;
    report.result =
        static_cast<core::LaunchResult>(random.next() % static_cast<std::uint64_t>(core::LaunchResult::kCount));
    report.took = std::chrono::milliseconds(random.next() % 9000);
    report.pods = shape.hash;
    report.digest = core::digest_of(d.best->offer);
    log.learnt(m.beliefs.pools().key(report.pool), report, m.now);
    m.beliefs.learn(report, m.now);
  }
  log.flush();
}

}  // namespace

TEST_CASE("decisions that were recorded are made again bit for bit") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const Folder folder;
    {
      auto log = DecisionLog::create(folder.file());
      REQUIRE(log);
      live(**log, seed, 60);
    }
    std::uint64_t decisions = 0;
    const auto done = replay({folder.file()}, &decisions);
    if (!done) FAIL(done.error().message);
    CHECK(decisions == 60);
  }
}

TEST_CASE("the first decision that is another now is told with both") {
  const Folder folder;
  live(**DecisionLog::create(folder.file()), 1, 20);
  DecisionReplay replay;
  for (std::string line : lines_of(folder.file())) {
    const size_t at = line.find("\"indexMicros\":");
    const bool changed = at != std::string::npos;
    if (changed) line.insert(at + 14, "1");
    const auto fed = replay.feed(line);
    if (!changed) {
      REQUIRE(fed);
      continue;
    }
    REQUIRE_FALSE(fed);
    CHECK(fed.error().kind == base::ErrorKind::kConflict);
    CHECK(fed.error().message.starts_with("decided then: {\"t\":\"decided\""));
    CHECK(fed.error().message.find("\ndecided now:  {\"t\":\"decided\"") != std::string::npos);
    return;
  }
  FAIL("nothing was decided");
}

TEST_CASE("a log that is full goes on in the next part, and all parts together are replayed") {
  const Folder folder;
  {
    auto log = DecisionLog::create(folder.file(), {40'000, 8});
    REQUIRE(log);
    live(**log, 3, 200);
  }
  REQUIRE(fs::exists(folder.file("log.1")));
  std::vector<std::string> parts;
  for (int age = 9; age > 0; --age) {
    if (fs::exists(folder.file("log." + std::to_string(age))))
      parts.push_back(folder.file("log." + std::to_string(age)));
  }
  parts.push_back(folder.file());
  for (const std::string& part : parts) CHECK(fs::file_size(part) < 60'000);
  const auto done = replay(parts);
  if (!done) FAIL(done.error().message);
  const auto middle = replay({folder.file()});
  REQUIRE_FALSE(middle);
  CHECK(middle.error().message.starts_with("it begins in the middle: this is part "));
  parts.erase(parts.begin() + 1);
  CHECK_FALSE(replay(parts));
}

TEST_CASE("a log keeps so many parts, and a daemon that starts anew begins one") {
  const Folder folder;
  for (int start = 0; start < 6; ++start) live(**DecisionLog::create(folder.file(), {1 << 20, 3}), 5, 3);
  CHECK(fs::exists(folder.file("log.2")));
  CHECK_FALSE(fs::exists(folder.file("log.3")));
  std::uint64_t decisions = 0;
  CHECK(replay({folder.file("log.2"), folder.file("log.1"), folder.file()}, &decisions));
  CHECK(decisions == 9);
}

TEST_CASE("an unchanged listing takes a line, not a copy") {
  const Folder folder;
  base::SeededRandom random(1);
  std::vector<model::Offer> offers = market::random_offers(random, 200);
  for (model::Offer& o : offers) o.provider = base::ProviderName("a");
  {
    auto log = *DecisionLog::create(folder.file());
    log->begin(abilities());
    for (int i = 0; i < 10; ++i) log->listed(base::ProviderName("a"), offers, market::kStart + i * 1min, false);
  }
  const auto lines = lines_of(folder.file());
  REQUIRE(lines.size() == 12);
  CHECK(lines[2].size() > 20'000);
  for (size_t i = 3; i < lines.size(); ++i) CHECK(lines[i].size() < 200);
}

TEST_CASE("a file that cannot be written is told at the start; one that is none is refused") {
  CHECK_FALSE(DecisionLog::create("/nonexistent/folder/log"));
  DecisionReplay replay;
  CHECK_FALSE(replay.feed("{}"));
  CHECK_FALSE(replay.feed("rubbish"));
  CHECK_FALSE(replay.feed("{\"t\":\"begin\",\"providers\":[]}"));
}
