#include "vk-provider/core/drain_policy.hpp"

#include <catch2/catch.hpp>

#include "test/unit/core/drain.hpp"

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace core = spillway::core;
namespace model = spillway::model;
using Answer = core::DrainReply::Answer;
using Asked = std::vector<std::string>;
using spillway::test::DrainWorld;

namespace {

/// The pod was evicted, and another one is Ready at home.
void settle(DrainWorld& w, const std::string& uid, const std::string& owner, const std::string& node) {
  w.reply(uid, Answer::kDone);
  w.remove(uid);
  w.put(DrainWorld::pod(uid + "'", owner, node));
  w.step();
}

std::int64_t barred(const core::DrainStep& step, core::DrainBar why) {
  return step.barred.at(static_cast<size_t>(why));
}

}  // namespace

TEST_CASE("pods that are not Ready stay while their node is not") {
  DrainWorld w;
  model::HomePod pod = DrainWorld::pod("a", "web", "burst");
  pod.drain.ready = false;
  w.put(pod);
  model::HomeNode away = spillway::test::home_node("burst");
  away.ready = false;
  w.book.put_node(away);
  CHECK(w.asked().empty());
  w.book.put_node(spillway::test::home_node("burst"));
  CHECK(w.asked() == Asked{"evict a"});
}

TEST_CASE("a pod goes home when the gate is closed, and the move ends with a Ready one there") {
  DrainWorld w;
  w.put(DrainWorld::pod("a", "web", "burst"));
  CHECK(w.asked() == Asked{"evict a"});
  CHECK(w.asked().empty());  // one question at a time
  w.reply("a", Answer::kDone);
  CHECK(w.step().inflight == 1);
  CHECK(w.heard("started a"));
  w.remove("a");
  w.put(DrainWorld::pod("a'", "web", ""));
  CHECK(w.step().inflight == 1);
  model::HomePod next = DrainWorld::pod("a'", "web", "home1");
  next.drain.ready = false;
  w.put(next);
  CHECK(w.step().inflight == 1);
  next.drain.ready = true;
  w.put(next);
  CHECK(w.step().inflight == 0);
  CHECK(w.heard("done a"));
  CHECK(w.ended == Asked{"home"});
}

TEST_CASE("nothing moves without a closed gate, a view of home, or a view of the budgets") {
  DrainWorld w;
  w.put(DrainWorld::pod("a", "web", "burst"));
  SECTION("open") { w.open = true; }
  SECTION("blind") { w.blind = true; }
  SECTION("budgets unknown") { w.budgets_known = false; }
  CHECK(w.asked().empty());
  w.open = w.blind = false;
  w.budgets_known = true;
  CHECK(w.asked() == Asked{"evict a"});
}

TEST_CASE("what is not Ready goes first, then the dearest, then the oldest; unknown prices last") {
  core::DrainRules rules;
  rules.interval = 0s;
  rules.max_concurrent = 10;
  DrainWorld w(rules);
  const auto add = [&](const char* uid, std::int64_t price, int created, bool ready) {
    model::HomePod pod = DrainWorld::pod(uid, std::string("rs-") + uid, "burst");
    if (price > 0) pod.drain.price = base::Money::from_micros(price);
    pod.drain.created = base::WallTime(std::chrono::seconds(created));
    pod.drain.ready = ready;
    w.put(pod);
  };
  add("unknown", 0, 1, true);
  add("cheap", 10, 1, true);
  add("dear-new", 20, 9, true);
  add("dear-old", 20, 3, true);
  add("unready", 5, 9, false);
  model::HomePod booting = DrainWorld::pod("booting", "rs-booting", "burst");
  booting.drain.ready = false;
  booting.drain.pending = true;
  w.put(booting);
  model::HomePod last = DrainWorld::pod("rather-not", "rs", "burst");
  last.drain.rather_not = true;
  last.drain.price = base::Money::from_micros(99);
  w.put(last);
  CHECK(w.asked() == Asked{"evict booting", "evict unready", "evict dear-old", "evict dear-new", "evict cheap",
                           "evict unknown", "evict rather-not"});
}

TEST_CASE("some pods stay where they are, and it is counted why") {
  DrainWorld w;
  model::HomePod pod = DrainWorld::pod("a", "web", "burst");
  core::DrainBar why = core::DrainBar::kNone;
  SECTION("by their annotation") {
    pod.drain.keep = pod.drain.evict_anyway = true;
    why = core::DrainBar::kKept;
  }
  SECTION("nobody would make another one") {
    pod = DrainWorld::pod("a", "", "burst");
    pod.drain.evict_anyway = true;
    why = core::DrainBar::kBare;
  }
  SECTION("of a DaemonSet") {
    pod.drain.owner_kind = "DaemonSet";
    why = core::DrainBar::kKind;
  }
  SECTION("of a Job") {
    pod.drain.owner_kind = "Job";
    why = core::DrainBar::kKind;
  }
  SECTION("tolerates the gate") {
    pod.tolerations.push_back(spillway::test::tolerate("spillway.dev/home-has-capacity"));
    why = core::DrainBar::kKind;
  }
  SECTION("not Ready for long enough") {
    pod.drain.ready_since = w.now.wall - 9min;
    why = core::DrainBar::kYoung;
  }
  SECTION("without a budget") {
    w.policy->roster().remove_budget("ns", "all");
    why = core::DrainBar::kNoBudget;
  }
  SECTION("no node of home suits it") {
    pod.node_selector = {{"disk", "fast"}};
    why = core::DrainBar::kNoRoom;
  }
  w.put(pod);
  const core::DrainStep step = w.step();
  CHECK(step.orders.empty());
  CHECK(barred(step, why) == 1);
  CHECK(step.waiting == 0);
}

TEST_CASE("what may be lifted is lifted") {
  core::DrainRules rules;
  SECTION("pods of Jobs, by configuration") {
    rules.jobs = true;
    DrainWorld w(rules);
    model::HomePod pod = DrainWorld::pod("a", "job", "burst");
    pod.drain.owner_kind = "Job";
    w.put(pod);
    CHECK(w.asked() == Asked{"evict a"});
  }
  SECTION("pods without a budget, by configuration") {
    rules.allow_without_pdb = true;
    DrainWorld w(rules);
    w.policy->roster().remove_budget("ns", "all");
    w.put(DrainWorld::pod("a", "web", "burst"));
    CHECK(w.asked() == Asked{"evict a"});
  }
  SECTION("age and budget, by the descheduler's annotation") {
    DrainWorld w;
    w.policy->roster().remove_budget("ns", "all");
    model::HomePod pod = DrainWorld::pod("a", "web", "burst");
    pod.drain.ready_since = w.now.wall;
    pod.drain.evict_anyway = true;
    w.put(pod);
    CHECK(w.asked() == Asked{"evict a"});
  }
}

TEST_CASE("a budget is about the pods that its selector names") {
  DrainWorld w;
  model::DisruptionBudget budget;
  budget.ns = "ns";
  budget.name = "all";
  model::NodeRequirement& requirement = budget.selector.emplace_back();
  requirement.key = "app";
  requirement.op = model::NodeRequirement::Operator::kIn;
  requirement.values = {"web"};
  w.policy->put_budget(budget, 0);
  w.put(DrainWorld::pod("a", "other", "burst"));
  CHECK(w.asked().empty());
  w.put(DrainWorld::pod("b", "web", "burst"));
  CHECK(w.asked() == Asked{"evict b"});
  budget.selects_none = true;
  w.policy->put_budget(budget, 0);
  CHECK(w.policy->roster().budgets_of(DrainWorld::pod("b", "web", "burst")).empty());
}

TEST_CASE("one pod of a controller, two in all, one a minute") {
  DrainWorld w;
  for (const char* uid : {"a1", "a2", "b1", "c1"}) w.put(DrainWorld::pod(uid, std::string(1, uid[0]), "burst"));
  CHECK(w.asked() == Asked{"evict a1"});
  w.reply("a1", Answer::kDone);
  w.pass(59s);
  CHECK(w.asked().empty());
  w.pass(1s);
  CHECK(w.asked() == Asked{"evict b1"});
  w.reply("b1", Answer::kDone);
  w.pass(60s);
  CHECK(w.asked().empty());  // two are under way
  w.remove("a1");
  w.put(DrainWorld::pod("a1'", "a", "home1"));
  CHECK(w.asked() == Asked{"evict a2"});
}

TEST_CASE("somebody else's evictions count as moves") {
  DrainWorld w;
  model::HomePod leaving = DrainWorld::pod("a1", "a", "burst");
  leaving.deleting = true;
  w.put(leaving);
  w.put(DrainWorld::pod("a2", "a", "burst"));
  CHECK(w.asked().empty());
  w.put(DrainWorld::pod("b1", "b", "burst"));
  CHECK(w.asked() == Asked{"evict b1"});
}

TEST_CASE("no place is promised twice, and the reserve stays free") {
  core::DrainRules rules;
  rules.interval = 0s;
  rules.max_concurrent = 10;
  DrainWorld w(rules);
  for (const char* node : {"home1", "home2"}) {
    model::HomePod big = DrainWorld::pod(std::string("big-") + node, "", node);
    big.gpus.nvidia = node == std::string("home1") ? 2 : 3;
    big.tolerations.clear();
    w.put(big);
  }
  for (const char* owner : {"a", "b", "c", "d"}) w.put(DrainWorld::pod(std::string(owner) + "1", owner, "burst"));
  // Three slots are free; one of them is the reserve.
  CHECK(w.asked() == Asked{"evict a1", "evict b1"});
  settle(w, "a1", "a", "home2");
  settle(w, "b1", "b", "home1");
  w.pass(1h);
  const core::DrainStep step = w.step();
  CHECK(step.orders.empty());
  CHECK(step.waiting == 0);
  CHECK(step.inflight == 0);
}

TEST_CASE("who is ahead, and who waits, has the free GPUs before") {
  DrainWorld w;
  for (int i = 0; i < 5; ++i) {
    model::HomePod pod = DrainWorld::pod("held" + std::to_string(i), "", i < 3 ? "home1" : "home2");
    pod.tolerations.clear();
    w.put(pod);
  }
  w.put(DrainWorld::pod("a", "web", "burst"));
  SECTION("training that waits for two GPUs leaves one slot: the reserve") {
    model::HomePod training = DrainWorld::pod("training", "", "");
    training.tolerations.clear();
    training.gpus.nvidia = 2;
    training.priority = 1000;
    w.put(training);
  }
  SECTION("burst pods that wait") {
    for (const char* uid : {"x", "y"}) {
      model::HomePod pod = DrainWorld::pod(uid, "other", "");
      pod.unschedulable = true;
      w.put(pod);
    }
    w.book.look(w.now.steady);
    w.pass(3s);
  }
  CHECK(w.asked().empty());
  for (const char* uid : {"training", "x", "y"}) w.remove(uid);
  CHECK(w.asked() == Asked{"evict a"});
}

TEST_CASE("a budget that forbids it lets others go first, and is asked again ever less often") {
  DrainWorld w;
  w.put(DrainWorld::pod("a1", "a", "burst"));
  w.put(DrainWorld::pod("a2", "a", "burst"));
  w.put(DrainWorld::pod("b1", "b", "burst"));
  CHECK(w.asked() == Asked{"evict a1"});
  w.reply("a1", Answer::kBudget);
  CHECK(w.asked() == Asked{"evict b1"});
  CHECK(w.heard("blocked a1"));
  settle(w, "b1", "b", "home1");
  w.pass(60s);
  CHECK(w.asked() == Asked{"evict a1"});
  for (const auto wait : {20s, 40s, 80s, 120s, 120s}) {
    w.reply("a1", Answer::kBudget);
    w.pass(wait - 1s);
    const core::DrainStep step = w.step();
    CHECK(step.orders.empty());
    CHECK(barred(step, core::DrainBar::kBudget) == 2);
    w.pass(1s);
    CHECK(w.asked() == Asked{"evict a1"});
  }
  w.reply("a1", Answer::kBudget, base::Duration(10min));
  w.pass(9min);
  CHECK(w.asked().empty());
  w.pass(1min);
  CHECK(w.asked() == Asked{"evict a1"});
}

TEST_CASE("a budget that allows again is asked at once") {
  DrainWorld w;
  w.put(DrainWorld::pod("a", "web", "burst"));
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kBudget, base::Duration(10min));
  model::DisruptionBudget budget;
  budget.ns = "ns";
  budget.name = "all";
  w.policy->put_budget(budget, 0);
  CHECK(w.asked().empty());
  w.policy->put_budget(budget, 1);
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kBudget);
  w.policy->put_budget(budget, 1);
  CHECK(w.asked().empty());
}

TEST_CASE("two budgets, or a missing right, set the pod aside for half an hour") {
  DrainWorld w;
  w.put(DrainWorld::pod("a", "web", "burst"));
  const Answer answer = GENERATE(Answer::kTwoBudgets, Answer::kRefused);
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", answer);
  w.step();
  CHECK(w.heard("blocked a"));
  w.pass(29min);
  CHECK(w.asked().empty());
  w.pass(1min);
  CHECK(w.asked() == Asked{"evict a"});
}

TEST_CASE("a request without an answer is repeated; a pod that is gone is what was wanted") {
  DrainWorld w;
  w.put(DrainWorld::pod("a", "web", "burst"));
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kFailed);
  CHECK(w.asked().empty());
  w.pass(10s);
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kGone);
  w.remove("a");
  w.put(DrainWorld::pod("a'", "web", "home2"));
  w.step();
  CHECK(w.ended == Asked{"home"});
}

TEST_CASE("a replacement that does not come stops all moves for a while") {
  DrainWorld w;
  w.put(DrainWorld::pod("a", "web", "burst"));
  w.put(DrainWorld::pod("b", "other", "burst"));
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kDone);
  w.remove("a");
  w.pass(15min + 1s);
  CHECK(w.asked().empty());
  CHECK(w.ended == Asked{"stalled"});
  CHECK(w.heard("aborted a"));
  w.pass(10min - 1s);
  CHECK(w.asked().empty());
  w.pass(1s);
  CHECK(w.asked() == Asked{"evict b"});
}

TEST_CASE("pods that come back are not moved again and again") {
  DrainWorld w;
  for (int i = 0; i < 2; ++i) {
    const std::string uid = "a" + std::to_string(i);
    w.put(DrainWorld::pod(uid, "web", "burst"));
    CHECK(w.asked() == Asked{"evict " + uid});
    w.reply(uid, Answer::kDone);
    w.remove(uid);
    w.put(DrainWorld::pod("a" + std::to_string(i + 1), "web", "burst"));
    w.step();
    w.pass(10min);
  }
  CHECK(w.ended == Asked{"returned", "returned"});
  const core::DrainStep step = w.step();
  CHECK(step.orders.empty());
  CHECK(barred(step, core::DrainBar::kReturned) == 1);
  w.pass(2h);
  CHECK(w.asked() == Asked{"evict a2"});
}

TEST_CASE("when the gate opens nothing more is asked") {
  DrainWorld w;
  w.put(DrainWorld::pod("a", "web", "burst"));
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kFailed);
  w.open = true;
  w.pass(1min);
  CHECK(w.asked().empty());
  CHECK(w.ended == Asked{"aborted"});
}

TEST_CASE("a new process lets what an earlier one began come to an end") {
  DrainWorld w;
  w.begin();
  model::DisruptionBudget budget;
  budget.ns = "ns";
  budget.name = "all";
  w.policy->put_budget(budget, 0);
  w.put(DrainWorld::pod("a", "web", "burst"));
  CHECK(w.asked().empty());
  w.pass(w.rules.interval);
  CHECK(w.asked() == Asked{"evict a"});
}
