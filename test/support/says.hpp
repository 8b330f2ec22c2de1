// Whether a text has a part: the same for std::string and for what reads as one.
//
// Pure. For messages, of which a test should name the part that matters.
#pragma once

#include <string_view>

namespace spillway::test {

inline bool says(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace spillway::test
