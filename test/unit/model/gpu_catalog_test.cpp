#include "vk-provider/model/gpu_catalog.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace spillway::model;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

std::string name_of(std::string_view alias, std::int64_t memory = 0) {
  const GpuModel* model = find_gpu(alias, memory);
  return model == nullptr ? "" : std::string(model->name);
}

}  // namespace

TEST_CASE("gpu catalog: the words of clouds mean one model") {
  CHECK(name_of("H100") == "H100");
  CHECK(name_of("nvidia-h100-80gb-hbm3") == "H100");
  CHECK(name_of("NVIDIA H100 PCIe") == "H100");
  CHECK(name_of("H100 NVL") == "H100-NVL");
  CHECK(name_of("H200_SXM") == "H200");
  CHECK(name_of("NVIDIA A100 80GB PCIe") == "A100-80GB");
  CHECK(name_of("A100-SXM4-40GB") == "A100-40GB");
  CHECK(name_of("A100_80G") == "A100-80GB");
  CHECK(name_of("NVIDIA GeForce RTX 4090") == "RTX4090");
  CHECK(name_of("RTX_5090") == "RTX5090");
  CHECK(name_of("NVIDIA RTX A6000") == "A6000");
  CHECK(name_of("RTX 6000 Ada") == "RTX6000-Ada");
  CHECK(name_of("Tesla T4") == "T4");
  CHECK(name_of("L40S") == "L40S");
  CHECK(name_of("L40") == "L40");
  CHECK(name_of("AMD Instinct MI300X OAM") == "MI300X");
}

TEST_CASE("gpu catalog: memory decides where a name does not") {
  CHECK(name_of("A100", 80 * kGib) == "A100-80GB");
  CHECK(name_of("A100", 40'000'000'000) == "A100-40GB");
  CHECK(name_of("V100", 16 * kGib) == "V100-16GB");
  CHECK(name_of("A100").empty());
  CHECK(name_of("A100", 24 * kGib).empty());
}

TEST_CASE("gpu catalog: unknown names are not guessed") {
  CHECK(name_of("").empty());
  CHECK(name_of("NVIDIA").empty());
  CHECK(name_of("H1000").empty());
  CHECK(name_of("Voodoo2").empty());
}

TEST_CASE("gpu catalog: canonical names and products are unique, label values, and find themselves") {
  std::set<std::string_view> seen;
  for (const GpuModel& model : gpu_models()) {
    CHECK(seen.insert(model.name).second);
    CHECK(model.memory > 0);
    CHECK(find_gpu(model.name) == &model);
    CHECK(find_gpu(model.product) == &model);
    CHECK(model.product.size() <= 63);
    CHECK(model.product.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") ==
          std::string_view::npos);
  }
}
