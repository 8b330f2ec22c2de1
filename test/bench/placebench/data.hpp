// What placebench is made of: traces, prices and run times, read from a folder of CSV files.
//
//   spot_traces_rle.csv           set,kind,nodes,cloud,zone,instance,gap_s,start_tick,ticks,available
//   prices_gpu_offers.csv source,as_of,provider,region,instance,gpu,gpu_count,vram_gb,...,ondemand_usd_h,spot_usd_h,...
//   philly_runtime_quantiles.csv  q,runtime_s
//   aws_gpu_spot_price_2020.csv   instance,zone,utc,usd_per_h          (scenario D; may be missing)
//   openb_pods.csv                cpu_milli,memory_mib,num_gpu,...      (scenario H; may be missing)
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "test/bench/placebench/trace.hpp"

namespace spillway::placebench {

struct PoolTrace {
  std::string set;
  std::string kind;  // availability: could one be had; preemption: was ours still there
  int nodes = 1;
  std::string cloud;
  std::string zone;
  std::string instance;
  Trace trace;
};

struct ListPrice {
  std::string source;
  std::string provider;
  std::string gpu;
  int gpu_count = 0;
  double vram_gb = 0;
  double on_demand = 0;  // dollars per hour; 0: none
  double spot = 0;
};

struct PodSize {
  int cpu_milli = 0;
  int memory_mib = 0;
  int gpus = 0;
};

struct Dataset {
  std::string folder;
  std::vector<PoolTrace> traces;
  std::vector<ListPrice> prices;
  std::vector<double> run_times;  // seconds, by quantile, from the shortest to the longest
  std::vector<PricePath> price_paths;
  std::vector<PodSize> pods;
  std::map<std::string, std::string> digests;  // of each file that was read
};

/// A sentence that names file, line and remedy if something cannot be read.
std::expected<Dataset, std::string> load_data(const std::filesystem::path& folder);

}  // namespace spillway::placebench
