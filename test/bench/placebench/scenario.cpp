#include "test/bench/placebench/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "test/bench/placebench/draw.hpp"

namespace spillway::placebench {
namespace {

constexpr Seconds kHour = 3600;
constexpr Seconds kDay = 24 * kHour;
constexpr Seconds kShortestJob = 60;
constexpr Seconds kLongestJob = 100 * kHour;
constexpr Seconds kCheckpoint = 0.5 * kHour;
constexpr int kOnDemandOffers = 3;
constexpr size_t kClouds = 20;

Seconds run_time(const Dataset& data, double q) {
  const double at = q * static_cast<double>(data.run_times.size() - 1);
  const auto i = std::min(static_cast<size_t>(at), data.run_times.size() - 2);
  const double part = at - static_cast<double>(i);
  return std::clamp(data.run_times[i] * (1 - part) + data.run_times[i + 1] * part, kShortestJob, kLongestJob);
}

/// Poisson arrivals over `span`.
std::vector<Job> jobs_of(const Dataset& data, const Size& size, Seconds span) {
  std::vector<Job> jobs;
  Seconds t = 0;
  for (int i = 0; i < size.pods; ++i) {
    const std::uint64_t bits = mixed_all(size.seed, 77U, static_cast<std::uint64_t>(i));
    t += -std::log(unit(mixed(bits ^ 1U))) * span / size.pods;
    Job& job = jobs.emplace_back();
    job.id = static_cast<std::uint64_t>(i) + 1;
    job.arrival = t;
    job.work = run_time(data, unit(mixed(bits ^ 2U)));
    job.checkpoint = kCheckpoint;
    job.value = size.value;
  }
  return jobs;
}

base::Money dollars(double amount) { return base::Money::from_micros(std::llround(amount * 1e6)); }

// ---- A

struct Zones {
  std::vector<const PoolTrace*> traces;
  std::string gpu;  // v100
};

std::expected<Zones, std::string> zones_of(const Dataset& data, const std::string& set) {
  std::map<std::pair<std::string, std::string>, std::vector<const PoolTrace*>> groups;
  for (const PoolTrace& t : data.traces) {
    const bool wanted = set.empty() ? t.kind == "availability" && t.nodes == 1 : t.set == set;
    if (wanted) groups[{t.set, t.instance}].push_back(&t);
  }
  if (groups.empty() && set.empty()) {
    // A folder may hold nothing but preemptions.
    for (const PoolTrace& t : data.traces) groups[{t.set, t.instance}].push_back(&t);
  }
  const auto most = std::ranges::max_element(groups, {}, [](const auto& g) { return g.second.size(); });
  if (most == groups.end()) return std::unexpected(fmt::format("spot_traces_rle.csv: holds no set {}", set));
  return Zones{most->second, most->first.second.substr(0, most->first.second.find('_'))};
}

/// List prices of one GPU of that model at one seller, on demand and spot.
std::pair<double, double> prices_of(const Dataset& data, const std::string& gpu) {
  std::string name;
  for (const char c : gpu) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  for (const ListPrice& p : data.prices) {
    if (p.gpu == name && p.gpu_count == 1 && p.on_demand > 0 && p.spot > 0) return {p.on_demand, p.spot};
  }
  // A model that nobody lists: the ratio of the others.
  return {1.00, 0.30};
}

Pool pool_of(const std::string& provider, const std::string& region, double price, bool spot) {
  Pool pool;
  pool.offer.provider = base::ProviderName(provider);
  pool.offer.id = base::OfferId(fmt::format("{}-{}", region, spot ? "spot" : "on-demand"));
  pool.offer.region = region;
  pool.offer.gpu_model = "A100-80GB";  // all offers of a scenario are of one model; its name means nothing here
  pool.offer.gpu_count = 1;
  pool.offer.gpu_memory = std::int64_t{80} << 30U;
  pool.offer.capacity_type = spot ? model::CapacityType::kSpot : model::CapacityType::kOnDemand;
  pool.offer.price_per_hour = dollars(price);
  pool.taken_back = spot;
  return pool;
}

/// Rent if it could move for nothing at every moment to the cheapest pool that is up.
double cheapest_walk(const World& world, const Job& job) {
  double sum = 0;
  Seconds t = job.arrival;
  Seconds left = job.work;
  while (left > 0) {
    double price = std::numeric_limits<double>::infinity();
    Seconds change = std::numeric_limits<Seconds>::infinity();
    for (size_t i = 0; i < world.size(); ++i) {
      const bool up = world.up(i, t);
      if (up) price = std::min(price, world.price(i, t));
      change = std::min(change, up ? world.taken_back(i, t) : world.next_up(i, t));
    }
    const Seconds step = std::min(left, std::max(change - t, 1.0));
    if (std::isfinite(price)) {
      sum += price * step / kHour;
      left -= step;
    }
    t += step;
  }
  return sum;
}

// ---- B

/// One GPU with 80 GB of many sellers, the cheapest first.
std::vector<double> market_of(const Dataset& data) {
  std::map<std::string, std::map<std::string, double>> by_source;
  for (const ListPrice& p : data.prices) {
    if (!p.gpu.starts_with("A100") || p.gpu_count != 1 || p.vram_gb != 80 || p.on_demand <= 0) continue;
    const auto [it, added] = by_source[p.source].try_emplace(p.provider, p.on_demand);
    if (!added) it->second = std::min(it->second, p.on_demand);
  }
  std::vector<double> prices;
  const auto most = std::ranges::max_element(by_source, {}, [](const auto& s) { return s.second.size(); });
  if (most == by_source.end()) return prices;
  for (const auto& [provider, price] : most->second) prices.push_back(price);
  std::ranges::sort(prices);
  return prices;
}

/// So many of them from the cheapest to the dearest, closer together where they are cheap (README: how B was made).
std::vector<double> spread(const std::vector<double>& prices, size_t count) {
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) {
    const double part = std::pow(static_cast<double>(i) / static_cast<double>(count - 1), 1.3);
    out.push_back(prices[static_cast<size_t>(std::llround(part * static_cast<double>(prices.size() - 1)))]);
  }
  return out;
}

struct Stock {
  const PoolTrace* trace = nullptr;
  Seconds offset = 0;
};

/// Cheap is scarce, more or less: traces by availability, each moved a few places. They run side by side as they were
/// recorded, so that places of one region fail together; what is used twice runs half its length apart.
std::vector<Stock> stocks_of(const Dataset& data, size_t count, std::uint64_t seed) {
  std::vector<const PoolTrace*> all;
  for (const PoolTrace& t : data.traces) {
    if (t.kind == "availability" && t.nodes == 1) all.push_back(&t);
  }
  if (all.empty()) {
    for (const PoolTrace& t : data.traces) all.push_back(&t);
  }
  std::vector<std::tuple<double, size_t, Stock>> ranked;
  for (size_t i = 0; i < count; ++i) {
    // Those that are used once more are spread over all, not the first ones, which are the scarcest.
    const size_t n = all.size();
    const bool again = i >= n;
    const PoolTrace* const trace = all[again ? ((i - n) * n / std::max<size_t>(count - n, 1)) % n : i];
    const Seconds offset = again ? trace->trace.length() / 2 : 0;
    ranked.emplace_back(trace->trace.availability() + 0.12 * normal(mixed_all(seed, 5U, i)), i, Stock{trace, offset});
  }
  std::ranges::sort(ranked, {}, [](const auto& r) { return std::pair(std::get<0>(r), std::get<1>(r)); });
  std::vector<Stock> out;
  for (const auto& [rank, number, stock] : ranked) out.push_back(stock);
  return out;
}

Pool cloud(size_t i, double price, const Stock& stock, std::uint64_t seed) {
  const std::uint64_t bits = mixed_all(seed, 9U, i);
  Pool pool = pool_of(fmt::format("cloud-{:02}", i), "r1", price, false);
  pool.stock = stock.trace->trace;
  pool.offset = stock.offset;
  pool.start_median = 60 + 180 * unit(mixed(bits ^ 2U));
  // From 1 to 12 %, most sellers near the lower end: 3 % on average.
  pool.never_ready = 0.01 + 0.11 * std::pow(unit(mixed(bits ^ 3U)), 4);
  return pool;
}

/// Rent at the cheapest price from when it is up, and the value of waiting for that.
double best_start(const World& world, const Job& job, double value) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < world.size(); ++i) {
    // Later prices may be lower: until waiting alone would cost more than the best so far.
    Seconds t = job.arrival;
    for (int step = 0; step < 1000; ++step) {
      t = world.next_up(i, t);
      const double wait = value * (t - job.arrival) / kHour;
      if (!std::isfinite(t) || wait >= best) break;
      best = std::min(best, world.price(i, t) * job.work / kHour + wait);
      t = world.next_price(i, t);
    }
  }
  return best;
}

std::expected<std::vector<Pool>, std::string> clouds_of(const Dataset& data, const Size& size) {
  const std::vector<double> market = market_of(data);
  if (market.size() < 2) {
    return std::unexpected("prices_gpu_offers.csv: has no two sellers of one A100 with 80 GB");
  }
  const std::vector<double> prices = spread(market, kClouds);
  const std::vector<Stock> stocks = stocks_of(data, kClouds, size.seed);
  std::vector<Pool> pools;
  for (size_t i = 0; i < kClouds; ++i) pools.push_back(cloud(i, prices[i], stocks[i], size.seed));
  return pools;
}

/// List prices that move by up to 15 % every few days, on top of a spot path.
PricePath moving_price(const Dataset& data, Seconds span, std::uint64_t bits) {
  const PricePath* const path =
      data.price_paths.empty() ? nullptr : &data.price_paths[mixed(bits ^ 4U) % data.price_paths.size()];
  std::vector<Seconds> times{0};
  std::vector<double> factors{1};
  Seconds t = 0;
  double level = 1;
  for (std::uint64_t i = 0; t < span; ++i) {
    const Seconds listed = t + kDay * (2 + 10 * unit(mixed_all(bits, 6U, i)));
    while (path != nullptr && path->next_change(t) < std::min(listed, span)) {
      t = path->next_change(t);
      times.push_back(t);
      factors.push_back(level * path->at(t));
    }
    t = listed;
    level = 0.85 + 0.30 * unit(mixed_all(bits, 7U, i));
    times.push_back(t);
    factors.push_back(level * (path == nullptr ? 1 : path->at(t)));
  }
  return {std::move(times), std::move(factors), std::max(span, t) + kDay};
}

}  // namespace

std::string held_out_set(const Dataset& data) {
  std::map<std::string, int> sets;
  for (const PoolTrace& t : data.traces) {
    const bool gpus = t.instance.starts_with("v100") || t.instance.starts_with("k80");
    if (t.kind == "preemption" && t.nodes == 1 && gpus) ++sets[t.set];
  }
  const auto most = std::ranges::max_element(sets, {}, [](const auto& s) { return s.second; });
  return most == sets.end() ? std::string() : most->first;
}

std::expected<Scenario, std::string> scenario_a(const Dataset& data, const Size& size, const std::string& set) {
  const auto zones = zones_of(data, set);
  if (!zones) return std::unexpected(zones.error());
  const auto [on_demand, spot] = prices_of(data, zones->gpu);
  std::vector<Pool> pools;
  const size_t n = zones->traces.size();
  for (size_t i = 0; i < n; ++i) {
    const PoolTrace& trace = *zones->traces[i];
    // Zones differ by up to a tenth.
    const double price = spot * (1 + 0.1 * static_cast<double>(i) / static_cast<double>(std::max<size_t>(n - 1, 1)));
    Pool& pool = pools.emplace_back(pool_of(trace.cloud, trace.zone, price, true));
    pool.stock = trace.trace;
  }
  for (int i = 0; i < kOnDemandOffers; ++i) {
    pools.push_back(pool_of(zones->traces.front()->cloud, fmt::format("region-{}", i + 1), on_demand, false));
  }
  Seconds span = 0;
  for (const PoolTrace* t : zones->traces) span = std::max(span, t->trace.length());
  const std::string what = fmt::format("{} spot zones of {} ({}), {} on-demand offers; half-hourly checkpoints", n,
                                       zones->gpu, zones->traces.front()->set, kOnDemandOffers);
  return Scenario{set.empty() ? "A" : "A-held-out", what, World(std::move(pools), size.seed),
                  jobs_of(data, size, 0.9 * span),  true, true};
}

std::expected<Scenario, std::string> scenario_b(const Dataset& data, const Size& size) {
  auto pools = clouds_of(data, size);
  if (!pools) return std::unexpected(pools.error());
  return Scenario{"B",
                  fmt::format("{} clouds with one model at list prices, sold out at times", kClouds),
                  World(std::move(*pools), size.seed),
                  jobs_of(data, size, 41 * kDay),
                  false,
                  false};
}

std::expected<Scenario, std::string> scenario_d(const Dataset& data, const Size& size) {
  auto pools = clouds_of(data, size);
  if (!pools) return std::unexpected(pools.error());
  for (size_t i = 0; i < pools->size(); ++i) {
    (*pools)[i].price = moving_price(data, 45 * kDay, mixed_all(size.seed, 21U, i));
  }
  return Scenario{
      "D", "B with prices that move", World(std::move(*pools), size.seed), jobs_of(data, size, 41 * kDay), true, false};
}

Least least_cost(const Scenario& scenario, const Job& job) {
  if (scenario.walks) {
    const double rent = cheapest_walk(scenario.world, job);
    return {rent, rent};
  }
  return {best_start(scenario.world, job, 0), best_start(scenario.world, job, job.value)};
}

}  // namespace spillway::placebench
