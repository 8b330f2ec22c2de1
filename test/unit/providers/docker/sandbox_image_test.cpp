#include "providers/docker/sandbox_image.hpp"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spillway::providers::docker;

namespace {

size_t octal(const std::string& text) { return std::stoul(text, nullptr, 8); }

std::string program() {
  const std::string tar = sandbox_image_tar();
  return tar.substr(512, octal(tar.substr(124, 11)));
}

}  // namespace

TEST_CASE("sandbox image: a tar with one program that all may execute") {
  const std::string tar = sandbox_image_tar();
  REQUIRE(tar.size() % 512 == 0);
  CHECK(std::string(tar.c_str()) == "pause");
  CHECK(tar.substr(100, 7) == "0000555");
  CHECK(tar.substr(257, 5) == "ustar");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[i]);
  CHECK(octal(tar.substr(148, 6)) == sum);
  CHECK(tar.substr(tar.size() - 1024) == std::string(1024, '\0'));
  CHECK(program().size() < 1024);
  CHECK(program().substr(1, 3) == "ELF");
}

TEST_CASE("sandbox image: the program waits, takes SIGCHLD without ending, and ends with 0 on SIGTERM") {
  const int memory = ::memfd_create("pause", 0);
  REQUIRE(memory >= 0);
  const std::string bytes = program();
  REQUIRE(::write(memory, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(memory);
  // Blocked across fork and exec, so that a signal which comes before the program has begun waits for it.
  sigset_t signals;
  sigset_t before;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(path.c_str(), "pause", static_cast<char*>(nullptr));
    ::_exit(99);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(child > 0);
  ::kill(child, SIGCHLD);
  ::kill(child, SIGTERM);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  ::close(memory);
}
