#include "test/bench/placebench/data.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "test/bench/placebench/csv.hpp"
#include "vk-provider/base/clock.hpp"

namespace spillway::placebench {
namespace {

using Problem = std::string;  // empty: none

/// Of a file that may be missing.
std::expected<Table, Problem> open(const Dataset& data, const std::string& file,
                                   const std::vector<std::string>& columns) {
  return Table::read(std::filesystem::path(data.folder) / file, columns);
}

/// Runs of equal states, one after the other.
struct Runs {
  bool first = true;
  bool last = true;
  std::vector<Seconds> changes;
  Seconds length = 0;

  void add(bool up, Seconds from, Seconds lasts) {
    if (length == 0) first = up;
    if (length > 0 && up != last) changes.push_back(from);
    last = up;
    length = from + lasts;
  }
};

Problem read_traces(Dataset& data) {
  constexpr const char* kFile = "spot_traces_rle.csv";
  auto table = open(data, kFile,
                    {"set", "kind", "nodes", "cloud", "zone", "instance", "gap_s", "start_tick", "ticks", "available"});
  if (!table) return table.error();
  using Key = std::tuple<std::string, std::string, int, std::string, std::string, std::string>;
  std::vector<std::pair<Key, Runs>> pools;
  for (size_t i = 0; i < table->rows(); ++i) {
    Key key{table->text(i, 0), table->text(i, 1), table->whole(i, 2),
            table->text(i, 3), table->text(i, 4), table->text(i, 5)};
    if (pools.empty() || pools.back().first != key) pools.emplace_back(std::move(key), Runs());
    const double gap = table->number(i, 6);
    // Of several nodes the pool is up while all of them are there.
    const bool up = table->number(i, 9) >= table->number(i, 2);
    pools.back().second.add(up, table->number(i, 7) * gap, table->number(i, 8) * gap);
  }
  if (!table->error().empty()) return table->error();
  for (auto& [key, runs] : pools) {
    if (runs.length <= 0) return fmt::format("{}: {} has no ticks", kFile, std::get<4>(key));
    PoolTrace& out = data.traces.emplace_back();
    std::tie(out.set, out.kind, out.nodes, out.cloud, out.zone, out.instance) = std::move(key);
    out.trace = Trace(runs.first, std::move(runs.changes), runs.length);
  }
  data.digests[kFile] = table->digest();
  return data.traces.empty() ? fmt::format("{}: holds no trace", kFile) : Problem();
}

Problem read_prices(Dataset& data) {
  constexpr const char* kFile = "prices_gpu_offers.csv";
  auto table = open(data, kFile, {"source", "provider", "gpu", "gpu_count", "vram_gb", "ondemand_usd_h", "spot_usd_h"});
  if (!table) return table.error();
  for (size_t i = 0; i < table->rows(); ++i) {
    ListPrice& price = data.prices.emplace_back();
    price.source = table->text(i, 0);
    price.provider = table->text(i, 1);
    price.gpu = table->text(i, 2);
    price.gpu_count = table->whole(i, 3);
    price.vram_gb = table->number(i, 4);
    price.on_demand = table->number(i, 5);
    price.spot = table->number(i, 6);
  }
  data.digests[kFile] = table->digest();
  if (!table->error().empty()) return table->error();
  return data.prices.empty() ? fmt::format("{}: holds no price", kFile) : Problem();
}

Problem read_run_times(Dataset& data) {
  constexpr const char* kFile = "philly_runtime_quantiles.csv";
  auto table = open(data, kFile, {"q", "runtime_s"});
  if (!table) return table.error();
  for (size_t i = 0; i < table->rows(); ++i) data.run_times.push_back(table->number(i, 1));
  data.digests[kFile] = table->digest();
  if (!table->error().empty()) return table->error();
  if (!std::ranges::is_sorted(data.run_times)) return fmt::format("{}: runtime_s falls; it must rise with q", kFile);
  return data.run_times.size() < 2 ? fmt::format("{}: holds fewer than two quantiles", kFile) : Problem();
}

Problem read_price_paths(Dataset& data) {
  constexpr const char* kFile = "aws_gpu_spot_price_2020.csv";
  if (!std::filesystem::exists(std::filesystem::path(data.folder) / kFile)) return {};
  auto table = open(data, kFile, {"instance", "zone", "utc", "usd_per_h"});
  if (!table) return table.error();
  struct Change {
    double at;
    double price;
  };
  std::map<std::string, std::vector<Change>> pools;
  for (size_t i = 0; i < table->rows(); ++i) {
    const auto at = base::from_rfc3339(table->text(i, 2) + "Z");
    if (!at) return fmt::format("{}:{}: '{}' is no time", kFile, i + 2, table->text(i, 2));
    const double seconds = static_cast<double>(at->time_since_epoch().count()) / 1e6;
    pools[table->text(i, 0) + table->text(i, 1)].push_back({seconds, table->number(i, 3)});
  }
  if (!table->error().empty()) return table->error();
  for (auto& [name, changes] : pools) {
    std::ranges::sort(changes, {}, [](const Change& c) { return std::pair(c.at, c.price); });
    if (changes.size() < 2 || changes.front().price <= 0) continue;
    std::vector<Seconds> times;
    std::vector<double> factors;
    for (const Change& c : changes) {
      times.push_back(c.at - changes.front().at);
      factors.push_back(c.price / changes.front().price);
    }
    const Seconds length = times.back() + 86400;
    data.price_paths.emplace_back(std::move(times), std::move(factors), length);
  }
  data.digests[kFile] = table->digest();
  return {};
}

Problem read_pods(Dataset& data) {
  constexpr const char* kFile = "openb_pods.csv";
  if (!std::filesystem::exists(std::filesystem::path(data.folder) / kFile)) return {};
  auto table = open(data, kFile, {"cpu_milli", "memory_mib", "num_gpu"});
  if (!table) return table.error();
  for (size_t i = 0; i < table->rows(); ++i) {
    data.pods.push_back({table->whole(i, 0), table->whole(i, 1), table->whole(i, 2)});
  }
  data.digests[kFile] = table->digest();
  return table->error();
}

}  // namespace

std::expected<Dataset, std::string> load_data(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    return std::unexpected(fmt::format("{}: is no folder; name one with the CSV files of README.md", folder.string()));
  }
  Dataset data;
  data.folder = folder.string();
  for (auto* const read : {read_traces, read_prices, read_run_times, read_price_paths, read_pods}) {
    if (Problem problem = read(data); !problem.empty()) return std::unexpected(std::move(problem));
  }
  return data;
}

}  // namespace spillway::placebench
