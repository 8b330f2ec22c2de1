// Which known word was probably meant. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace spillway::base {

/// How many letters have to be put in, taken out or replaced to make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The word of `known` with the smallest distance; of several the first. `known` is not empty.
std::string_view nearest_of(std::string_view word, std::span<const std::string_view> known);

}  // namespace spillway::base
