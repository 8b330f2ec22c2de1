// How sub-commands show what they found: a table for people, JSON for programs.
//
// Pure; main's thread. Data goes to stdout, everything else to stderr.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::daemon {

enum class Output : std::uint8_t { kTable, kJson };

// Of every sub-command.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitRefused = 3;

/// Control characters become blanks: the text of a cloud must not move the cursor.
std::string printable(std::string text);

class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Columns as wide as their widest cell, two blanks between them, none at the end. Cells are made
  /// printable.
  std::string to_text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace spillway::daemon
