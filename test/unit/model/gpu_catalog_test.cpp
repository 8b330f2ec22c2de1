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
  CHECK(name_of("H100SXM5") == "H100");
  CHECK(name_of("H100 (80 GB SXM5)") == "H100");
  CHECK(name_of("gh200 sxm") == "GH200");
  CHECK(name_of("H100 HGX") == "H100");
  CHECK(name_of("RTX 3090 24GB") == "RTX3090");
  CHECK(name_of("RTX 4070S Ti") == "RTX4070TiS");
  CHECK(name_of("NVIDIA GeForce RTX 4080 SUPER") == "RTX4080S");
  CHECK(name_of("NVIDIA  RTX A4500") == "A4500");
  CHECK(name_of("NVIDIA RTX 4000 SFF Ada Generation") == "RTX4000-SFF-Ada");
  CHECK(name_of("Q RTX 8000") == "QuadroRTX8000");
  CHECK(name_of("Tesla V100-PCIE-32GB") == "V100-32GB");
  CHECK(name_of("RTX PRO 6000 WS") == "RTX-PRO-6000");
  CHECK(name_of("B300") == "B300");
}

TEST_CASE("gpu catalog: a name may mean several models, and says which") {
  CHECK(find_gpus("A100").size() == 2);
  CHECK(find_gpus("A100 80GB").size() == 1);
  CHECK(find_gpus("RTX 6000").size() == 2);
  CHECK(name_of("RTX 6000", 48 * kGib) == "RTX6000-Ada");
  CHECK(name_of("RTX 6000", 24 * kGib) == "QuadroRTX6000");
  CHECK(find_gpus("Voodoo2").empty());
  CHECK(gpu_named("A100-80GB")->memory == 80 * kGib);
  CHECK(gpu_named("a100-80gb") == nullptr);
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
