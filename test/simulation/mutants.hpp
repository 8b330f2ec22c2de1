// Planted bugs, to see that the rules would find such: each stands between the daemon and a seam, in this program
// alone.
//
// They are in mutants_api.cpp and mutants_provider.cpp. Decorators are owned by whoever owned what they wrap.
#pragma once

#include <concepts>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "vk-provider/kube/kube_api.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::simulation {

struct Mutant {
  using Api = std::unique_ptr<kube::KubeApi>;
  using Provider = std::unique_ptr<provider::Provider>;
  Mutant(std::string_view n, std::string_view b, Api (*wrap)(Api)) : name(n), bug(b), api(wrap) {}
  Mutant(std::string_view n, std::string_view b, Provider (*wrap)(Provider)) : name(n), bug(b), provider(wrap) {}

  std::string_view name;
  std::string_view bug;  // what a daemon with it does
  Api (*api)(Api) = nullptr;
  Provider (*provider)(Provider) = nullptr;
};

/// A decorator of a seam around what stood there.
template <class Decorator, class Seam>
  requires std::derived_from<Decorator, Seam>
std::unique_ptr<Seam> wrapped(std::unique_ptr<Seam> inner) {
  return std::make_unique<Decorator>(std::move(inner));
}

const std::vector<Mutant>& mutants();
std::vector<Mutant> api_mutants();
std::vector<Mutant> provider_mutants();

}  // namespace spillway::simulation
