// Misbehaviour of the fake cloud, as data.
//
// A FaultBook belongs to one FakeCloud. Pure: time and randomness are arguments. It says what goes wrong with a call;
// the cloud does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/base/random.hpp"

namespace spillway::providers::fake {

enum class Call : std::uint8_t {
  kAny,
  kListOffers,
  kCreate,
  kGet,
  kListOwned,
  kTerminate,
  kControl,
  kReadLog,
  kSamples
};
inline constexpr size_t kCalls = 9;
std::string_view to_string(Call call);
std::optional<Call> parse_call(std::string_view word);

enum class Effect : std::uint8_t {
  kError,             // answers `kind` (and retry_after); nothing happens. An outage is kind unavailable, call any
  kLoseRequest,       // the connection breaks before the cloud has seen the call
  kLoseAnswer,        // the cloud does it, and the connection breaks before the answer
  kDelay,             // done at once, answered after `duration`
  kGhost,             // create: an internal error is answered, and the instance appears after `duration`
  kPartialList,       // list_owned: says that it is incomplete, and leaves out those of `tag`, or every second one
  kEmptyList,         // list_owned: claims to be complete, and leaves out those of `tag`, or all
  kLaggingList,       // list_owned: leaves out what is younger than `duration`
  kSoldOut,           // the offer is listed as not available, and create answers no_capacity
  kImageError,        // create: the instance cannot pull an image that matches `image`
  kStuckTermination,  // terminate: accepted, and gone only after `duration` (0: not by this call)
  kOvercharge,        // create: the instance costs `percent` of the offered price
};
std::string_view to_string(Effect effect);
std::optional<Effect> parse_effect(std::string_view word);

/// Holds until it was used `times` times, `lasts` is over, or it is removed. All filters must match; patterns know `*`.
struct FaultRule {
  FaultRule() = default;
  Effect effect = Effect::kError;
  Call call = Call::kAny;
  int skip = 0;             // so many matching calls pass first
  int times = 0;            // 0: without limit
  base::Duration lasts{0};  // 0: without limit
  int probability = 100;    // percent
  std::string tag;          // the instance's tag contains this. For list_owned: which instances, not which calls
  std::string offer;        // pattern over the offer's id
  std::string image;        // pattern over the image of any container
  base::ErrorKind kind = base::ErrorKind::kUnavailable;
  std::optional<std::chrono::milliseconds> retry_after;
  std::string message;
  base::Duration duration{0};
  int percent = 100;
};

/// What is said of a call when it is looked up.
struct CallFacts {
  Call call = Call::kAny;
  std::string_view tag;
  std::string_view offer;
  std::vector<std::string_view> images;
};

/// What a listing leaves out.
struct ListFault {
  ListFault() = default;
  Effect effect = Effect::kPartialList;
  std::string tag;
  base::Duration duration{0};
};

/// Everything that goes wrong with one call.
struct Verdict {
  Verdict() = default;
  std::optional<base::Error> error;
  bool lose_request = false;
  bool lose_answer = false;
  base::Duration delay{0};
  std::optional<base::Duration> ghost;
  std::vector<ListFault> list;
  std::string image_error;
  std::optional<base::Duration> stuck;
  int percent = 100;
};

class FaultBook {
 public:
  /// kInvalid if the effect cannot befall that call, or a number is out of range. Returns the rule's number.
  base::Result<std::uint64_t> add(FaultRule rule, base::TimePoint now);
  void clear() { rules_.clear(); }
  bool empty() const { return rules_.empty(); }

  /// Uses up what it returns. Of several errors, losses and ghosts the oldest rule wins; all else adds up.
  Verdict judge(const CallFacts& facts, base::TimePoint now, base::Random& random);
  bool sold_out(std::string_view offer, base::TimePoint now) const;

 private:
  struct Entry {
    FaultRule rule;
    std::uint64_t number = 0;
    base::TimePoint until;
    int seen = 0;
    int used = 0;
  };
  bool spent(const Entry& entry, base::TimePoint now) const;

  std::vector<Entry> rules_;
  std::uint64_t next_number_ = 1;
};

/// `*` stands for any text, also none.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace spillway::providers::fake
