// What stands in a document between two marks, to be compared with what the code says.
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::test {

/// The lines of the document between `<!-- NAME -->` and `<!-- end of NAME -->`; none if a mark is missing.
inline std::vector<std::string> part_of_document(std::string_view path, const std::string& name) {
  std::ifstream file{std::string(path)};
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "<!-- end of " + name + " -->") return lines;
    if (inside) lines.push_back(line);
    if (line == "<!-- " + name + " -->") inside = true;
  }
  return {};
}

}  // namespace spillway::test
