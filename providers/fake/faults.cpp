#include "providers/fake/faults.hpp"

#include <algorithm>
#include <array>

namespace spillway::providers::fake {
namespace {

struct CallWord {
  Call call;
  std::string_view word;
};
constexpr std::array kCallWords = {
    CallWord{Call::kAny, "any"},
    CallWord{Call::kListOffers, "list_offers"},
    CallWord{Call::kCreate, "create"},
    CallWord{Call::kGet, "get"},
    CallWord{Call::kListOwned, "list_owned"},
    CallWord{Call::kTerminate, "terminate"},
    CallWord{Call::kControl, "control_container"},
    CallWord{Call::kReadLog, "read_log"},
    CallWord{Call::kSamples, "samples"},
};

// `only`: the one call that the effect can befall; kAny: all of them.
struct EffectWord {
  Effect effect;
  std::string_view word;
  Call only;
};
constexpr std::array kEffectWords = {
    EffectWord{Effect::kError, "error", Call::kAny},
    EffectWord{Effect::kLoseRequest, "lose_request", Call::kAny},
    EffectWord{Effect::kLoseAnswer, "lose_answer", Call::kAny},
    EffectWord{Effect::kDelay, "delay", Call::kAny},
    EffectWord{Effect::kGhost, "ghost", Call::kCreate},
    EffectWord{Effect::kPartialList, "partial_list", Call::kListOwned},
    EffectWord{Effect::kEmptyList, "empty_list", Call::kListOwned},
    EffectWord{Effect::kLaggingList, "lagging_list", Call::kListOwned},
    EffectWord{Effect::kSoldOut, "sold_out", Call::kCreate},
    EffectWord{Effect::kImageError, "image_error", Call::kCreate},
    EffectWord{Effect::kStuckTermination, "stuck_termination", Call::kTerminate},
    EffectWord{Effect::kOvercharge, "overcharge", Call::kCreate},
};

Call only_call(Effect effect) { return std::ranges::find(kEffectWords, effect, &EffectWord::effect)->only; }

bool is_list_effect(Effect e) {
  return e == Effect::kPartialList || e == Effect::kEmptyList || e == Effect::kLaggingList;
}

bool applies(const FaultRule& rule, const CallFacts& facts) {
  const Call wanted = rule.call == Call::kAny ? only_call(rule.effect) : rule.call;
  if (wanted != Call::kAny && wanted != facts.call) return false;
  if (!rule.tag.empty() && !is_list_effect(rule.effect) && facts.tag.find(rule.tag) == std::string_view::npos) {
    return false;
  }
  if (!rule.offer.empty() && !matches(rule.offer, facts.offer)) return false;
  return rule.image.empty() ||
         std::ranges::any_of(facts.images, [&](std::string_view image) { return matches(rule.image, image); });
}

base::Error error_of(const FaultRule& rule) {
  base::Error error(rule.kind, rule.message.empty() ? "the fake cloud was told to answer so" : rule.message);
  error.retry_after = rule.retry_after;
  return error;
}

bool decided(const Verdict& v) { return v.error || v.lose_request || v.lose_answer || v.ghost; }

void apply(const FaultRule& rule, Verdict& verdict) {
  switch (rule.effect) {
    case Effect::kError:
      if (!decided(verdict)) verdict.error = error_of(rule);
      break;
    case Effect::kSoldOut:
      if (!decided(verdict)) verdict.error = base::Error(base::ErrorKind::kNoCapacity, "the offer is sold out");
      break;
    case Effect::kLoseRequest: verdict.lose_request = verdict.lose_request || !decided(verdict); break;
    case Effect::kLoseAnswer: verdict.lose_answer = verdict.lose_answer || !decided(verdict); break;
    case Effect::kGhost:
      if (!decided(verdict)) verdict.ghost = rule.duration;
      break;
    case Effect::kDelay: verdict.delay += rule.duration; break;
    case Effect::kPartialList:
    case Effect::kEmptyList:
    case Effect::kLaggingList: {
      ListFault fault;
      fault.effect = rule.effect;
      fault.tag = rule.tag;
      fault.duration = rule.duration;
      verdict.list.push_back(std::move(fault));
      break;
    }
    case Effect::kImageError:
      verdict.image_error = rule.message.empty() ? "the image is not known to its registry" : rule.message;
      break;
    case Effect::kStuckTermination: verdict.stuck = rule.duration; break;
    case Effect::kOvercharge: verdict.percent = rule.percent; break;
  }
}

}  // namespace

std::string_view to_string(Call call) { return std::ranges::find(kCallWords, call, &CallWord::call)->word; }
std::string_view to_string(Effect effect) { return std::ranges::find(kEffectWords, effect, &EffectWord::effect)->word; }
std::optional<Call> parse_call(std::string_view word) {
  const auto* it = std::ranges::find(kCallWords, word, &CallWord::word);
  return it == kCallWords.end() ? std::nullopt : std::optional(it->call);
}
std::optional<Effect> parse_effect(std::string_view word) {
  const auto* it = std::ranges::find(kEffectWords, word, &EffectWord::word);
  return it == kEffectWords.end() ? std::nullopt : std::optional(it->effect);
}

base::Result<std::uint64_t> FaultBook::add(FaultRule rule, base::TimePoint now) {
  const Call only = only_call(rule.effect);
  if (only != Call::kAny && rule.call != Call::kAny && rule.call != only) {
    return base::fail(base::ErrorKind::kInvalid, "effect " + std::string(to_string(rule.effect)) + " can befall " +
                                                     std::string(to_string(only)) + " only, not " +
                                                     std::string(to_string(rule.call)));
  }
  if (rule.skip < 0 || rule.times < 0 || rule.lasts < base::Duration{0} || rule.duration < base::Duration{0} ||
      rule.percent < 0 || rule.probability < 0 || rule.probability > 100) {
    return base::fail(base::ErrorKind::kInvalid,
                      "a fault's numbers must not be negative, and its probability is at most 100");
  }
  Entry entry;
  entry.until = rule.lasts == base::Duration{0} ? base::TimePoint::max() : now + rule.lasts;
  entry.rule = std::move(rule);
  entry.number = next_number_++;
  rules_.push_back(std::move(entry));
  return rules_.back().number;
}

bool FaultBook::spent(const Entry& entry, base::TimePoint now) const {
  return now >= entry.until || (entry.rule.times > 0 && entry.used >= entry.rule.times);
}

Verdict FaultBook::judge(const CallFacts& facts, base::TimePoint now, base::Random& random) {
  Verdict verdict;
  if (rules_.empty()) return verdict;
  std::erase_if(rules_, [&](const Entry& e) { return spent(e, now); });
  for (Entry& entry : rules_) {
    if (!applies(entry.rule, facts)) continue;
    if (++entry.seen <= entry.rule.skip) continue;
    if (entry.rule.probability < 100 && random.unit() * 100 >= entry.rule.probability) continue;
    ++entry.used;
    apply(entry.rule, verdict);
  }
  return verdict;
}

bool FaultBook::sold_out(std::string_view offer, base::TimePoint now) const {
  return std::ranges::any_of(rules_, [&](const Entry& e) {
    return e.rule.effect == Effect::kSoldOut && !spent(e, now) &&
           (e.rule.offer.empty() || matches(e.rule.offer, offer));
  });
}

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace spillway::providers::fake
