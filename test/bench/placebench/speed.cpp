#include "test/bench/placebench/speed.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "test/bench/placebench/draw.hpp"
#include "test/bench/placebench/world.hpp"
#include "vk-provider/core/selector.hpp"
#include "vk-provider/model/gpu_catalog.hpp"

namespace spillway::placebench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProviders = 25;
constexpr int kRegions = 40;
constexpr std::int64_t kGib = std::int64_t{1} << 30U;

double micros_since(Clock::time_point from) {
  return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
}

double quantile(std::vector<double>& values, double q) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

model::Offer offer_of(std::uint64_t i) {
  constexpr std::array<int, 4> kCounts{1, 2, 4, 8};
  const std::uint64_t bits = mixed_all(31U, i);
  const auto models = model::gpu_models();
  const model::GpuModel& gpu = models[mixed(bits ^ 1U) % models.size()];
  model::Offer offer;
  offer.id = base::OfferId(fmt::format("offer-{:05}", i));
  offer.region = base::SharedText(fmt::format("region-{}", mixed(bits ^ 2U) % kRegions));
  offer.gpu_model = gpu.name;
  offer.gpu_count = kCounts.at(mixed(bits ^ 3U) % 4);
  offer.gpu_memory = gpu.memory;
  offer.cpu_milli = 8000 * offer.gpu_count;
  offer.memory = 64 * kGib * offer.gpu_count;
  offer.cuda_version = 1204;
  offer.capacity_type = mixed(bits ^ 4U) % 3 == 0 ? model::CapacityType::kSpot : model::CapacityType::kOnDemand;
  const double per_gpu =
      static_cast<double>(gpu.memory) / static_cast<double>(kGib) / 40 * (0.6 + unit(mixed(bits ^ 5U)));
  offer.price_per_hour = base::Money::from_micros(static_cast<std::int64_t>(per_gpu * offer.gpu_count * 1e6) + 1);
  return offer;
}

class Bench {
 public:
  Bench(const Dataset& data, int offers) : dataset(data) {
    std::vector<core::ProviderAbility> abilities(kProviders);
    for (int p = 0; p < kProviders; ++p) abilities[static_cast<size_t>(p)].name = fmt::format("p{:02}", p);
    selector.set_abilities(std::move(abilities));
    listings.resize(kProviders);
    for (int i = 0; i < offers; ++i) {
      listings[static_cast<size_t>(i % kProviders)].push_back(offer_of(static_cast<std::uint64_t>(i)));
    }
    list();
  }

  void list() {
    for (int p = 0; p < kProviders; ++p) {
      book.update(base::ProviderName(fmt::format("p{:02}", p)), listings[static_cast<size_t>(p)], now);
    }
  }

  /// Different pods: sizes from the trace, memory and money of several kinds.
  core::Shape shape(std::uint64_t i) const {
    const std::uint64_t bits = mixed_all(41U, i);
    core::Requirements needs;
    const PodSize size = dataset.pods.empty() ? PodSize{4000, 16384, 1} : dataset.pods[bits % dataset.pods.size()];
    needs.gpu_count = std::clamp(size.gpus, 1, 8);
    needs.gpu_resource = "nvidia.com/gpu";
    needs.cpu_milli = std::min(size.cpu_milli, 8000 * needs.gpu_count);
    needs.memory = std::min<std::int64_t>(std::int64_t{size.memory_mib} << 20U, 64 * kGib * needs.gpu_count);
    needs.wishes.min_vram = static_cast<std::int64_t>(8 + 8 * (mixed(bits ^ 1U) % 5)) * kGib;
    // The hash of a shape is of its whole: a different maximum makes a different shape.
    needs.wishes.max_price = base::Money::from_micros(500'000'000 + static_cast<std::int64_t>(i));
    needs.wishes.capacity_types = {model::CapacityType::kOnDemand, model::CapacityType::kSpot};
    model::NodeProfile profile;
    profile.offers.capacity_types = needs.wishes.capacity_types;
    return core::make_shape(needs, profile, i % 2 == 0 ? "Job" : "ReplicaSet");
  }

  core::Decision choose(const core::Shape& shape) {
    core::Query query;
    query.shape = &shape;
    return selector.choose(query, now);
  }

  void learn(core::PoolId pool, std::uint64_t i) {
    core::Beliefs::Report report;
    report.pool = pool;
    report.who = base::InstanceTag("t");
    report.took = std::chrono::seconds(2);
    report.result = i % 3 == 0 ? core::LaunchResult::kSoldOut : core::LaunchResult::kAccepted;
    beliefs.learn(report, now);
  }

  const Dataset& dataset;
  base::TimePoint now{std::chrono::hours(1)};
  std::vector<std::vector<model::Offer>> listings;
  core::OfferBook book;
  core::Beliefs beliefs{book.pools()};
  core::Selector selector{book, beliefs};
};

void measure_warm(const Dataset& data, SpeedResult& out) {
  Bench bench(data, 10'000);
  std::vector<core::Shape> shapes;
  for (std::uint64_t i = 0; i < 64; ++i) shapes.push_back(bench.shape(i));
  for (const core::Shape& shape : shapes) bench.choose(shape);
  std::vector<double> times;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    bench.now += std::chrono::milliseconds(20);
    if (i % 10'000 == 9'999) bench.list();
    if (i % 10'000 == 9'999) {
      for (const core::Shape& shape : shapes) bench.choose(shape);
    }
    const core::Shape& shape = shapes[mixed(i) % shapes.size()];
    const auto from = Clock::now();
    const core::Decision decision = bench.choose(shape);
    times.push_back(micros_since(from));
    if (!decision.best) continue;
    out.checksum = mixed(out.checksum ^ static_cast<std::uint64_t>(decision.best->index.micros()));
    if (i % 4 == 0) bench.learn(decision.best->pool, i);
  }
  out.warm_p50 = quantile(times, 0.50);
  out.warm_p99 = quantile(times, 0.99);
}

void measure_cold(const Dataset& data, SpeedResult& out) {
  Bench bench(data, 50'000);
  bench.book.table();
  std::vector<double> times;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const core::Shape shape = bench.shape(i);
    const auto from = Clock::now();
    const core::Decision decision = bench.choose(shape);
    times.push_back(micros_since(from));
    if (decision.best) out.checksum = mixed(out.checksum ^ static_cast<std::uint64_t>(decision.best->index.micros()));
  }
  out.cold_p50 = quantile(times, 0.50);
  out.cold_p99 = quantile(times, 0.99);

  std::vector<core::Shape> shapes;
  for (std::uint64_t i = 0; i < 256; ++i) shapes.push_back(bench.shape(i));
  bench.list();
  auto from = Clock::now();
  bench.book.table();
  out.table_ms = micros_since(from) / 1000;
  for (std::uint64_t i = 0; i < 10'000; ++i) bench.choose(shapes[i % shapes.size()]);
  out.redecide_ms = micros_since(from) / 1000;

  core::Query query;
  query.shape = &shapes[0];
  from = Clock::now();
  for (int i = 0; i < 20; ++i) bench.selector.explain(query, bench.now);
  out.explain_us = micros_since(from) / 20;

  const core::PoolId pool = bench.book.table().rows()[100].pool;
  from = Clock::now();
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    bench.now += std::chrono::seconds(1);
    bench.learn(pool, i);
  }
  out.learn_ns = micros_since(from) / 20;
}

}  // namespace

SpeedResult measure_speed(const Dataset& data) {
  SpeedResult out;
  measure_warm(data, out);
  measure_cold(data, out);
  return out;
}

}  // namespace spillway::placebench
