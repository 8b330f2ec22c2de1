// The fake cloud in the daemon's process and the one behind the protocol are the same cloud: one script of calls,
// times, orders and faults goes to both, and every answer, the audit and the invoice must be equal.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include <fmt/format.h>

#include "providers/fake/codec.hpp"
#include "providers/fake/http_cloud.hpp"
#include "providers/fake/in_process_cloud.hpp"
#include "test/support/virtual_time.hpp"
#include "test/unit/providers/fake/cloud_builder.hpp"
#include "test/unit/providers/fake/loopback_http.hpp"
#include "vk-provider/base/random.hpp"

using namespace std::chrono_literals;
using namespace spillway;                   // NOLINT(google-build-using-namespace)
using namespace spillway::providers::fake;  // NOLINT(google-build-using-namespace)
using base::ErrorKind;

namespace {

constexpr base::Duration kDeadline = 10s;

/// The words of a connection are its own; the cloud's words must come through.
std::string words_of(const base::Error& error) {
  static const std::set<std::string> of_the_way = {"cut",
                                                   "silence",
                                                   "too late",
                                                   "the deadline passed before the fake cloud was asked",
                                                   "the fake cloud did not answer in time",
                                                   "the connection to the fake cloud broke before it answered"};
  return of_the_way.contains(error.message) ? "(no answer)" : error.message;
}

std::string told(const base::Error& error) {
  const auto wait = error.retry_after ? fmt::format(" after {} ms", error.retry_after->count()) : "";
  return fmt::format("{}{}: {}", base::to_string(error.kind), wait, words_of(error));
}

std::string told(const base::Result<void>& result) { return result ? "accepted" : told(result.error()); }

template <class T>
std::string told(const base::Result<T>& result, std::string (*encode)(const T&)) {
  return result ? encode(*result) : told(result.error());
}

enum class Way : std::uint8_t { kInProcess, kByProtocol };

class Side {
 public:
  explicit Side(Way way) : cloud_(settings(), reactor_.timers.both()) {
    if (way == Way::kInProcess) {
      api_ = std::make_unique<InProcessCloud>(cloud_, reactor_.timers);
    } else {
      api_ = std::make_unique<HttpCloud>(std::make_unique<LoopbackHttp>(cloud_, reactor_.timers));
    }
  }

  static CloudSettings settings() {
    CloudSettings settings = a_cloud();
    settings.boot_time = 1s;
    settings.offers[1].stock = 2;
    settings.price_step = 1min;
    settings.price_permille = 50;
    return settings;
  }

  std::string list_offers() { return told(reactor_.run(api_->list_offers(deadline())), encode_offers); }
  std::string create(const CreateRequest& request) { return hear(reactor_.run(api_->create(request, deadline()))); }
  std::string get(const std::string& id) { return hear(reactor_.run(api_->get(id, deadline()))); }
  std::string list_owned(const std::string& prefix) {
    const auto list = reactor_.run(api_->list_owned(prefix, deadline()));
    heard = list ? list->instances : std::vector<model::Instance>();
    return told(list, encode_list);
  }
  std::string terminate(const std::string& id, std::chrono::seconds grace) {
    return told(reactor_.run(api_->terminate(id, grace, deadline())));
  }
  std::string control(const std::string& id, provider::ContainerAction action) {
    return told(reactor_.run(api_->control(id, "main", action, std::chrono::seconds(10), deadline())));
  }
  std::string read_log(const std::string& id, const LogRequest& request) {
    return told(reactor_.run(api_->read_log(id, request, deadline())), encode_log_page);
  }
  std::string samples() { return told(reactor_.run(api_->samples(deadline())), encode_samples); }
  std::string add_fault(const FaultRule& rule) {
    const auto added = cloud_.add_fault(rule, now());
    return added ? std::to_string(*added) : added.error().message;
  }
  std::string kill(const std::string& id, const KillOrder& order) {
    const auto killed = cloud_.kill(id, order, now());
    return killed ? "killed" : killed.error().message;
  }
  std::string books() { return encode_audit(cloud_.audit(now())) + encode_invoice(cloud_.invoice(now())); }
  std::vector<std::string> ids() {
    std::vector<std::string> out;
    for (const AuditEntry& entry : cloud_.audit(now()).instances) out.push_back(entry.id);
    return out;
  }
  void pass(base::Duration time) { reactor_.run_for(time); }

  /// The instances of the last answer, in full: their text has only what the codec knows of.
  std::vector<model::Instance> heard;

 private:
  std::string hear(const base::Result<model::Instance>& instance) {
    heard.clear();
    if (instance) heard.push_back(*instance);
    return told(instance, encode_instance);
  }
  base::TimePoint now() const { return reactor_.timers.now(); }
  base::Deadline deadline() const { return now() + kDeadline; }

  test::VirtualReactor reactor_;
  FakeCloud cloud_;
  std::unique_ptr<FakeCloudApi> api_;
};

/// One script from one seed: what is asked next depends on nothing that was answered but the ids of instances.
class Script {
 public:
  explicit Script(std::uint64_t seed) : random_(seed) {}

  /// The step on both sides; the name of the step.
  std::string next(Side& left, Side& right, std::string& a, std::string& b) {
    const auto both = [&](auto step) {
      a = step(left);
      b = step(right);
    };
    const std::string id = some_id(left);
    switch (random_.next() % 12) {
      case 0: both([](Side& s) { return s.list_offers(); }); return "list_offers";
      case 1:
      case 2: {
        const CreateRequest request = purchase();
        both([&](Side& s) { return s.create(request); });
        return "create";
      }
      case 3: both([&](Side& s) { return s.get(id); }); return "get";
      case 4:
      case 5: both([](Side& s) { return s.list_owned("spw-"); }); return "list_owned";
      case 6: {
        const std::chrono::seconds grace(number(3) * 5);
        both([&](Side& s) { return s.terminate(id, grace); });
        return "terminate";
      }
      case 7: {
        const auto action = static_cast<provider::ContainerAction>(number(3));
        both([&](Side& s) { return s.control(id, action); });
        return "control";
      }
      case 8: {
        const FaultRule rule = fault();
        both([&](Side& s) { return s.add_fault(rule); });
        return "fault";
      }
      case 9: {
        LogRequest request;
        request.container = number(8) == 0 ? "stranger" : "main";
        request.previous = number(4) == 0;
        request.from = static_cast<std::uint64_t>(number(4));
        if (number(2) == 0) request.tail = static_cast<std::uint64_t>(number(4));
        both([&](Side& s) { return s.read_log(id, request); });
        return "read_log";
      }
      case 10: both([](Side& s) { return s.samples(); }); return "samples";
      default: break;
    }
    KillOrder order;
    order.how = static_cast<KillOrder::How>(number(3));
    const bool hurt = number(4) == 0;
    const base::Duration time = std::chrono::milliseconds(100 + number(20'000));
    both([&](Side& s) {
      s.pass(time);
      return hurt ? s.kill(id, order) : s.books();
    });
    return hurt ? "kill" : "books";
  }

 private:
  int number(int below) { return static_cast<int>(random_.next() % static_cast<std::uint64_t>(below)); }

  std::string some_id(Side& side) {
    const std::vector<std::string> ids = side.ids();
    if (ids.empty() || number(8) == 0) return "i-nobody";
    return ids[static_cast<size_t>(number(static_cast<int>(ids.size())))];
  }

  CreateRequest purchase() {
    static const std::vector<std::pair<std::string, std::string>> all_orders = {
        {"boot-time", "5s"},        {"run-for", "7s"},          {"exit-code", "3"},  {"oom", "true"},
        {"fail-boot", "host died"}, {"fail-create", "quota"},   {"stop-time", "4s"}, {"preempt-after", "20s"},
        {"image-error", "denied"},  {"start-error", "no file"}, {"nonsense", "1"},   {"log-lines", "5"},
        {"log-every", "3s"}};
    std::vector<std::pair<std::string, std::string>> orders;
    for (int i = number(3); i > 0; --i) orders.push_back(all_orders[static_cast<size_t>(number(13))]);
    CreateRequest request = a_purchase(fmt::format("spw-a-{}", number(30)), orders);
    if (number(3) == 0) request.offer = "large";
    if (number(12) == 0) request.offer = "unknown";
    if (number(2) == 0) request.public_ports = {8080};
    if (number(2) == 0) request.containers.push_back({});
    if (request.containers.size() > 1) request.containers.back().name = "side";
    return request;
  }

  FaultRule fault() {
    FaultRule rule = a_fault(static_cast<Effect>(number(12)), static_cast<Call>(number(static_cast<int>(kCalls))));
    rule.times = 1 + number(2);
    rule.kind = number(2) == 0 ? ErrorKind::kRateLimited : ErrorKind::kNoCapacity;
    if (number(2) == 0) rule.retry_after = 1500ms;
    rule.duration = std::chrono::seconds(number(15));
    rule.percent = 150;
    rule.message = "injected";
    return rule;
  }

  base::SeededRandom random_;
};

}  // namespace

TEST_CASE("the fake cloud says the same in process and by protocol") {
  std::map<std::string, std::set<std::string>> beginnings;  // of answers, by step
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Side left(Way::kInProcess);
    Side right(Way::kByProtocol);
    Script script(seed);
    for (int step = 0; step < 300; ++step) {
      std::string a;
      std::string b;
      const std::string name = script.next(left, right, a, b);
      CAPTURE(seed, step, name);
      REQUIRE(a == b);
      REQUIRE(left.heard == right.heard);
      beginnings[name].insert(a.substr(0, a.find_first_of(":{[")));
    }
    REQUIRE(left.books() == right.books());
  }
  // A script that only ever met success, or only one failure, would prove little.
  for (const char* call :
       {"list_offers", "create", "get", "list_owned", "terminate", "control", "read_log", "samples"}) {
    CAPTURE(call);
    CHECK(beginnings[call].size() >= 4);
  }
}
