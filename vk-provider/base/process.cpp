#include "vk-provider/base/process.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>

namespace spillway::base {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string boot_id() { return first_line("/proc/sys/kernel/random/boot_id").substr(0, 8); }

/// `pid:[4026531836]` -> `4026531836`
std::string pid_namespace() {
  char target[64] = {};
  if (readlink("/proc/self/ns/pid", target, sizeof(target) - 1) <= 0) return {};
  std::string digits;
  for (const char c : std::string_view(target)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  return digits;
}

/// Field 22 of /proc/<pid>/stat, in clock ticks since boot. The command's name may hold spaces and brackets.
std::string start_time(long pid) {
  const std::string stat = first_line(fmt::format("/proc/{}/stat", pid));
  const size_t close = stat.rfind(')');
  if (close == std::string::npos) return {};
  std::istringstream rest(stat.substr(close + 1));
  std::string word;
  constexpr int kStartAfterName = 20;
  for (int i = 0; i < kStartAfterName; ++i) rest >> word;
  return word;
}

std::vector<std::string_view> last_parts(std::string_view name, size_t count) {
  std::vector<std::string_view> parts;
  while (parts.size() < count) {
    const size_t at = name.rfind('_');
    if (at == std::string_view::npos) return {};
    parts.insert(parts.begin(), name.substr(at + 1));
    name = name.substr(0, at);
  }
  return parts;
}

}  // namespace

std::string this_process(const std::string& host) {
  const long pid = getpid();
  return fmt::format("{}_{}_{}_{}_{}", host, boot_id(), pid_namespace(), pid, start_time(pid));
}

bool is_proven_dead(std::string_view name) {
  const auto parts = last_parts(name, 4);
  if (parts.empty() || parts[0].empty() || parts[0] != boot_id() || parts[1].empty() || parts[1] != pid_namespace())
    return false;
  long pid = 0;
  const auto [end, error] = std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), pid);
  if (error != std::errc{} || end != parts[2].data() + parts[2].size() || pid <= 1) return false;
  if (kill(static_cast<pid_t>(pid), 0) != 0) return errno == ESRCH;
  const std::string started = start_time(pid);
  return !started.empty() && started != parts[3];
}

}  // namespace spillway::base
