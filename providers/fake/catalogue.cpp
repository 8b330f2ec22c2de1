#include "providers/fake/catalogue.hpp"

#include <array>

#include "vk-provider/model/gpu_catalog.hpp"

namespace spillway::providers::fake {
namespace {

struct Row {
  std::string_view id;
  std::string_view region;
  std::string_view gpu;
  int gpus;
  int cpus;
  int memory_gib;
  std::int64_t price_micros;
  model::CapacityType type;
  model::Trust trust;
  int stock;  // 0: without limit
  int grain;
  int minimum;
};

constexpr auto kOnDemand = model::CapacityType::kOnDemand;
constexpr auto kSpot = model::CapacityType::kSpot;
constexpr auto kDatacenter = model::Trust::kDatacenter;
constexpr auto kCommunity = model::Trust::kCommunity;

constexpr std::array kRows = {
    Row{"cpu-4", "eu-west", "", 0, 4, 16, 64'000, kOnDemand, kDatacenter, 0, 1, 60},
    Row{"cpu-16", "eu-west", "", 0, 16, 64, 256'000, kOnDemand, kDatacenter, 0, 1, 60},
    Row{"t4", "us-east", "T4", 1, 4, 16, 526'000, kOnDemand, kDatacenter, 0, 1, 60},
    Row{"t4-spot", "us-east", "T4", 1, 4, 16, 158'000, kSpot, kDatacenter, 0, 1, 60},
    Row{"l4", "us-central", "L4", 1, 8, 32, 710'000, kOnDemand, kDatacenter, 0, 1, 60},
    Row{"rtx4090-community", "us-west", "RTX4090", 1, 16, 62, 340'000, kOnDemand, kCommunity, 20, 1, 0},
    Row{"rtx5090-community", "eu-central", "RTX5090", 1, 16, 62, 690'000, kOnDemand, kCommunity, 8, 1, 0},
    Row{"a6000", "eu-north", "A6000", 1, 8, 48, 490'000, kOnDemand, kDatacenter, 40, 1, 0},
    Row{"l40s", "eu-north", "L40S", 1, 16, 94, 860'000, kOnDemand, kDatacenter, 40, 1, 0},
    Row{"a100-80gb", "us-west", "A100-80GB", 1, 22, 120, 1'290'000, kOnDemand, kDatacenter, 0, 1, 0},
    Row{"a100-80gb-spot", "eu-north", "A100-80GB", 1, 22, 120, 580'000, kSpot, kDatacenter, 16, 600, 600},
    Row{"h100", "us-east", "H100", 1, 26, 200, 2'490'000, kOnDemand, kDatacenter, 32, 60, 60},
    Row{"h100-x8", "us-east", "H100", 8, 208, 1800, 23'920'000, kOnDemand, kDatacenter, 4, 60, 3600},
    Row{"h200", "eu-north", "H200", 1, 44, 182, 3'390'000, kOnDemand, kDatacenter, 16, 60, 60},
    Row{"b200", "us-west", "B200", 1, 31, 184, 4'990'000, kOnDemand, kDatacenter, 4, 60, 60},
    Row{"mi300x", "us-central", "MI300X", 1, 24, 283, 1'990'000, kOnDemand, kDatacenter, 8, 60, 0},
};

}  // namespace

std::vector<CloudOffer> default_catalogue() {
  std::vector<CloudOffer> out;
  for (const Row& row : kRows) {
    CloudOffer sold;
    sold.offer.id = base::OfferId(std::string(row.id));
    sold.offer.region = row.region;
    sold.offer.gpu_model = row.gpu;
    sold.offer.gpu_count = row.gpus;
    if (const model::GpuModel* gpu = model::find_gpu(row.gpu)) sold.offer.gpu_memory = gpu->memory;
    sold.offer.cpu_milli = std::int64_t{row.cpus} * 1000;
    sold.offer.memory = std::int64_t{row.memory_gib} << 30;
    sold.offer.capacity_type = row.type;
    sold.offer.trust = row.trust;
    sold.offer.price_per_hour = base::Money::from_micros(row.price_micros);
    if (row.stock > 0) sold.stock = row.stock;
    sold.grain = std::chrono::seconds(row.grain);
    sold.minimum = std::chrono::seconds(row.minimum);
    out.push_back(std::move(sold));
  }
  return out;
}

}  // namespace spillway::providers::fake
