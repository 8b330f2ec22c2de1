#include "vk-provider/core/usage_book.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;

namespace {

const base::PodUid kPod("u-1");
const base::WallTime kStart = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29);
constexpr std::uint64_t kSecond = 1'000'000'000;

UsageSample sample(std::chrono::seconds at, std::optional<std::uint64_t> cpu_ns, std::int32_t run = 0,
                   std::optional<std::uint64_t> working_set = 1000) {
  UsageSample out;
  out.run = run;
  out.cpu_ns = cpu_ns;
  out.working_set = working_set;
  out.at = kStart + at;
  return out;
}

struct Book {
  void note(const UsageSample& s, const std::string& container = "main", const base::PodUid& pod = kPod) {
    book.note("burst", pod, container, s);
  }
  const ContainerUsage& main() const { return *book.find(kPod)->find("main"); }

  UsageBook book;
};

}  // namespace

TEST_CASE("nothing is known before the first sample") {
  const Book b;
  CHECK(b.book.find(kPod) == nullptr);
  CHECK_FALSE(b.book.node_cpu_ns("burst").has_value());
}

TEST_CASE("a counter and its rate follow the samples") {
  Book b;
  b.note(sample(0s, 5 * kSecond));
  CHECK(b.main().last.cpu_ns == 5 * kSecond);
  CHECK_FALSE(b.main().nano_cores.has_value());
  b.note(sample(10s, 10 * kSecond));
  CHECK(b.main().nano_cores == kSecond / 2);
  CHECK(b.main().total_cpu_ns == 10 * kSecond);
  CHECK(b.book.node_cpu_ns("burst") == 10 * kSecond);
  CHECK(b.book.find(kPod)->find("other") == nullptr);
}

TEST_CASE("totals go on when a container is started again, its own counter begins anew") {
  Book b;
  b.note(sample(0s, 7 * kSecond));
  SECTION("as we know") { b.note(sample(10s, 2 * kSecond, 1)); }
  SECTION("before anybody told us") { b.note(sample(10s, 2 * kSecond)); }
  CHECK(b.main().last.cpu_ns == 2 * kSecond);
  CHECK_FALSE(b.main().nano_cores.has_value());
  CHECK(b.main().total_cpu_ns == 9 * kSecond);
  CHECK(b.book.node_cpu_ns("burst") == 9 * kSecond);
  b.note(sample(20s, 3 * kSecond, 1));
  CHECK(b.main().total_cpu_ns == 10 * kSecond);
}

TEST_CASE("a value that is not measured is absent, and loses nothing of the totals") {
  Book b;
  b.note(sample(0s, 4 * kSecond));
  b.note(sample(10s, {}, 0, {}));
  CHECK_FALSE(b.main().last.cpu_ns.has_value());
  CHECK_FALSE(b.main().last.working_set.has_value());
  CHECK_FALSE(b.main().nano_cores.has_value());
  CHECK(b.main().total_cpu_ns == 4 * kSecond);
  b.note(sample(20s, 6 * kSecond));
  CHECK(b.main().total_cpu_ns == 6 * kSecond);
}

TEST_CASE("an old sample, or one of a former run, changes nothing") {
  Book b;
  b.note(sample(10s, 4 * kSecond, 1));
  b.note(sample(10s, 9 * kSecond, 1));
  b.note(sample(5s, 3 * kSecond, 1));
  b.note(sample(20s, 9 * kSecond, 0));
  CHECK(b.main().last.cpu_ns == 4 * kSecond);
  CHECK(b.book.node_cpu_ns("burst") == 4 * kSecond);
}

TEST_CASE("a pod that is gone is forgotten, but not what its node has used") {
  Book b;
  const base::PodUid other("u-2");
  b.note(sample(0s, 4 * kSecond));
  b.note(sample(0s, 1 * kSecond), "main", other);
  b.book.forget([&](const base::PodUid& uid) { return uid == kPod; });
  CHECK(b.book.find(kPod) == nullptr);
  CHECK(b.book.find(other) != nullptr);
  CHECK(b.book.node_cpu_ns("burst") == 5 * kSecond);
}
