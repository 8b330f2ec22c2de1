// Each fault as the daemon sees it: kinds, times, and what the server has done by then.
#include "test/support/faulty_kube_api.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "test/support/api_server_model.hpp"
#include "test/support/virtual_time.hpp"
#include "vk-provider/async/task_group.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using base::ErrorKind;
using nlohmann::json;
using test::RequestFault;
using test::WatchFault;

namespace {

constexpr const char* kMaps = "/api/v1/namespaces/default/configmaps";

class OneFault final : public test::ApiFaults {
 public:
  RequestFault on_request(const kube::KubeRequest&) override { return request; }
  WatchFault on_watch_bytes(const kube::KubeRequest&, std::string_view) override { return watch; }
  RequestFault request;
  WatchFault watch;
};

class World {
 public:
  base::Result<kube::KubeResponse> get() {
    kube::KubeRequest request;
    request.target = kMaps;
    return reactor.run(api.send(request, reactor.timers.now() + 10s));
  }
  base::Result<kube::KubeResponse> post() {
    kube::KubeRequest request;
    request.method = net::Method::kPost;
    request.target = kMaps;
    request.body = R"({"metadata":{"name":"m"}})";
    request.content_type = "application/json";
    return reactor.run(api.send(request, reactor.timers.now() + 10s));
  }
  bool written() const { return model.find(std::string(kMaps) + "/m") != nullptr; }
  base::Result<async::ByteStreamPtr> watch() {
    kube::KubeRequest request;
    request.target = "/api/v1/configmaps?watch=true&resourceVersion=" + std::to_string(model.version());
    return reactor.run(api.watch(request, reactor.timers.now() + 10s));
  }
  base::Result<std::string> read(async::ByteStream& stream, base::Duration patience = 10s) {
    return reactor.run(stream.read(reactor.timers.now() + patience));
  }
  base::Duration since_start() const { return reactor.timers.now() - begun; }

  test::VirtualReactor reactor;
  test::ApiServerModel model{reactor.timers};
  OneFault faults;
  test::FaultyKubeApi api{model, faults, reactor.timers};
  base::TimePoint begun = reactor.timers.now();
};

}  // namespace

TEST_CASE("without a fault it is not there") {
  World world;
  CHECK(world.post());
  CHECK(json::parse(world.get()->body)["items"].size() == 1);
  CHECK(world.since_start() == 0s);
}

TEST_CASE("a lost request is never carried out, a lost answer is") {
  using Loss = RequestFault::Loss;
  struct Row {
    Loss loss;
    bool silent;
    ErrorKind of_get;
    ErrorKind of_post;
    bool written;
    base::Duration took;
  };
  const Row rows[] = {
      {Loss::kConnect, false, ErrorKind::kUnavailable, ErrorKind::kUnavailable, false, 0s},
      {Loss::kRequest, false, ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome, false, 0s},
      {Loss::kRequest, true, ErrorKind::kDeadline, ErrorKind::kUnknownOutcome, false, 10s},
      {Loss::kAnswer, false, ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome, true, 0s},
      {Loss::kAnswer, true, ErrorKind::kDeadline, ErrorKind::kUnknownOutcome, true, 10s},
  };
  for (const Row& row : rows) {
    CAPTURE(static_cast<int>(row.loss), row.silent);
    World world;
    world.faults.request.loss = row.loss;
    world.faults.request.silent = row.silent;
    const auto read = world.get();
    REQUIRE_FALSE(read);
    CHECK(read.error().kind == row.of_get);
    CHECK(world.since_start() == row.took);
    const auto write = world.post();
    REQUIRE_FALSE(write);
    CHECK(write.error().kind == row.of_post);
    CHECK(world.written() == row.written);
  }
}

TEST_CASE("a slow request is carried out when it arrives, and given up at the deadline") {
  World world;
  world.faults.request.before = 3s;
  world.faults.request.after = 4s;
  CHECK(world.post());
  CHECK(world.since_start() == 7s);

  World later;
  later.faults.request.after = 11s;
  const auto done = later.post();
  REQUIRE_FALSE(done);
  CHECK(done.error().kind == ErrorKind::kUnknownOutcome);
  CHECK(later.written());
  CHECK(later.since_start() == 10s);

  World never;
  never.faults.request.before = 11s;
  CHECK_FALSE(never.post());
  CHECK_FALSE(never.written());
  CHECK(never.since_start() == 10s);
}

TEST_CASE("a late request arrives when nobody waits for it any more") {
  World world;
  async::TaskGroup group(world.reactor.ctx.get_executor());
  group.spawn(world.api.carry());
  world.faults.request.loss = RequestFault::Loss::kLate;
  world.faults.request.before = 30s;
  world.faults.request.silent = true;
  CHECK(world.post().error().kind == ErrorKind::kUnknownOutcome);
  CHECK(world.since_start() == 10s);
  CHECK_FALSE(world.reactor.run_until([&] { return world.written(); }, 19s));
  CHECK(world.reactor.run_until([&] { return world.written(); }, 1s));
  world.reactor.run(group.stop());
}

TEST_CASE("a refusal has the kind, the text and the wait of the real one") {
  World world;
  world.faults.request.refusal = RequestFault::Refusal(429, "TooManyRequests");
  world.faults.request.refusal->retry_after = 7s;
  const auto refused = world.post();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::kRateLimited);
  CHECK(refused.error().message == "injected");
  CHECK(refused.error().retry_after == std::optional<std::chrono::milliseconds>(7s));
  CHECK_FALSE(world.written());

  world.faults.request.refusal = RequestFault::Refusal(504, "Timeout");
  world.faults.request.refused_too_late = true;
  CHECK(world.post().error().kind == ErrorKind::kUnknownOutcome);
  CHECK(world.written());
  CHECK(world.watch().error().kind == ErrorKind::kUnavailable);
}

TEST_CASE("a watch is late, cut, torn, silent or too old") {
  World world;
  auto stream = world.watch();
  REQUIRE(stream);
  world.model.create(kMaps, {{"metadata", {{"name", "m"}}}});
  WatchFault& fault = world.faults.watch;
  SECTION("late") {
    fault.lag = 3s;
    CHECK(json::parse(*world.read(**stream))["type"] == "ADDED");
    CHECK(world.since_start() == 3s);
  }
  SECTION("cut") {
    fault.kind = WatchFault::Kind::kClose;
    CHECK(world.read(**stream)->empty());
  }
  SECTION("torn in the midst of a line") {
    fault.kind = WatchFault::Kind::kBreak;
    fault.keep = 5;
    CHECK(*world.read(**stream) == R"({"typ)");
    CHECK(world.read(**stream).error().kind == ErrorKind::kUnavailable);
  }
  SECTION("silent") {
    fault.kind = WatchFault::Kind::kSilence;
    CHECK(world.read(**stream).error().kind == ErrorKind::kDeadline);
    CHECK(world.since_start() == 10s);
    fault.kind = WatchFault::Kind::kNone;
    CHECK(world.read(**stream).error().kind == ErrorKind::kDeadline);
  }
  SECTION("too old") {
    fault.kind = WatchFault::Kind::kExpired;
    CHECK(json::parse(*world.read(**stream))["object"]["code"] == 410);
    CHECK(world.read(**stream)->empty());
  }
}
