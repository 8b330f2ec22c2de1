// The lines of a decision log: what decided, one JSON object each.
//
// Pure. The same values give the same bytes, so that a decision that is made again can be compared as text. Doubles are
// written so that they read back as the same numbers; times are nanoseconds of the daemon's monotonic clock.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/core/selector.hpp"

namespace spillway::control {

namespace line {

/// First of each file.
struct Part {
  std::uint64_t number = 0;  // from 1
};
/// From here on a book and beliefs that know nothing.
struct Begin {
  std::vector<core::ProviderAbility> abilities;
};
struct Listed {
  base::ProviderName provider;
  base::TimePoint at;
  bool own_machines = false;
  bool whole = true;  // false: the provider's listing before, with these in the place of those of the same id
  std::vector<model::Offer> offers;
  std::vector<base::OfferId> gone;  // not whole: that were in the one before
};
/// Beliefs::begin.
struct Asked {
  core::PoolKey pool;
  base::InstanceTag who;
  base::TimePoint at;
};
/// Beliefs::learn; `report.pool` stands in `pool`.
struct Learnt {
  core::PoolKey pool;
  core::Beliefs::Report report;
  base::TimePoint at;
};
/// Of the decisions that name its hash; the last one counts.
struct Shape {
  core::Shape shape;
};
/// What was asked for; what was decided is compared as text.
struct Decided {
  core::Query query;        // without its shape
  std::uint64_t shape = 0;  // its hash
  base::TimePoint at;
};

}  // namespace line

using DecisionLine =
    std::variant<line::Part, line::Begin, line::Listed, line::Asked, line::Learnt, line::Shape, line::Decided>;

/// Without a newline.
std::string encode_line(const line::Part& part);
std::string encode_line(const line::Begin& begin);
std::string encode_line(const line::Listed& listed);
std::string encode_line(const line::Asked& asked);
std::string encode_line(const line::Learnt& learnt);
std::string encode_line(const line::Shape& shape);
std::string encode_decided(const core::Query& query, const core::Decision& decision, base::TimePoint at);
/// One offer as it stands in a listing's line.
std::string encode_offer(const model::Offer& offer);

/// kInvalid if it is none of these.
base::Result<DecisionLine> decode_line(std::string_view text);

}  // namespace spillway::control
