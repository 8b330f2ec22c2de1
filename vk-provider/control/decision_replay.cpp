#include "vk-provider/control/decision_replay.hpp"

#include <utility>

namespace spillway::control {
namespace {

std::unexpected<base::Error> broken(std::string message) {
  return base::fail(base::ErrorKind::kInvalid, std::move(message));
}

}  // namespace

base::Result<void> DecisionReplay::feed(std::string_view text) {
  auto decoded = decode_line(text);
  if (!decoded) return base::fail(std::move(decoded.error()));
  if (part_ == 0 && !std::holds_alternative<line::Part>(*decoded)) return broken("this is no decision log");
  text_ = text;
  return std::visit([this](auto& line) { return take(line); }, *decoded);
}

base::Result<void> DecisionReplay::take(const line::Part& part) {
  // A daemon that was started anew knew nothing of what stands before.
  if (part.number == 1) world_.reset();
  if (part.number == 1 || (part_ > 0 && part.number == part_ + 1)) {
    part_ = part.number;
    return {};
  }
  const std::string number = std::to_string(part.number);
  if (part_ == 0) {
    return broken("it begins in the middle: this is part " + number +
                  " of a log, and what was learnt before it is needed; name the earlier parts, too");
  }
  return broken("part " + number + " of a log follows part " + std::to_string(part_));
}

base::Result<void> DecisionReplay::take(const line::Begin& begin) {
  world_ = std::make_unique<World>();
  world_->selector.set_abilities(begin.abilities);
  return {};
}

base::Result<void> DecisionReplay::take(line::Listed& listed) {
  if (!world_) return broken("a listing before the beginning");
  auto& known = world_->listings[listed.provider];
  std::vector<model::Offer> offers;
  if (listed.whole) {
    offers = listed.offers;
    known.clear();
  }
  for (model::Offer& offer : listed.offers) known.insert_or_assign(offer.id, std::move(offer));
  for (const base::OfferId& id : listed.gone) known.erase(id);
  if (!listed.whole) {
    for (const auto& [id, offer] : known) offers.push_back(offer);
  }
  world_->book.update(listed.provider, std::move(offers), listed.at, listed.own_machines);
  // Pools get their numbers from the tables that are made: of every listing, so that none is missing.
  world_->book.table();
  return {};
}

base::Result<core::PoolId> DecisionReplay::find_pool(const core::PoolKey& key) {
  const core::PoolIndex* const pools = world_ ? &world_->book.pools() : nullptr;
  for (size_t i = 0; pools != nullptr && i < pools->size(); ++i) {
    if (pools->key(core::PoolId{static_cast<std::uint32_t>(i)}) == key) {
      return core::PoolId{static_cast<std::uint32_t>(i)};
    }
  }
  return broken("something is told of a pool that was never listed");
}

base::Result<void> DecisionReplay::take(const line::Asked& asked) {
  const auto pool = find_pool(asked.pool);
  if (!pool) return base::fail(pool.error());
  world_->beliefs.begin(*pool, asked.who, asked.at);
  return {};
}

base::Result<void> DecisionReplay::take(line::Learnt& learnt) {
  const auto pool = find_pool(learnt.pool);
  if (!pool) return base::fail(pool.error());
  learnt.report.pool = *pool;
  world_->beliefs.learn(learnt.report, learnt.at);
  return {};
}

base::Result<void> DecisionReplay::take(const line::Shape& line) {
  shapes_.insert_or_assign(line.shape.hash, line.shape);
  return {};
}

base::Result<void> DecisionReplay::take(line::Decided& decided) {
  const auto shape = shapes_.find(decided.shape);
  if (!world_ || shape == shapes_.end()) return broken("a decision about a shape that was never told");
  decided.query.shape = &shape->second;
  const std::string again =
      encode_decided(decided.query, world_->selector.choose(decided.query, decided.at), decided.at);
  ++decisions_;
  if (again == text_) return {};
  return base::fail(base::ErrorKind::kConflict, "decided then: " + std::string(text_) + "\ndecided now:  " + again);
}

}  // namespace spillway::control
