// The text of a plan, both ways.
#include <algorithm>
#include <charconv>
#include <optional>

#include "test/simulation/plan.hpp"

namespace spillway::simulation {
namespace {

constexpr std::string_view kName = "spillway-simulation";
constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kLongest = 24LL * 3600 * 1000;

/// A number of Settings or CloudTraits.
template <class T>
struct Member {
  std::string_view name;
  std::int64_t T::* member;
  std::int64_t least;
  std::int64_t most;
};

constexpr std::array<Member<Settings>, 6> kSettings{{
    {"nodes", &Settings::nodes, 1, 4},
    {"length", &Settings::length, 1'000, kLongest},
    {"latency", &Settings::latency, 0, 60'000},
    {"standby", &Settings::standby, 0, 1},
    {"cap", &Settings::cap, 0, 1'000'000'000},
    {"budget", &Settings::budget, 0, 1'000'000'000},
}};

constexpr std::array<Member<CloudTraits>, 9> kTraits{{
    {"boot", &CloudTraits::boot, 0, kLongest},
    {"unique", &CloudTraits::unique, 0, 1},
    {"keeps", &CloudTraits::keeps, 0, 1},
    {"settle", &CloudTraits::settle, 0, 600'000},
    {"lag", &CloudTraits::lag, 0, 600'000},
    {"latency", &CloudTraits::latency, 0, 60'000},
    {"step", &CloudTraits::step, 0, kLongest},
    {"permille", &CloudTraits::permille, 0, 1'000},
    {"stock", &CloudTraits::stock, 0, 1'000},
}};

template <class T = std::int64_t>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(by), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string out_of_range(std::string_view name, std::int64_t least, std::int64_t most) {
  return std::string(name) + " must be a number from " + std::to_string(least) + " to " + std::to_string(most);
}

/// Reads `name=value` words into what `find` names. Empty if all is well.
template <class Find>
std::string read_pairs(const std::vector<std::string_view>& words, size_t from, const Find& find) {
  for (size_t i = from; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string_view name = words[i].substr(0, equals);
    const auto place = find(name);
    if (!place.value) return "there is no \"" + std::string(name) + "\" here";
    const auto value = equals == std::string_view::npos ? std::nullopt : number(words[i].substr(equals + 1));
    if (!value || *value < place.least || *value > place.most) return out_of_range(name, place.least, place.most);
    *place.value = *value;
  }
  return {};
}

struct Place {
  std::int64_t* value = nullptr;
  std::int64_t least = 0;
  std::int64_t most = 0;
};

template <class T, size_t N>
std::string read_members(const std::vector<std::string_view>& words, const std::array<Member<T>, N>& members, T& into) {
  return read_pairs(words, 1, [&](std::string_view name) {
    const auto* it = std::ranges::find(members, name, &Member<T>::name);
    return it == members.end() ? Place{} : Place{&(into.*(it->member)), it->least, it->most};
  });
}

template <class T, size_t N>
std::string write_members(const std::array<Member<T>, N>& members, const T& from) {
  std::string out;
  for (const auto& m : members) out += " " + std::string(m.name) + "=" + std::to_string(from.*(m.member));
  return out + "\n";
}

std::string read_step(const std::vector<std::string_view>& words, Plan& plan) {
  if (words.size() < 3) return "a step is: at <ms> <verb> name=value ...";
  const auto at = number(words[1]);
  if (!at || *at < 0 || *at > kLongest) return out_of_range("a step's time", 0, kLongest);
  Step step;
  step.at = *at;
  step.verb = find_verb(words[2]);
  if (step.verb == nullptr) {
    return "there is no verb \"" + std::string(words[2]) + "\"; `simulation list-verbs` names them";
  }
  const auto& fields = step.verb->fields;
  for (size_t i = 0; i < fields.size(); ++i) step.args.at(i) = fields[i].least;
  const std::string fault = read_pairs(words, 3, [&](std::string_view name) {
    const auto it = std::ranges::find(fields, name, &Field::name);
    if (it == fields.end()) return Place{};
    return Place{&step.args.at(static_cast<size_t>(it - fields.begin())), it->least, it->most};
  });
  if (fault.empty()) plan.steps.push_back(step);
  return fault;
}

std::string read_line(const std::vector<std::string_view>& words, Plan& plan) {
  if (words[0] == "seed") {
    const auto seed = words.size() == 2 ? number<std::uint64_t>(words[1]) : std::nullopt;
    if (!seed) return "seed must be followed by a number";
    plan.seed = *seed;
    return {};
  }
  if (words[0] == "world") return read_members(words, kSettings, plan.settings);
  if (words[0] == "cloud") return read_members(words, kTraits, plan.clouds.emplace_back());
  if (words[0] == "at") return read_step(words, plan);
  return "expected seed, world, cloud or at, found \"" + std::string(words[0]) + "\"";
}

}  // namespace

const Verb* find_verb(std::string_view name) {
  const auto it = std::ranges::find(verbs(), name, &Verb::name);
  return it == verbs().end() ? nullptr : &*it;
}

std::string to_text(const Plan& plan) {
  std::string out = std::string(kName) + " " + std::to_string(kVersion) + "\nseed " + std::to_string(plan.seed) + "\n";
  out += "world" + write_members(kSettings, plan.settings);
  for (const CloudTraits& cloud : plan.clouds) out += "cloud" + write_members(kTraits, cloud);
  for (const Step& step : plan.steps) {
    out += "at " + std::to_string(step.at) + " " + std::string(step.verb->name);
    for (size_t i = 0; i < step.verb->fields.size(); ++i) {
      out += " " + std::string(step.verb->fields[i].name) + "=" + std::to_string(step.args.at(i));
    }
    out += "\n";
  }
  return out;
}

base::Result<Plan> parse_plan(std::string_view text) {
  Plan plan;
  bool begun = false;
  int line_number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++line_number;
    const std::vector<std::string_view> words = split(line, ' ');
    if (words.empty() || words[0].starts_with('#')) continue;
    std::string fault;
    if (!begun) {
      const auto version = words.size() == 2 ? number(words[1]) : std::nullopt;
      if (words[0] != kName || !version) {
        fault = "this is no plan of a simulation; it must begin with \"" + std::string(kName) + " 1\"";
      } else if (*version != kVersion) {
        fault = "format " + std::string(words[1]) + " is not known; this program reads format 1";
      }
      begun = true;
    } else {
      fault = read_line(words, plan);
    }
    if (!fault.empty()) {
      return base::fail(base::ErrorKind::kInvalid, "line " + std::to_string(line_number) + ": " + fault);
    }
  }
  if (!begun) return base::fail(base::ErrorKind::kInvalid, "the plan is empty");
  if (plan.clouds.empty()) return base::fail(base::ErrorKind::kInvalid, "the plan has no cloud");
  const auto late = std::ranges::find_if(plan.steps, [&](const Step& s) { return s.at > plan.settings.length; });
  if (late != plan.steps.end()) {
    return base::fail(base::ErrorKind::kInvalid, "the step at " + std::to_string(late->at) +
                                                     " comes after the end at " + std::to_string(plan.settings.length) +
                                                     " (world length)");
  }
  return plan;
}

}  // namespace spillway::simulation
