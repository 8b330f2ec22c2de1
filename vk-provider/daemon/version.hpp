// What this program is called and which version of it this is.
#pragma once

#include <string_view>

namespace spillway::daemon {

/// The same as in project() of CMakeLists.txt; a test compares them.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace spillway::daemon
