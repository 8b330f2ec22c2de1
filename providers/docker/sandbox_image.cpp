#include "providers/docker/sandbox_image.hpp"

#include <cstdint>

#include "providers/docker/tar.hpp"

namespace spillway::providers::docker {
namespace {

constexpr std::uint8_t kPause[] = {
#include "providers/docker/sandbox_pause.inc"
};

constexpr std::uint8_t kRelay[] = {
#include "providers/docker/sandbox_relay.inc"
};

template <size_t Size>
void add_program(TarWriter& tar, std::string_view path, const std::uint8_t (&program)[Size]) {
  tar.add_file(path.substr(1), {reinterpret_cast<const char*>(program), Size}, 0555);
}

}  // namespace

std::string sandbox_image_name() { return std::string(kSandboxRepository) + ":" + std::string(kSandboxTag); }

std::string sandbox_image_tar() {
  TarWriter tar;
  add_program(tar, kSandboxProgram, kPause);
  add_program(tar, kSandboxRelay, kRelay);
  return tar.finish();
}

}  // namespace spillway::providers::docker
