#include "vk-provider/api/answer_cache.hpp"

#include <catch2/catch.hpp>

#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;

namespace {

/// Somebody who takes a second to answer.
class Oracle {
 public:
  async::Task<int> ask(std::string question) {
    asked.push_back(question);
    co_await reactor.timers.sleep_for(1s);
    if (fails) co_return base::fail(base::ErrorKind::kUnavailable, "away");
    co_return static_cast<int>(question.size());
  }
  async::Task<int> get(std::string question) {
    const base::Deadline deadline = reactor.timers.now() + 10s;
    auto answer = co_await cache.get(question, [&] { return ask(question); }, deadline);
    co_return answer;
  }
  async::Loop get_into(std::string question, std::vector<base::Result<int>>* out) {
    auto answer = co_await get(std::move(question));
    out->push_back(answer);
  }
  /// All at one time.
  std::vector<base::Result<int>> get_all(const std::vector<std::string>& questions) {
    std::vector<base::Result<int>> out;
    async::TaskGroup group(reactor.ctx.get_executor());
    for (const std::string& question : questions) group.spawn(get_into(question, &out));
    reactor.run(group.join());
    return out;
  }

  test::VirtualReactor reactor;
  std::vector<std::string> asked;
  bool fails = false;
  api::AnswerCache<int> cache{reactor.timers, 3, [](const int& n) { return std::chrono::seconds(10 * n); }};
};

}  // namespace

TEST_CASE("an answer holds for its life, and not longer") {
  Oracle oracle;
  CHECK(oracle.reactor.run(oracle.get("a")).value() == 1);
  oracle.reactor.run_for(9s);
  CHECK(oracle.reactor.run(oracle.get("a")).value() == 1);
  CHECK(oracle.asked.size() == 1);
  oracle.reactor.run_for(1s);
  CHECK(oracle.reactor.run(oracle.get("a")).value() == 1);
  CHECK(oracle.asked.size() == 2);
}

TEST_CASE("equal questions at one time are asked once, others each for itself") {
  Oracle oracle;
  const auto answers = oracle.get_all({"a", "a", "bb", "a"});
  CHECK(answers.size() == 4);
  CHECK(oracle.asked == std::vector<std::string>{"a", "bb"});
}

TEST_CASE("an error is shared by those who waited for it, and asked for again by the next") {
  Oracle oracle;
  oracle.fails = true;
  const auto answers = oracle.get_all({"a", "a", "a"});
  CHECK(oracle.asked.size() == 1);
  for (const auto& answer : answers) CHECK(answer.error().message == "away");
  oracle.fails = false;
  CHECK(oracle.reactor.run(oracle.get("a")).value() == 1);
  CHECK(oracle.asked.size() == 2);
}

TEST_CASE("who waits for another's question waits until its own deadline only") {
  Oracle oracle;
  async::TaskGroup group(oracle.reactor.ctx.get_executor());
  std::vector<base::Result<int>> out;
  group.spawn(oracle.get_into("a", &out));
  oracle.reactor.settle();
  const auto late =
      oracle.reactor.run(oracle.cache.get("a", [&] { return oracle.ask("a"); }, oracle.reactor.timers.now() + 500ms));
  CHECK(late.error().kind == base::ErrorKind::kDeadline);
  oracle.reactor.run(group.join());
  CHECK(oracle.asked.size() == 1);
}

TEST_CASE("the cache is bounded, and what ends first makes room") {
  Oracle oracle;
  for (const char* question : {"aaa", "b", "cc"}) REQUIRE(oracle.reactor.run(oracle.get(question)));
  CHECK(oracle.cache.size() == 3);
  REQUIRE(oracle.reactor.run(oracle.get("dddd")));
  CHECK(oracle.cache.size() == 3);
  REQUIRE(oracle.reactor.run(oracle.get("aaa")));
  REQUIRE(oracle.reactor.run(oracle.get("cc")));
  CHECK(oracle.asked == std::vector<std::string>{"aaa", "b", "cc", "dddd"});
  REQUIRE(oracle.reactor.run(oracle.get("b")));
  CHECK(oracle.asked.back() == "b");
}

TEST_CASE("more questions at one time than there is room are all answered") {
  Oracle oracle;
  const auto answers = oracle.get_all({"a", "bb", "ccc", "dddd", "eeeee"});
  CHECK(answers.size() == 5);
  CHECK(oracle.asked.size() == 5);
  CHECK(oracle.cache.size() == 3);
}
