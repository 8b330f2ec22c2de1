// The nouns of the fake cloud: what is asked of it, what it answers, and what it lets a test see.
//
// Plain values. The cloud itself is in fake_cloud.hpp.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/fake/catalogue.hpp"
#include "providers/fake/faults.hpp"
#include "vk-provider/base/money.hpp"
#include "vk-provider/base/shared_text.hpp"
#include "vk-provider/model/instance.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::fake {

/// What a test is told of an instance: that it came, changed, or went. `at` is the time at which it happened.
struct Sight {
  enum class What : std::uint8_t { kAppeared, kChanged, kGone };
  What what = What::kChanged;
  const model::Instance* instance = nullptr;  // as it is now, or was last; valid during the call
  bool foreign = false;
  base::TimePoint at;
};

struct CloudSettings {
  CloudSettings() = default;
  std::uint64_t seed = 1;
  base::Duration boot_time{0};
  std::vector<CloudOffer> offers = default_catalogue();
  base::Duration price_step{0};  // 0: prices stand still
  int price_permille = 0;        // a step changes a price by at most so much
  /// False: as with most real clouds, a tag that was used before buys a second instance. A provider over such a cloud
  /// has to look for the tag first.
  bool unique_tags = true;
  /// What has exited costs money until it is terminated. False: each run is a period of its own.
  bool bills_stopped = false;
  /// Called for every instance that comes, changes or goes, in the order in which it happens. Must not call back.
  std::function<void(const Sight&)> observer;
};

/// A purchase. Carries names and orders only: the toy starts nothing, so it is not told of commands or environments.
struct CreateRequest {
  CreateRequest() = default;
  struct Container {
    Container() = default;
    base::SharedText name;
    base::SharedText image;
    bool start = true;  // at once; otherwise it is only made
  };
  base::SharedText tag;
  base::SharedText offer;
  base::SharedText pod;  // namespace/name, for its log
  std::vector<Container> containers;
  std::vector<int> public_ports;
  std::map<std::string, std::string> orders;  // annotations under fake.spillway.dev/
};

/// Asks for lines of the log of one run of a container, from the line with the index `from`, or the last `tail` ones.
struct LogRequest {
  LogRequest() = default;
  std::string container;
  bool previous = false;
  std::uint64_t from = 0;
  std::optional<std::uint64_t> tail;
};

struct LogLine {
  LogLine() = default;
  base::WallTime at;
  provider::LogChannel channel = provider::LogChannel::kStdout;
  std::string text;  // without its end
};

/// Some lines that were written by now. Without any there are no more yet, and never will be once the run has `ended`.
struct LogPage {
  LogPage() = default;
  std::vector<LogLine> lines;
  std::uint64_t next = 0;  // the index to go on from
  bool ended = false;
};

/// An answer, and what becomes of it on its way.
template <class T>
struct Reply {
  Reply() = default;
  Reply(base::Result<T> r) : result(std::move(r)) {}  // NOLINT(google-explicit-constructor): an answer is a reply
  base::Result<T> result{std::unexpected(base::Error())};
  base::Duration delay{0};
  bool lost = false;  // nobody hears it: the connection breaks
};

/// How an instance is hurt behind its owner's back.
struct KillOrder {
  KillOrder() = default;
  enum class How : std::uint8_t {
    kRemove,   // gone at once, without a word
    kPreempt,  // taken back: terminating and marked so for `notice`, then gone
    kCrash,    // its containers end now with `exit_code`
  };
  How how = How::kRemove;
  base::Duration notice{std::chrono::seconds(30)};
  int exit_code = 137;
  bool oom = false;
};

/// What one instance has cost until now.
struct InvoiceLine {
  InvoiceLine() = default;
  std::string instance;
  base::SharedText tag;
  base::SharedText offer;
  base::Money price_per_hour;
  std::chrono::seconds billed{0};  // rounded up as the offer's billing says
  base::Money amount;
  bool running = false;  // the meter still runs
};

/// The history of one instance. Never forgotten.
struct AuditEntry {
  AuditEntry() = default;
  std::string id;
  base::SharedText tag;
  base::SharedText offer;
  bool foreign = false;
  base::WallTime created;
  std::optional<base::WallTime> gone;
  std::string_view ended_by;  // terminate, remove or preempt; empty while it lives
  int terminate_calls = 0;    // that reached the cloud
};

struct Audit {
  Audit() = default;
  std::vector<AuditEntry> instances;
  std::map<std::string, int> creates;         // calls that reached the cloud, by tag
  std::array<std::uint64_t, kCalls> calls{};  // that were made, by Call
};

}  // namespace spillway::providers::fake
