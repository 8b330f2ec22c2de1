#include "vk-provider/control/decision_log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/decision_codec.hpp"

namespace spillway::control {
namespace log = base::log;

namespace {

constexpr size_t kPiece = size_t{256} << 10U;
constexpr size_t kMostShapes = 1024;

std::string part_name(const std::string& file, int age) { return age == 0 ? file : file + "." + std::to_string(age); }

}  // namespace

base::Result<std::unique_ptr<DecisionLog>> DecisionLog::create(std::string file, DecisionLogLimits limits) {
  std::unique_ptr<DecisionLog> made(new DecisionLog(std::move(file), limits));
  made->move_on();
  if (auto opened = made->open_part(); !opened) return base::fail(std::move(opened.error()));
  return made;
}

DecisionLog::~DecisionLog() { flush(); }

base::Result<void> DecisionLog::open_part() {
  out_.reset(std::fopen(file_.c_str(), "we"));
  if (!out_) return base::fail(base::ErrorKind::kInvalid, file_ + ": " + std::strerror(errno));
  std::setvbuf(out_.get(), nullptr, _IONBF, 0);  // the pieces are gathered here
  written_ = 0;
  write(encode_line(line::Part{++part_}));
  return {};
}

void DecisionLog::fail(const std::string& what) {
  failed_ = true;
  out_.reset();
  buffer_ = {};
  log::error("the decision log cannot be written, and ends here", {{"file", file_}, {"error", what}});
}

void DecisionLog::flush() {
  if (failed_ || buffer_.empty()) return;
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), out_.get()) != buffer_.size()) return fail(std::strerror(errno));
  buffer_.clear();
}

/// FILE makes room for a new one.
void DecisionLog::move_on() const {
  std::error_code error;
  for (int age = limits_.parts - 1; age > 0; --age) {
    const std::string younger = part_name(file_, age - 1);
    if (std::filesystem::exists(younger, error)) std::filesystem::rename(younger, part_name(file_, age), error);
  }
}

void DecisionLog::turn_over() {
  flush();
  if (failed_) return;
  move_on();
  if (auto opened = open_part(); !opened) fail(opened.error().message);
}

void DecisionLog::write(std::string line) {
  if (failed_) return;
  written_ += line.size() + 1;
  buffer_ += line;
  buffer_ += '\n';
  if (buffer_.size() >= kPiece) flush();
  if (written_ >= limits_.part_bytes) turn_over();
}

void DecisionLog::begin(const std::vector<core::ProviderAbility>& abilities) {
  offers_.clear();
  write(encode_line(line::Begin{abilities}));
}

void DecisionLog::listed(const base::ProviderName& provider, const std::vector<model::Offer>& offers,
                         base::TimePoint now, bool own_machines) {
  if (failed_) return;
  line::Listed line;
  line.provider = provider;
  line.at = now;
  line.own_machines = own_machines;
  std::unordered_map<base::OfferId, size_t> seen;
  std::vector<const model::Offer*> changed;
  const auto known = offers_.find(provider);
  line.whole = known == offers_.end();
  for (const model::Offer& offer : offers) {
    const size_t hash = std::hash<std::string>{}(encode_offer(offer));
    const bool twin = !seen.emplace(offer.id, hash).second;
    // Of several under one id it matters how many there are.
    line.whole = line.whole || twin;
    if (!line.whole && known->second.contains(offer.id) && known->second.at(offer.id) == hash) continue;
    changed.push_back(&offer);
  }
  if (line.whole) {
    line.offers = offers;
  } else {
    for (const model::Offer* const offer : changed) line.offers.push_back(*offer);
    for (const auto& [id, hash] : known->second) {
      if (!seen.contains(id)) line.gone.push_back(id);
    }
    std::ranges::sort(line.gone);
  }
  write(encode_line(line));
  // What has twins is written whole again the next time.
  if (seen.size() == offers.size()) {
    offers_[provider] = std::move(seen);
  } else {
    offers_.erase(provider);
  }
}

void DecisionLog::asked(const core::PoolKey& pool, const base::InstanceTag& who, base::TimePoint now) {
  write(encode_line(line::Asked{pool, who, now}));
}

void DecisionLog::learnt(const core::PoolKey& pool, const core::Beliefs::Report& report, base::TimePoint now) {
  write(encode_line(line::Learnt{pool, report, now}));
}

void DecisionLog::decided(const core::Query& query, const core::Decision& decision, base::TimePoint now) {
  const core::Shape& shape = *query.shape;
  const auto known = shapes_.find(shape.hash);
  if (known == shapes_.end() || known->second != shape) {
    if (shapes_.size() >= kMostShapes) shapes_.clear();
    shapes_.insert_or_assign(shape.hash, shape);
    write(encode_line(line::Shape{shape}));
  }
  write(encode_decided(query, decision, now));
}

}  // namespace spillway::control
