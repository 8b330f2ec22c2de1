// What is wrong with a field of a pod. A value.
#pragma once

#include <string>

namespace spillway::core {

/// No provider can mend it.
struct Fault {
  std::string path;
  std::string why;  // for people, with the remedy
};

}  // namespace spillway::core
