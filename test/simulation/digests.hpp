// What traces seeds are known to leave, as text that stands in the repository.
//
//   1 0123456789abcdef
//
// A line is a seed and the hash of its trace; one that begins with # says something to people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/error.hpp"

namespace spillway::simulation {

struct Digest {
  std::uint64_t seed = 0;
  std::uint64_t trace = 0;
};

std::string to_text(const Digest& digest);
/// kInvalid with the line and what is wrong with it; also for a text without any digest.
base::Result<std::vector<Digest>> parse_digests(std::string_view text);

}  // namespace spillway::simulation
