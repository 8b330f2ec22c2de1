// Makes the decisions of a decision log again, and compares them byte for byte.
//
// Pure; one owner. Lines are given in the order in which they were written, over all parts of the log.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "vk-provider/base/error.hpp"
#include "vk-provider/control/decision_codec.hpp"

namespace spillway::control {

class DecisionReplay {
 public:
  /// kInvalid: the line is none of a decision log, or the log begins in its middle. kConflict: what was decided now is
  /// something else; the message has both.
  base::Result<void> feed(std::string_view line);
  std::uint64_t decisions() const { return decisions_; }

 private:
  struct World {
    core::OfferBook book;
    core::Beliefs beliefs{book.pools()};
    core::Selector selector{book, beliefs};
    std::map<base::ProviderName, std::map<base::OfferId, model::Offer>> listings;
  };

  base::Result<void> take(const line::Part& part);
  base::Result<void> take(const line::Begin& begin);
  base::Result<void> take(line::Listed& listed);
  base::Result<void> take(const line::Asked& asked);
  base::Result<void> take(line::Learnt& learnt);
  base::Result<void> take(const line::Shape& shape);
  base::Result<void> take(line::Decided& decided);
  base::Result<core::PoolId> find_pool(const core::PoolKey& key);

  std::string_view text_;  // of the line that is fed
  std::uint64_t part_ = 0;
  std::unique_ptr<World> world_;
  std::unordered_map<std::uint64_t, core::Shape> shapes_;
  std::uint64_t decisions_ = 0;
};

}  // namespace spillway::control
