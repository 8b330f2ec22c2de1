#include "vk-provider/base/process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace spillway::base;

TEST_CASE("only a process that is gone is proven dead") {
  int names[2];
  REQUIRE(pipe(names) == 0);
  int hold[2];
  REQUIRE(pipe(hold) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string name = this_process("some_host");
    (void)!write(names[1], name.data(), name.size());
    close(names[1]);
    close(hold[1]);
    char byte;
    (void)!read(hold[0], &byte, 1);
    _exit(0);
  }
  close(names[1]);
  char buffer[512];
  const ssize_t size = read(names[0], buffer, sizeof(buffer));
  REQUIRE(size > 0);
  const std::string name(buffer, static_cast<size_t>(size));
  CHECK(name.starts_with("some_host_"));
  CHECK_FALSE(is_proven_dead(name));
  CHECK_FALSE(is_proven_dead(this_process("h")));

  close(hold[1]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(is_proven_dead(name));

  // The same pid with another start time is another process.
  const std::string self = this_process("h");
  CHECK(is_proven_dead(self + "0"));
  // Another boot, another pid namespace, or a name of somebody else: nothing is proven.
  CHECK_FALSE(is_proven_dead("some_host_00000000_1_2_3"));
  CHECK_FALSE(is_proven_dead("somebody"));
  CHECK_FALSE(is_proven_dead(""));
}
