// What a command does in a container of the toy, in which nothing runs.
//
// Pure. It follows from the words alone:
//   echo WORDS    writes them on one line       exit N         ends with this code
//   cat           writes what it reads          true, false    end with 0 and 1
// Anything else writes its words, one on a line. `sh -c TEXT` is the command that TEXT spells, without quotes; a last
// word `>&2` sends what it writes to standard error.
#pragma once

#include <string>
#include <vector>

namespace spillway::providers::fake {

struct CommandResult {
  CommandResult() = default;
  std::string output;
  std::string errors;
  int exit_code = 0;
  bool copies_input = false;
};

CommandResult run_command(std::vector<std::string> words);

}  // namespace spillway::providers::fake
