#include <catch2/catch.hpp>

#include "test/unit/core/drain.hpp"
#include "vk-provider/core/drain_policy.hpp"

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace core = spillway::core;
namespace model = spillway::model;
using Answer = core::DrainReply::Answer;
using Asked = std::vector<std::string>;
using spillway::test::DrainWorld;

namespace {

core::DrainRules surge() {
  core::DrainRules rules;
  rules.mode = core::DrainMode::kSurge;
  return rules;
}

/// Pod `a` of `web` was taken from its ReplicaSet, which has made `b`.
struct Detached : DrainWorld {
  Detached() : DrainWorld(surge()) {
    put(pod("a", "web", "burst"));
    CHECK(asked() == Asked{"detach a"});
    reply("a", Answer::kDone);
    put(detached(pod("a", "web", "burst"), now.wall));
    put(pod("b", "web", ""));
    CHECK(asked().empty());
    CHECK(heard("started a"));
    CHECK(heard("detached a"));
  }
  void back() {
    put(pod("a", "web", "burst"));
    remove("b");
  }
};

}  // namespace

TEST_CASE("with surge the replacement comes first") {
  Detached w;
  model::HomePod next = DrainWorld::pod("b", "web", "home1");
  next.drain.ready = false;
  w.put(next);
  CHECK(w.asked().empty());
  next.drain.ready = true;
  w.put(next);
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kDone);
  CHECK(w.step().inflight == 1);
  w.remove("a");
  CHECK(w.step().inflight == 0);
  CHECK(w.ended == Asked{"home"});
  CHECK(w.heard("done a"));
}

TEST_CASE("the note has what a later process needs") {
  DrainWorld w(surge());
  w.put(DrainWorld::pod("a", "web", "burst"));
  const auto orders = w.step().orders;
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].note.hash == "h-web");
  CHECK(orders[0].note.owner_uid == "web");
  CHECK(orders[0].note.since == w.now.wall);
}

TEST_CASE("only Ready pods of ReplicaSets are taken away first") {
  DrainWorld w(surge());
  model::HomePod pod = DrainWorld::pod("a", "web", "burst");
  SECTION("of a StatefulSet") { pod.drain.owner_kind = "StatefulSet"; }
  SECTION("not Ready") { pod.drain.ready = false; }
  w.put(pod);
  CHECK(w.asked() == Asked{"evict a"});
}

TEST_CASE("a detached pod goes back") {
  Detached w;
  SECTION("when the gate opens") {
    w.open = true;
    CHECK(w.asked() == Asked{"return a"});
  }
  SECTION("when its replacement stands on the rented node") {
    w.put(DrainWorld::pod("b", "web", "burst"));
    CHECK(w.asked() == Asked{"return a"});
  }
  SECTION("when home has no room any more") {
    model::HomePod training = DrainWorld::pod("training", "", "");
    training.tolerations.clear();
    training.gpus.nvidia = 8;
    training.priority = 1000;
    w.put(training);
    CHECK(w.asked() == Asked{"return a"});
  }
  SECTION("when its replacement is not Ready in time") {
    w.pass(15min);
    CHECK(w.asked().empty());
    w.pass(1s);
    CHECK(w.asked() == Asked{"return a"});
  }
  w.reply("a", Answer::kDone);
  CHECK(w.asked().empty());
  CHECK(w.ended.empty());  // until it is seen
  w.back();
  CHECK(w.step().inflight == 0);
  CHECK(w.heard("aborted a"));
  CHECK(w.ended.size() == 1);
}

TEST_CASE("a pod that was given back and that nobody takes is ended") {
  Detached w;
  w.remove("b");  // its Deployment is deleted, and the ReplicaSet with it
  w.pass(15min + 1s);
  CHECK(w.asked() == Asked{"return a"});
  w.reply("a", Answer::kDone);
  model::HomePod orphan = DrainWorld::pod("a", "web", "burst");
  orphan.drain.owner_uid.clear();
  w.put(orphan);
  CHECK(w.asked().empty());
  w.pass(119s);
  CHECK(w.asked().empty());
  w.pass(1s);
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kDone);
  w.remove("a");
  CHECK(w.step().inflight == 0);
  CHECK(w.ended == Asked{"gone"});
}

TEST_CASE("a replacement that opens the gate counts as one that came back") {
  Detached w;
  for (int i = 0; i < core::DrainPolicy::kMaxReturns; ++i) {
    w.open = true;
    CHECK(w.asked() == Asked{"return a"});
    w.reply("a", Answer::kDone);
    w.back();
    CHECK(w.step().inflight == 0);
    w.open = false;
    w.pass(10min);
    if (i + 1 == core::DrainPolicy::kMaxReturns) break;
    CHECK(w.asked() == Asked{"detach a"});
    w.reply("a", Answer::kDone);
    w.put(DrainWorld::detached(DrainWorld::pod("a", "web", "burst"), w.now.wall));
    w.put(DrainWorld::pod("b", "web", ""));
    CHECK(w.asked().empty());
  }
  CHECK(w.asked().empty());
}

TEST_CASE("a move whose replacement is Ready is finished, open or closed") {
  Detached w;
  w.put(DrainWorld::pod("b", "web", "home1"));
  w.open = true;
  CHECK(w.asked() == Asked{"evict a"});
}

TEST_CASE("a budget that forbids the end is asked again, for half an hour at most") {
  Detached w;
  w.put(DrainWorld::pod("b", "web", "home1"));
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kBudget);
  CHECK(w.asked().empty());
  w.pass(10s);
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kBudget);
  w.pass(30min);
  CHECK(w.asked() == Asked{"return a"});
  CHECK(w.heard("blocked a"));
}

TEST_CASE("a right that is missing for the end gives the pod back") {
  Detached w;
  w.put(DrainWorld::pod("b", "web", "home1"));
  CHECK(w.asked() == Asked{"evict a"});
  w.reply("a", Answer::kTwoBudgets);
  CHECK(w.asked() == Asked{"return a"});
}

TEST_CASE("two budgets are seen before anything is done") {
  DrainWorld w(surge());
  model::DisruptionBudget second;
  second.ns = "ns";
  second.name = "second";
  w.policy->put_budget(second, 0);
  w.put(DrainWorld::pod("a", "web", "burst"));
  CHECK(w.asked().empty());
  CHECK(w.heard("blocked a"));
  w.policy->roster().remove_budget("ns", "second");
  w.pass(30min);
  CHECK(w.asked() == Asked{"detach a"});
}

TEST_CASE("a write that came between is no failure; a refusal is") {
  DrainWorld w(surge());
  w.put(DrainWorld::pod("a", "web", "burst"));
  CHECK(w.asked() == Asked{"detach a"});
  SECTION("conflict") {
    w.reply("a", Answer::kConflict);
    w.pass(1s);
    CHECK(w.asked() == Asked{"detach a"});
  }
  SECTION("no right to patch pods") {
    w.reply("a", Answer::kRefused);
    CHECK(w.asked().empty());
    CHECK(w.heard("blocked a"));
    CHECK(w.step().inflight == 0);
    w.pass(29min);
    CHECK(w.asked().empty());
  }
  SECTION("no answer, but it was done") {
    w.reply("a", Answer::kFailed);
    w.put(DrainWorld::detached(DrainWorld::pod("a", "web", "burst"), w.now.wall));
    w.put(DrainWorld::pod("b", "web", "home1"));
    CHECK(w.asked() == Asked{"evict a"});
    CHECK(w.heard("detached a"));
  }
}

TEST_CASE("a later process goes on with a detached pod, or gives it back") {
  DrainWorld w(surge());
  const auto since = w.now.wall - 5min;
  model::HomePod pod = DrainWorld::detached(DrainWorld::pod("a", "web", "burst"), since);
  model::HomePod next = DrainWorld::pod("b", "web", "home1");
  next.drain.created = since + 2s;
  SECTION("its replacement is Ready") {
    w.put(next);
    w.put(pod);
    CHECK(w.asked() == Asked{"evict a"});
    w.reply("a", Answer::kDone);
    w.remove("a");
    w.step();
    CHECK(w.ended == Asked{"home"});
  }
  SECTION("those that were there before are no replacement") {
    next.drain.created = since - 1min;
    w.put(next);
    w.put(pod);
    CHECK(w.asked().empty());
    w.pass(10min + 1s);
    CHECK(w.asked() == Asked{"return a"});
  }
  SECTION("longer ago than half an hour") {
    pod.drain.note->since = w.now.wall - 31min;
    w.put(next);
    w.put(pod);
    CHECK(w.asked() == Asked{"return a"});
  }
  SECTION("the gate is open") {
    w.open = true;
    w.put(pod);
    CHECK(w.asked() == Asked{"return a"});
  }
  SECTION("without a note of ours") {
    pod.drain.note.reset();
    w.put(pod);
    CHECK(w.asked() == Asked{"return a"});
  }
  SECTION("the mode is another one by now") {
    w.rules.mode = core::DrainMode::kEvict;
    w.begin();
    w.put(next);
    w.put(pod);
    CHECK(w.asked() == Asked{"return a"});
  }
}

TEST_CASE("an annotation that is not ours is left alone") {
  DrainWorld w(surge());
  w.rules.mode = core::DrainMode::kOff;
  w.begin();
  model::HomePod pod = DrainWorld::pod("a", "web", "burst");
  pod.drain.draining = "x";
  SECTION("with the label") {}
  SECTION("with a controller") { pod.labels.clear(); }
  w.put(pod);
  CHECK(w.asked().empty());
}
