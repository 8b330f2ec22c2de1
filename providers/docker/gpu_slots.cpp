#include "providers/docker/gpu_slots.hpp"

#include <charconv>

namespace spillway::providers::docker {

std::optional<std::vector<int>> choose_gpus(int total, const std::set<int>& held, int wanted) {
  std::vector<int> chosen;
  for (int index = 0; index < total && static_cast<int>(chosen.size()) < wanted; ++index) {
    if (!held.contains(index)) chosen.push_back(index);
  }
  if (static_cast<int>(chosen.size()) < wanted) return std::nullopt;
  return chosen;
}

std::string to_gpu_label(const std::vector<int>& gpus) {
  std::string text;
  for (const int gpu : gpus) {
    if (!text.empty()) text += ',';
    text += std::to_string(gpu);
  }
  return text;
}

std::optional<std::vector<int>> from_gpu_label(std::string_view text) {
  std::vector<int> gpus;
  while (!text.empty()) {
    int index = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error != std::errc{} || index < 0) return std::nullopt;
    gpus.push_back(index);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return gpus;
}

}  // namespace spillway::providers::docker
