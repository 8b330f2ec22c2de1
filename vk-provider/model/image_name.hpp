// Whether a text can be the name of a container image.
//
// Pure. The grammar is that of github.com/distribution/reference: [host[:port]/]path[:tag][@digest], the path in lower
// case. What it refuses no registry client can ask for, so that nothing has to be bought to find out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spillway::model {

/// What is wrong, for people; empty if nothing is.
std::optional<std::string> image_name_fault(std::string_view image);

}  // namespace spillway::model
