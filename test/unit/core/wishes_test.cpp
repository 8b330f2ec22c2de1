#include "vk-provider/core/wishes.hpp"

#include <catch2/catch.hpp>

#include "vk-provider/model/labels.hpp"

using namespace std::chrono_literals;

namespace spillway::core {
namespace {

using Annotations = std::map<std::string, std::string>;

model::GpuNeed gpus(int count, const char* resource = "nvidia.com/gpu") {
  model::GpuNeed need;
  need.count = count;
  if (count > 0) need.resource = resource;
  return need;
}

ReadWishes read(const Annotations& annotations, const model::GpuNeed& gpu = gpus(1)) {
  return read_wishes(annotations, gpu);
}

/// The one fault of an annotation that is given alone.
std::string fault(const std::string& key, const std::string& value, const model::GpuNeed& gpu = gpus(1)) {
  const ReadWishes out = read({{"spillway.dev/" + key, value}}, gpu);
  REQUIRE(out.faults.size() == 1);
  CHECK(out.faults[0].path == "metadata.annotations[spillway.dev/" + key + "]");
  return out.faults[0].why;
}

TEST_CASE("wishes: every annotation is read") {
  const ReadWishes out = read({{"spillway.dev/gpu-model", "H100, NVIDIA A100 80GB PCIe"},
                               {"spillway.dev/min-vram", "40Gi"},
                               {"spillway.dev/cuda-min", "12.4"},
                               {"spillway.dev/max-price", "2.50"},
                               {"spillway.dev/value-of-time", "0"},
                               {"spillway.dev/expected-runtime", "1h30m"},
                               {"spillway.dev/capacity-type", "spot,on-demand"},
                               {"spillway.dev/checkpoint-interval", "30m"},
                               {"spillway.dev/image-size", "8Gi"},
                               {"spillway.dev/regions", "eu-west, us-east"},
                               {"spillway.dev/countries", "de,US"},
                               {"spillway.dev/providers", "runpod"},
                               {"spillway.dev/tier", "critical"},
                               {"spillway.dev/trust", "community"}});
  CHECK(out.faults.empty());
  const model::Wishes& w = out.wishes;
  CHECK(w.gpu_models == std::vector<std::string>{"H100", "A100-80GB"});
  CHECK(w.min_vram == 40LL << 30);
  CHECK(w.cuda_min == 1204);
  CHECK(w.max_price == base::Money::from_micros(2'500'000));
  CHECK(w.value_of_time == base::Money());
  CHECK(w.expected_runtime == 90min);
  CHECK(w.capacity_types == std::vector{model::CapacityType::kSpot, model::CapacityType::kOnDemand});
  CHECK(w.checkpoint_interval == 30min);
  CHECK(w.image_size == 8LL << 30);
  CHECK(w.regions == std::vector<std::string>{"eu-west", "us-east"});
  CHECK(w.countries == std::vector<std::string>{"DE", "US"});
  CHECK(w.providers == std::vector{base::ProviderName("runpod")});
  CHECK(w.tier == model::Tier::kCritical);
  CHECK(w.trust == model::Trust::kCommunity);
}

TEST_CASE("wishes: a pod without annotations wishes nothing") {
  const ReadWishes out = read({});
  CHECK(out.faults.empty());
  CHECK(out.wishes == model::Wishes());
}

TEST_CASE("wishes: a name that means several models means all of them") {
  CHECK(read({{"spillway.dev/gpu-model", "A100"}}).wishes.gpu_models ==
        std::vector<std::string>{"A100-80GB", "A100-40GB"});
  const Annotations narrowed{{"spillway.dev/gpu-model", "A100"}, {"spillway.dev/min-vram", "80Gi"}};
  CHECK(read(narrowed).wishes.gpu_models == std::vector<std::string>{"A100-80GB"});
}

TEST_CASE("wishes: an unknown key is refused with the nearest valid one, those of others are left alone") {
  CHECK(fault("gpu-modell", "H100") == "unknown key; did you mean spillway.dev/gpu-model?");
  CHECK(fault("maxprice", "1") == "unknown key; did you mean spillway.dev/max-price?");
  CHECK(fault("country", "DE") == "unknown key; did you mean spillway.dev/countries?");
  CHECK(read({{"fake.spillway.dev/boot", "x"}, {"example.com/gpu-model", "x"}}).faults.empty());
}

TEST_CASE("wishes: each bad value says what is allowed") {
  CHECK(fault("gpu-model", "H1000") == "found 'H1000'; allowed: known GPU models; did you mean H100?");
  CHECK(fault("gpu-model", "H100,") == "found ''; allowed: words with commas between, none of them empty");
  CHECK(fault("min-vram", "80") == "found '80'; allowed: the memory of one GPU, such as 24Gi");
  CHECK(fault("min-vram", "1e30") == "found '1e30'; allowed: the memory of one GPU, such as 24Gi");
  CHECK(fault("min-vram", "-24Gi") == "found '-24Gi'; allowed: the memory of one GPU, such as 24Gi");
  for (const char* bad : {"12.", "twelve", "0", "12.4.1", "-1", "1e30"}) {
    CHECK(fault("cuda-min", bad) == "found '" + std::string(bad) + "'; allowed: a version of CUDA, such as 12.4");
  }
  for (const char* bad : {"0", "-1", "1e30", "nan", "$2", "100000.01", ""}) {
    CHECK(fault("max-price", bad) ==
          "found '" + std::string(bad) + "'; allowed: dollars per hour above 0 and at most 100000, such as 2.50");
  }
  CHECK(fault("value-of-time", "-1") ==
        "found '-1'; allowed: dollars per hour from 0 and at most 100000, such as 2.50");
  CHECK(fault("expected-runtime", "0s") == "found '0s'; allowed: a length of time above 0, such as 90m or 1h30m");
  CHECK(fault("expected-runtime", "1e30h") == "found '1e30h'; allowed: a length of time above 0, such as 90m or 1h30m");
  CHECK(fault("checkpoint-interval", "often") ==
        "found 'often'; allowed: a length of time such as 30m; 0s if nothing is ever lost");
  CHECK(fault("image-size", "1e30") == "found '1e30'; allowed: a size such as 8Gi, at most 16Ti");
  CHECK(fault("capacity-type", "spott") == "found 'spott'; allowed: on-demand, spot, reserved");
  CHECK(fault("countries", "Germany") ==
        "found 'Germany'; allowed: codes of ISO 3166 with two letters, such as DE or US");
  CHECK(fault("countries", "uk") ==
        "found 'uk'; allowed: codes of ISO 3166 with two letters; that of the United Kingdom is GB");
  CHECK(fault("regions", "") == "found ''; allowed: words with commas between, none of them empty");
  CHECK(fault("tier", "gold") == "found 'gold'; allowed: one of batch, standard, interactive, critical");
  CHECK(fault("trust", "any") == "found 'any'; allowed: one of datacenter, community");
}

TEST_CASE("wishes: what contradicts itself is refused") {
  const std::string no_gpu =
      "contradicts the containers, which ask for no GPU; allowed: only with nvidia.com/gpu or amd.com/gpu in their "
      "resources";
  CHECK(fault("gpu-model", "H100", gpus(0)) == no_gpu);
  CHECK(fault("min-vram", "24Gi", gpus(0)) == no_gpu);
  CHECK(fault("cuda-min", "12.4", gpus(0)) == no_gpu);
  CHECK(fault("cuda-min", "12.4", gpus(1, "amd.com/gpu")) == "contradicts amd.com/gpu; CUDA runs on NVIDIA only");
  CHECK(fault("gpu-model", "MI300X") ==
        "contradicts nvidia.com/gpu, which the containers ask for; allowed: models of that vendor");
  const ReadWishes small = read({{"spillway.dev/gpu-model", "T4"}, {"spillway.dev/min-vram", "24Gi"}});
  REQUIRE(small.faults.size() == 1);
  CHECK(small.faults[0].path == "metadata.annotations[spillway.dev/min-vram]");
  CHECK(small.faults[0].why == "found '24Gi', more than any GPU of spillway.dev/gpu-model has");
}

TEST_CASE("wishes: what is written for the drain, or by it, is no unknown key") {
  CHECK(read({{"spillway.dev/do-not-drain", "true"}, {"spillway.dev/draining", "6d4b75cb6d"}}).faults.empty());
}

TEST_CASE("wishes: whatever stands there, nothing crashes and nothing is taken half") {
  const std::vector<std::string> odd{
      "",    " ",     ",", ",,", "\n",   std::string(5000, '9'),  "1e308",   "-0", "+1", "0x10", "NaN",
      "inf", "12.4.", ".", "h",  "1h1h", "99999999999999999999h", "\xff\xfe"};
  for (const std::string_view key : user_annotations()) {
    for (const std::string& value : odd) {
      const ReadWishes out = read({{std::string(key), value}});
      for (const Fault& f : out.faults) CHECK_FALSE(f.why.empty());
    }
  }
}

}  // namespace
}  // namespace spillway::core
