#include "vk-provider/core/home_book.hpp"

#include <catch2/catch.hpp>

#include <chrono>

#include "vk-provider/base/random.hpp"

using namespace std::chrono_literals;
namespace base = spillway::base;
namespace core = spillway::core;
namespace model = spillway::model;

namespace {

constexpr base::TimePoint kStart{1h};

model::Toleration tolerate(std::string key) {
  model::Toleration toleration;
  toleration.key = std::move(key);
  toleration.op = model::Toleration::Operator::kExists;
  return toleration;
}

core::HomeClass a_class() {
  core::HomeClass about;
  about.tolerations = {tolerate("nvidia.com/gpu")};
  core::VirtualNode node;
  node.name = "burst";
  node.labels = {{"type", "virtual-kubelet"}, {"nvidia.com/gpu.product", "H100"}};
  about.virtual_nodes = {node};
  return about;
}

model::HomeNode a_node(std::string name, std::int64_t gpus = 8) {
  model::HomeNode node;
  node.name = std::move(name);
  node.allocatable.nvidia = gpus;
  node.has_nvidia = true;
  node.ready = true;
  return node;
}

model::HomePod a_pod(std::string uid, std::int64_t gpus, std::string node = {}) {
  model::HomePod pod;
  pod.uid = std::move(uid);
  pod.gpus.nvidia = gpus;
  pod.node_name = std::move(node);
  return pod;
}

model::HomePod burst_pod(std::string uid, std::int64_t gpus = 1, std::string node = {}) {
  model::HomePod pod = a_pod(std::move(uid), gpus, std::move(node));
  pod.tolerations = {tolerate("virtual-kubelet.io/provider")};
  pod.priority = 100;
  pod.unschedulable = pod.node_name.empty();
  return pod;
}

model::HomePod training_pod(std::string uid, std::int64_t gpus = 8) {
  model::HomePod pod = a_pod(std::move(uid), gpus);
  pod.priority = 10000;
  pod.unschedulable = true;
  return pod;
}

struct Home {
  Home() {
    book.put_node(a_node("home1"));
    book.put_node(a_node("home2"));
  }
  core::HomeSight look(base::Duration after = 0s) { return book.look(kStart + after); }
  std::int64_t free() { return look().free_gpus; }

  core::HomeBook book{a_class()};
};

}  // namespace

TEST_CASE("free is allocatable less what bound pods hold") {
  Home home;
  CHECK(home.free() == 16);
  CHECK(home.book.put_pod(a_pod("a", 3, "home1"), kStart));
  CHECK(home.free() == 13);
  CHECK_FALSE(home.book.put_pod(a_pod("a", 3, "home1"), kStart));

  SECTION("a pod that ends gives its GPUs back; one that is only being deleted does not") {
    model::HomePod pod = a_pod("a", 3, "home1");
    pod.deleting = true;
    CHECK_FALSE(home.book.put_pod(pod, kStart));
    CHECK(home.free() == 13);
    pod.terminal = true;
    CHECK(home.book.put_pod(pod, kStart));
    CHECK(home.free() == 16);
    CHECK(home.book.pods() == 0);
  }
  SECTION("a deleted pod too") {
    CHECK(home.book.remove_pod("a"));
    CHECK_FALSE(home.book.remove_pod("a"));
    CHECK(home.free() == 16);
  }
  SECTION("pods without GPUs of this gate are not kept") {
    model::HomePod other = a_pod("b", 0, "home1");
    other.gpus.amd = 8;
    CHECK_FALSE(home.book.put_pod(other, kStart));
    CHECK(home.book.pods() == 1);
  }
}

TEST_CASE("a pod that is known before its node counts when the node comes") {
  core::HomeBook book(a_class());
  book.put_pod(a_pod("a", 5, "home1"), kStart);
  CHECK(book.look(kStart).nodes == 0);
  book.put_node(a_node("home1"));
  CHECK(book.look(kStart).free_gpus == 3);
  CHECK(book.remove_node("home1"));
  CHECK(book.look(kStart).free_gpus == 0);
  CHECK(book.nodes() == 1);  // its pod still names it
  book.remove_pod("a");
  CHECK(book.nodes() == 0);
}

TEST_CASE("a node that holds more than it has does not eat what another has") {
  Home home;
  home.book.put_node(a_node("home1", 7));
  home.book.put_pod(a_pod("a", 8, "home1"), kStart);
  CHECK(home.free() == 8);
}

TEST_CASE("only usable nodes count, and all of home is counted as nodes") {
  struct Row {
    const char* what;
    void (*change)(model::HomeNode&);
    std::int64_t nodes, free;
  };
  const auto [what, change, nodes, free] = GENERATE(values<Row>({
      Row{"cordoned", [](model::HomeNode& n) { n.unschedulable = true; }, 2, 8},
      Row{"not ready", [](model::HomeNode& n) { n.ready = false; }, 2, 8},
      Row{"being deleted", [](model::HomeNode& n) { n.deleting = true; }, 2, 8},
      Row{"tainted", [](model::HomeNode& n) { n.taints = {{"team", "a", "NoSchedule"}}; }, 2, 8},
      Row{"evicting", [](model::HomeNode& n) { n.taints = {{"x", "", "NoExecute"}}; }, 2, 8},
      Row{"tainted softly", [](model::HomeNode& n) { n.taints = {{"x", "", "PreferNoSchedule"}}; }, 2, 16},
      Row{"with a GPU taint", [](model::HomeNode& n) { n.taints = {{"nvidia.com/gpu", "present", "NoSchedule"}}; }, 2, 16},
      Row{"virtual by label", [](model::HomeNode& n) { n.labels = {{"type", "virtual-kubelet"}}; }, 1, 8},
      Row{"virtual by taint", [](model::HomeNode& n) { n.taints = {{"virtual-kubelet.io/provider", "azure", "NoSchedule"}}; }, 1, 8},
      Row{"without GPUs", [](model::HomeNode& n) { n.has_nvidia = false; n.allocatable = {}; }, 1, 8},
      Row{"with all GPUs broken", [](model::HomeNode& n) { n.allocatable = {}; }, 2, 8},
      Row{"sick by annotation", [](model::HomeNode& n) { n.unhealthy_gpus = 3; }, 2, 13},
  }));
  CAPTURE(what);
  Home home;
  model::HomeNode node = a_node("home1");
  change(node);
  home.book.put_node(node);
  CHECK(home.look().nodes == nodes);
  CHECK(home.free() == free);
  home.book.put_node(a_node("home1"));
  CHECK(home.look().nodes == 2);
  CHECK(home.free() == 16);
}

TEST_CASE("the home selector keeps classes of GPUs apart") {
  core::HomeClass about = a_class();
  about.home_selector = {{"gpu", "h100"}};
  core::HomeBook book(about);
  model::HomeNode node = a_node("home1");
  node.labels = {{"gpu", "h100"}};
  book.put_node(node);
  node = a_node("home2");
  node.labels = {{"gpu", "l4"}};
  book.put_node(node);
  CHECK(book.look(kStart).nodes == 1);
  CHECK(book.look(kStart).free_gpus == 8);
  model::HomePod pod = training_pod("t");
  pod.node_selector = {{"gpu", "l4"}};
  book.put_pod(pod, kStart);
  CHECK(book.look(kStart).demand_gpus == 0);
  pod.uid = "u";
  pod.node_selector = {{"gpu", "h100"}};
  book.put_pod(pod, kStart);
  CHECK(book.look(kStart).demand_gpus == 8);
}

TEST_CASE("GPUs that a query calls sick are left out, up to what is free") {
  Home home;
  home.book.put_pod(a_pod("a", 7, "home1"), kStart);
  CHECK(home.book.set_sick({{"home1", 4}, {"gone", 2}}));
  CHECK_FALSE(home.book.set_sick({{"home1", 4}, {"gone", 2}}));
  CHECK(home.free() == 8);
  CHECK(home.look().sick_gpus == 1);
  home.book.put_node(a_node("gone"));
  CHECK(home.free() == 14);
  home.book.set_sick({});
  CHECK(home.free() == 17);
  CHECK(home.look().sick_gpus == 0);
}

TEST_CASE("who waits and cannot leave home is ahead, if his priority is not lower") {
  Home home;
  home.book.put_pod(burst_pod("b"), kStart);
  home.book.put_pod(training_pod("t"), kStart);
  CHECK(home.look().demand_gpus == 8);
  SECTION("a lower priority is behind") {
    model::HomePod low = training_pod("low", 4);
    low.priority = 99;
    home.book.put_pod(low, kStart);
    CHECK(home.look().demand_gpus == 8);
    home.book.remove_pod("b");  // without burst pods everybody is ahead
    CHECK(home.look().demand_gpus == 12);
  }
  SECTION("a nominated pod holds its place instead") {
    model::HomePod pod = training_pod("t");
    pod.nominated_node = "home1";
    home.book.put_pod(pod, kStart);
    CHECK(home.look().demand_gpus == 0);
    CHECK(home.free() == 8);
    pod.node_name = "home1";
    home.book.put_pod(pod, kStart);
    CHECK(home.free() == 8);
  }
  SECTION("what is held back by a gate or being deleted waits for nothing") {
    model::HomePod pod = training_pod("t");
    pod.gated = true;
    home.book.put_pod(pod, kStart);
    CHECK(home.look().demand_gpus == 0);
    pod.gated = false;
    pod.deleting = true;
    home.book.put_pod(pod, kStart);
    CHECK(home.look().demand_gpus == 0);
  }
}

TEST_CASE("which pods are burst pods") {
  struct Row {
    const char* what;
    void (*change)(model::HomePod&);
    bool burst;
  };
  const auto [what, change, burst] = GENERATE(values<Row>({
      Row{"as it is", [](model::HomePod&) {}, true},
      Row{"without the toleration", [](model::HomePod& p) { p.tolerations.clear(); }, false},
      Row{"that tolerates the gate",
          [](model::HomePod& p) { p.tolerations.push_back(tolerate("spillway.dev/home-has-capacity")); }, false},
      Row{"that tolerates everything", [](model::HomePod& p) { p.tolerations = {tolerate("")}; }, false},
      Row{"for another node", [](model::HomePod& p) { p.node_selector = {{"nvidia.com/gpu.product", "L4"}}; }, false},
      Row{"for a node like ours", [](model::HomePod& p) { p.node_selector = {{"nvidia.com/gpu.product", "H100"}}; },
          true},
      Row{"with an affinity that nothing meets", [](model::HomePod& p) { p.has_node_terms = true; }, false},
  }));
  CAPTURE(what);
  Home home;
  model::HomePod pod = burst_pod("b");
  change(pod);
  home.book.put_pod(pod, kStart);
  CHECK(home.look(2s).pending == (burst ? 1 : 0));
}

TEST_CASE("a burst pod may have to opt in") {
  core::HomeClass about = a_class();
  about.opt_in = {{"spillway.dev/burst", "true"}};
  core::HomeBook book(about);
  model::HomePod pod = burst_pod("b");
  book.put_pod(pod, kStart);
  CHECK(book.look(kStart + 2s).pending == 0);
  pod.labels = {{"spillway.dev/burst", "true"}};
  pod.uid = "c";
  book.put_pod(pod, kStart);
  CHECK(book.look(kStart + 4s).pending == 1);
}

TEST_CASE("a burst pod waits from 2 s on, and nothing fits it after 2 minutes") {
  Home home;
  home.book.put_pod(burst_pod("b"), kStart);
  CHECK(home.book.next_change() == kStart + 2s);
  CHECK(home.look(1s).pending == 0);
  CHECK(home.look(2s).pending == 1);
  CHECK(home.look(2s).fitting == 1);
  CHECK(home.book.next_change() == kStart + 2min);
  // An event that changes nothing of this does not make it younger.
  home.book.put_pod(burst_pod("b"), kStart + 1min);
  CHECK(home.look(2min).pending == 1);
  CHECK(home.look(2min).fitting == 0);
  CHECK(home.book.next_change() == base::TimePoint::max());
  home.book.put_pod(burst_pod("b", 1, "home1"), kStart + 3min);
  CHECK(home.look(3min).pending == 0);
  CHECK(home.look(3min).free_gpus == 15);
}

TEST_CASE("a pod that is not found unschedulable yet does not wait") {
  Home home;
  model::HomePod pod = burst_pod("b");
  pod.unschedulable = false;
  home.book.put_pod(pod, kStart);
  CHECK(home.look(1h).pending == 0);
}

TEST_CASE("what fits is found by size, behind those who are ahead") {
  Home home;
  home.book.put_pod(a_pod("x", 6, "home1"), kStart);  // 2 and 8 free
  for (int i = 0; i < 3; ++i) home.book.put_pod(burst_pod("four" + std::to_string(i), 4), kStart);
  home.book.put_pod(burst_pod("two", 2), kStart);
  CHECK(home.look(2s).pending == 4);
  CHECK(home.look(2s).fitting == 3);  // two of 4 on home2, the one of 2 on home1
  CHECK(home.look(2s).slot_gpus == 4);
  CHECK(home.look(2s).free_slots == 2);
  home.book.put_pod(training_pod("t", 8), kStart);
  CHECK(home.look(2s).fitting == 1);
  home.book.put_pod(training_pod("cannot", 16), kStart);  // fits nowhere, so it takes nothing
  CHECK(home.look(2s).fitting == 1);
}

TEST_CASE("running burst pods tell the size of a slot") {
  Home home;
  CHECK(home.look().slot_gpus == 1);
  home.book.put_pod(burst_pod("away", 4, "burst"), kStart);
  CHECK(home.look().slot_gpus == 4);
  CHECK(home.free() == 16);  // what runs on a virtual node holds nothing of home
  home.book.put_pod(burst_pod("at-home", 8, "home1"), kStart);
  CHECK(home.look().slot_gpus == 8);
  CHECK(home.look().free_slots == 1);
  home.book.remove_pod("at-home");
  home.book.remove_pod("away");
  CHECK(home.look().slot_gpus == 1);
}

TEST_CASE("what a new list does not hold is gone") {
  Home home;
  home.book.put_pod(a_pod("a", 1, "home1"), kStart);
  home.book.put_pod(a_pod("b", 2, "home1"), kStart);
  home.book.begin_pods();
  home.book.put_pod(a_pod("b", 2, "home1"), kStart);
  home.book.end_pods();
  CHECK(home.free() == 14);
  home.book.begin_nodes();
  home.book.put_node(a_node("home2"));
  home.book.end_nodes();
  CHECK(home.look().nodes == 1);
  CHECK(home.free() == 8);
}

TEST_CASE("the account after many changes is that of the same objects seen afresh") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    base::SeededRandom random(seed);
    const auto pick = [&](int n) { return static_cast<int>(random.unit() * n); };
    core::HomeBook book(a_class());
    std::map<std::string, model::HomeNode> nodes;
    std::map<std::string, model::HomePod> pods;
    for (int step = 0; step < 500; ++step) {
      const std::string node_name = "home" + std::to_string(pick(6));
      const std::string uid = std::to_string(pick(40));
      switch (pick(5)) {
        case 0: {
          model::HomeNode node = a_node(node_name, pick(9));
          node.ready = pick(4) != 0;
          node.unhealthy_gpus = pick(4) == 0 ? pick(4) : 0;
          nodes[node_name] = node;
          book.put_node(node);
          break;
        }
        case 1:
          nodes.erase(node_name);
          book.remove_node(node_name);
          break;
        case 2:
          pods.erase(uid);
          book.remove_pod(uid);
          break;
        default: {
          model::HomePod pod = pick(2) == 0 ? burst_pod(uid, 1 + pick(4)) : training_pod(uid, 1 + pick(8));
          if (pick(2) == 0) pod.node_name = node_name;
          if (pick(4) == 0) pod.nominated_node = "home" + std::to_string(pick(6));
          pod.terminal = pick(6) == 0;
          pod.deleting = pick(6) == 0;
          pods[uid] = pod;
          book.put_pod(pod, kStart);
        }
      }
      core::HomeBook fresh(a_class());
      for (const auto& [uid_, pod] : pods) fresh.put_pod(pod, kStart);
      for (const auto& [name, node] : nodes) fresh.put_node(node);
      REQUIRE(book.look(kStart + 2s) == fresh.look(kStart + 2s));
    }
  }
}

TEST_CASE("1000 nodes and 20,000 pods") {
  core::HomeBook book(a_class());
  for (int i = 0; i < 1000; ++i) book.put_node(a_node("home" + std::to_string(i)));
  for (int i = 0; i < 20000; ++i) {
    model::HomePod pod = i % 10 == 0 ? burst_pod(std::to_string(i)) : a_pod(std::to_string(i), 1);
    if (i % 2 == 1) pod.node_name = "home" + std::to_string(i % 1000);
    book.put_pod(pod, kStart);
  }
  book.look(kStart + 2s);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kChanges = 1000;
  for (int i = 0; i < kChanges; ++i) {
    book.put_pod(burst_pod(std::to_string(i % 2000 * 10), 1, i % 2 == 0 ? "home1" : ""), kStart + 2s);
    book.look(kStart + 2s);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  WARN("one change and its evaluation: " << took.count() / kChanges << " us");
  CHECK(book.pods() == 20000);
}

TEST_CASE("a place for one pod is the fullest node that suits it, less what is promised there") {
  Home home;
  model::HomeNode fussy = a_node("fussy", 2);
  fussy.labels = {{"disk", "fast"}};
  fussy.taints = {{"team", "a", "NoSchedule"}};
  home.book.put_node(fussy);
  home.book.put_pod(a_pod("a", 5, "home1"), kStart);
  const auto place = [&](const model::HomePod& pod, const core::HomeBook::Reserved& reserved) {
    return home.book.place_for(pod, reserved).value_or("none");
  };
  const model::HomePod pod = burst_pod("b", 2);
  CHECK(place(pod, {}) == "home1");
  CHECK(place(pod, {{"home1", 2}}) == "home2");
  CHECK(place(burst_pod("b", 8), {}) == "home2");
  CHECK(place(burst_pod("b", 8), {{"home2", 1}}) == "none");
  model::HomePod choosy = pod;
  choosy.node_selector = {{"disk", "fast"}};
  // The gate's own tolerations keep a node with a taint of others out of the account.
  CHECK(place(choosy, {}) == "none");
  fussy.taints.clear();
  home.book.put_node(fussy);
  CHECK(place(choosy, {}) == "fussy");
  CHECK(place(choosy, {{"fussy", 1}}) == "none");
}

TEST_CASE("slots are fewer by what is promised, node by node") {
  Home home;
  CHECK(home.book.free_slots(3, {}) == 4);
  CHECK(home.book.free_slots(3, {{"home1", 2}}) == 4);
  CHECK(home.book.free_slots(3, {{"home1", 3}}) == 3);
  CHECK(home.book.free_slots(3, {{"home1", 99}, {"gone", 5}}) == 2);
}
