// SHA-256 and base64.
//
// Pure. Not for passwords.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spillway::net {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);

/// The standard alphabet, with padding.
std::string base64_encode(std::string_view bytes);
/// Strict: the standard alphabet, padded, no white space, no stray bits at the end. Empty on anything else.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace spillway::net
