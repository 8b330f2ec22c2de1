// Planted bugs, to see that the rules would find such: each stands between the daemon and a seam, in this program
// alone.
//
// They are in mutants_api.cpp and mutants_provider.cpp. Decorators are owned by whoever owned what they wrap.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "vk-provider/kube/kube_api.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::simulation {

struct Mutant {
  std::string_view name;
  std::string_view bug;  // what a daemon with it does
  std::unique_ptr<kube::KubeApi> (*api)(std::unique_ptr<kube::KubeApi>) = nullptr;
  std::unique_ptr<provider::Provider> (*provider)(std::unique_ptr<provider::Provider>) = nullptr;
};

const std::vector<Mutant>& mutants();
std::vector<Mutant> api_mutants();
std::vector<Mutant> provider_mutants();

}  // namespace spillway::simulation
