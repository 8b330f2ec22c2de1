#include "providers/fake/commands.hpp"

#include <catch2/catch.hpp>

using spillway::providers::fake::CommandResult;
using spillway::providers::fake::run_command;

namespace {

std::string told(const CommandResult& result) {
  return result.output + "|" + result.errors + "|" + std::to_string(result.exit_code) +
         (result.copies_input ? "|copies" : "");
}

}  // namespace

TEST_CASE("fake commands: what follows from the words") {
  struct Case {
    std::vector<std::string> words;
    std::string told;
  };
  const std::vector<Case> cases = {
      {{"echo", "two", "words"}, "two words\n||0"},
      {{"echo"}, "\n||0"},
      {{"true"}, "||0"},
      {{"false"}, "||1"},
      {{"exit", "42"}, "||42"},
      {{"exit"}, "||0"},
      {{"exit", "256"}, "||2"},
      {{"exit", "-1"}, "||2"},
      {{"exit", "1x"}, "||2"},
      {{"cat"}, "||0|copies"},
      {{"cat", "/etc/hosts"}, "cat\n/etc/hosts\n||0"},
      {{"nvidia-smi", "-L"}, "nvidia-smi\n-L\n||0"},
      {{"sh", "-c", "exit 3"}, "||3"},
      {{"/bin/bash", "-c", " echo  a\tb \n"}, "a b\n||0"},
      {{"sh", "-c", "echo apart >&2"}, "|apart\n|0"},
      {{"sh", "-c", ""}, "||0"},
      {{"sh", "-c"}, "sh\n-c\n||0"},
      {{"sh"}, "sh\n||0"},
      {{}, "||0"},
  };
  for (const Case& c : cases) {
    INFO(c.told);
    CHECK(told(run_command(c.words)) == c.told);
  }
}
