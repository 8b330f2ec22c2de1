#include "vk-provider/core/failed_pods.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

constexpr base::TimePoint kNow{100h};

FailedPod pod(const std::string& uid, const char* owner, base::Duration ago) {
  const base::WallTime created{100h - std::chrono::duration_cast<std::chrono::microseconds>(ago)};
  return {base::PodUid(uid), base::SharedText(owner), created, kNow - ago};
}

}  // namespace

TEST_CASE("failed pods: of each owner the newest three stay, the others for ten minutes") {
  std::vector<FailedPod> pods;
  for (int i = 0; i < 6; ++i) pods.push_back(pod("a" + std::to_string(i), "a", 8min + i * 1min));
  pods.push_back(pod("b", "b", 24h));
  auto gone = surplus_failed_pods(pods, kNow);
  std::ranges::sort(gone);
  // a0, a1 and a2 are the newest.
  CHECK(gone == std::vector{base::PodUid("a3"), base::PodUid("a4"), base::PodUid("a5")});
  std::ranges::reverse(pods);
  CHECK(surplus_failed_pods(pods, kNow).size() == 3);
  CHECK(surplus_failed_pods(pods, kNow - 2min).size() == 2);
  CHECK(surplus_failed_pods(pods, kNow - 6min).empty());
}

TEST_CASE("failed pods: a process that has just begun knows which are the newest") {
  std::vector<FailedPod> pods;
  for (int i = 0; i < 5; ++i) pods.push_back(pod(std::to_string(i), "a", 1h * (5 - i)));
  for (FailedPod& each : pods) each.since = kNow - 10min;
  auto gone = surplus_failed_pods(pods, kNow);
  std::ranges::sort(gone);
  CHECK(gone == std::vector{base::PodUid("0"), base::PodUid("1")});
}

TEST_CASE("failed pods: those of one moment are told apart") {
  std::vector<FailedPod> pods;
  for (const char* uid : {"4", "2", "5", "1", "3"}) pods.push_back(pod(uid, "a", 1h));
  CHECK(surplus_failed_pods(pods, kNow) == std::vector{base::PodUid("4"), base::PodUid("5")});
}

}  // namespace spillway::core
