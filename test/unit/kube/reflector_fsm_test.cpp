#include "vk-provider/kube/reflector_fsm.hpp"

#include <catch2/catch.hpp>

namespace spillway::kube {
namespace {

using base::Error;
using base::ErrorKind;
using Fsm = ReflectorFsm;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Table {
  base::SeededRandom random{1};
  Fsm fsm{random, seconds(0)};

  /// What the next step is, in one word, waits left out; `watch@7` resumes from version 7.
  std::string next() {
    waited = base::Duration(0);
    for (;;) {
      const Fsm::Step step = fsm.next();
      if (const auto* wait = std::get_if<Fsm::Wait>(&step)) {
        waited += wait->how_long;
        continue;
      }
      if (const auto* page = std::get_if<Fsm::ListPage>(&step)) {
        limit = page->limit;
        return "page@" + page->continue_token;
      }
      const auto& watch = std::get<Fsm::OpenWatch>(step);
      timeout = watch.timeout;
      return watch.initial ? "stream" : "watch@" + watch.resource_version;
    }
  }
  /// Through a streamed list to a watch from version 10.
  void sync() {
    REQUIRE(next() == "stream");
    fsm.object_seen("3");
    REQUIRE(fsm.bookmark_seen("10", true));
  }

  base::Duration waited{0};
  int limit = 0;
  seconds timeout{0};
};

Error error(ErrorKind kind, const char* message = "x") { return {kind, message}; }

constexpr base::Duration kLong = seconds(60);

TEST_CASE("a streamed list goes over into its watch, which is resumed from the last version") {
  Table t;
  t.sync();
  CHECK_FALSE(t.fsm.bookmark_seen("11", false));
  t.fsm.object_seen("12");
  t.fsm.watch_ended(WatchEnd::kClosed, kLong);
  CHECK(t.next() == "watch@12");
  CHECK(t.waited == base::Duration(0));
  CHECK(t.timeout >= seconds(300));
  CHECK(t.timeout < seconds(600));
  t.fsm.watch_ended(WatchEnd::kSilent, kLong);
  CHECK(t.next() == "watch@12");
  CHECK(t.waited == base::Duration(0));
}

TEST_CASE("a watch time that was asked for is kept, but not for the list") {
  base::SeededRandom random(1);
  Fsm fsm(random, seconds(10));
  CHECK(std::get<Fsm::OpenWatch>(fsm.next()).timeout >= seconds(300));
  fsm.bookmark_seen("1", true);
  fsm.watch_ended(WatchEnd::kClosed, kLong);
  CHECK(std::get<Fsm::OpenWatch>(fsm.next()).timeout == seconds(10));
}

TEST_CASE("versions inside an initial list are not resumed from") {
  Table t;
  REQUIRE(t.next() == "stream");
  t.fsm.object_seen("90");
  CHECK_FALSE(t.fsm.bookmark_seen("91", false));
  t.fsm.watch_ended(WatchEnd::kBroken, kLong);
  CHECK(t.next() == "stream");
}

TEST_CASE("a server that cannot stream lists is asked for pages, from then on") {
  Table t;
  REQUIRE(t.next() == "stream");
  t.fsm.watch_refused(error(ErrorKind::kInvalid, "sendInitialEvents is forbidden"));
  CHECK(t.next() == "page@");
  CHECK(t.waited == base::Duration(0));
  CHECK(t.limit == 250);
  t.fsm.page_read("more", "5");
  CHECK(t.next() == "page@more");
  t.fsm.page_read("", "5");
  CHECK(t.next() == "watch@5");
  t.fsm.watch_ended(WatchEnd::kGone, kLong);
  CHECK(t.next() == "page@");
}

TEST_CASE("a stream that is cut twice gives way to pages, for this list only") {
  Table t;
  REQUIRE(t.next() == "stream");
  t.fsm.watch_ended(WatchEnd::kClosed, kLong);
  REQUIRE(t.next() == "stream");
  CHECK(t.waited > milliseconds(100));
  t.fsm.watch_refused(error(ErrorKind::kUnavailable));
  REQUIRE(t.next() == "page@");
  t.fsm.page_read("", "5");
  REQUIRE(t.next() == "watch@5");
  t.fsm.watch_ended(WatchEnd::kGone, kLong);
  CHECK(t.next() == "stream");
}

TEST_CASE("a version that is too old leads to a list, at once the first time, with patience later") {
  Table t;
  t.sync();
  t.fsm.object_seen("11");
  SECTION("in the stream") { t.fsm.watch_ended(WatchEnd::kGone, kLong); }
  SECTION("as a status") {
    t.fsm.watch_ended(WatchEnd::kClosed, kLong);
    REQUIRE(t.next() == "watch@11");
    t.fsm.watch_refused(error(ErrorKind::kGone));
  }
  CHECK(t.next() == "stream");
  CHECK(t.waited == base::Duration(0));
  REQUIRE(t.fsm.bookmark_seen("20", true));
  t.fsm.watch_ended(WatchEnd::kGone, milliseconds(1));
  CHECK(t.next() == "stream");
  CHECK(t.waited > milliseconds(100));
}

TEST_CASE("a version of the server's future leads to a list") {
  Table t;
  t.sync();
  t.fsm.watch_ended(WatchEnd::kBroken, kLong);
  REQUIRE(t.next() == "watch@10");
  t.fsm.watch_refused(error(ErrorKind::kUnavailable, "Timeout: Too large resource version: 10, current: 3"));
  CHECK(t.next() == "stream");
}

TEST_CASE("a page that fails is asked for again, an expired token begins anew, a page too large is halved") {
  Table t;
  REQUIRE(t.next() == "stream");
  t.fsm.watch_refused(error(ErrorKind::kInvalid));
  REQUIRE(t.next() == "page@");
  t.fsm.page_read("a", "5");
  REQUIRE(t.next() == "page@a");
  t.fsm.page_failed(error(ErrorKind::kUnavailable));
  REQUIRE(t.next() == "page@a");
  CHECK(t.waited > milliseconds(100));
  t.fsm.page_failed(error(ErrorKind::kGone));
  REQUIRE(t.next() == "page@");
  for (const int limit : {125, 62, 31, 25, 25}) {
    t.fsm.page_failed(error(ErrorKind::kInvalid));
    REQUIRE(t.next() == "page@");
    CHECK(t.limit == limit);
  }
  t.fsm.page_read("", "6");
  t.next();
  t.fsm.watch_ended(WatchEnd::kGone, kLong);
  REQUIRE(t.next() == "page@");
  CHECK(t.limit == 250);
}

TEST_CASE("an event that cannot be read is tried once more before all is listed again") {
  const WatchEnd end = GENERATE(WatchEnd::kUnreadable, WatchEnd::kError);
  Table t;
  t.sync();
  t.fsm.object_seen("11");
  t.fsm.watch_ended(end, milliseconds(5));
  CHECK(t.next() == "watch@11");
  t.fsm.watch_ended(end, milliseconds(5));
  CHECK(t.next() == "stream");
}

TEST_CASE("a line that is too long cannot be got over: list, with patience") {
  Table t;
  t.sync();
  t.fsm.watch_ended(WatchEnd::kTooLong, kLong);
  CHECK(t.next() == "stream");
  CHECK(t.waited > milliseconds(100));
}

TEST_CASE("failures in a row wait longer and longer, up to five seconds and a bit") {
  Table t;
  t.sync();
  t.fsm.watch_ended(WatchEnd::kBroken, milliseconds(1));
  base::Duration before(0);
  for (int i = 0; i < 12; ++i) {
    REQUIRE(t.next() == "watch@10");
    if (i < 4) CHECK(t.waited > before);
    before = t.waited;
    CHECK(t.waited <= milliseconds(6500));
    t.fsm.watch_refused(error(ErrorKind::kUnavailable));
  }
  CHECK(before >= milliseconds(3500));
  SECTION("an event makes up for them") { t.fsm.object_seen("11"); }
  SECTION("so does a watch that was quiet but lasted") { t.fsm.watch_ended(WatchEnd::kClosed, seconds(31)); }
  t.fsm.watch_ended(WatchEnd::kBroken, milliseconds(1));
  t.next();
  CHECK(t.waited < milliseconds(300));
}

TEST_CASE("a server that ends every watch at once is not asked in a tight loop") {
  Table t;
  t.sync();
  base::Duration sum(0);
  for (int i = 0; i < 10; ++i) {
    t.fsm.watch_ended(WatchEnd::kClosed, milliseconds(1));
    REQUIRE(t.next() == "watch@10");
    sum += t.waited;
  }
  CHECK(sum > seconds(15));
}

TEST_CASE("the wait that the server asks for is kept") {
  Table t;
  REQUIRE(t.next() == "stream");
  Error slow_down = error(ErrorKind::kRateLimited);
  slow_down.retry_after = seconds(17);
  t.fsm.watch_refused(slow_down);
  CHECK(t.next() == "stream");
  CHECK(t.waited == seconds(17));
  t.fsm.watch_refused(slow_down);
  REQUIRE(t.next() == "page@");
  CHECK(t.waited == seconds(17));
  t.fsm.page_failed(slow_down);
  t.next();
  CHECK(t.waited == seconds(17));
}

}  // namespace
}  // namespace spillway::kube
