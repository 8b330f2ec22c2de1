#include "providers/docker/sandbox_image.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <numeric>

namespace spillway::providers::docker {
namespace {

constexpr std::uint8_t kPause[] = {
#include "providers/docker/sandbox_pause.inc"
};

constexpr std::uint8_t kRelay[] = {
#include "providers/docker/sandbox_relay.inc"
};

constexpr size_t kBlock = 512;

void put_text(std::string& header, size_t offset, std::string_view text) { header.replace(offset, text.size(), text); }

void put_octal(std::string& header, size_t offset, int digits, unsigned long value) {
  std::array<char, 16> text{};
  const int size = std::snprintf(text.data(), text.size(), "%0*lo", digits, value);
  put_text(header, offset, {text.data(), static_cast<size_t>(size)});
}

/// A ustar header of a regular file of root that all may execute; the offsets are those of POSIX pax, "ustar".
std::string tar_header(std::string_view name, size_t size) {
  std::string header(kBlock, '\0');
  put_text(header, 0, name);
  put_octal(header, 100, 7, 0555);  // mode
  put_octal(header, 108, 7, 0);     // uid
  put_octal(header, 116, 7, 0);     // gid
  put_octal(header, 124, 11, size);
  put_octal(header, 136, 11, 0);  // mtime: the same bytes on every run
  put_text(header, 148, "        ");
  put_text(header, 156, "0");
  put_text(header, 257, std::string_view("ustar\00000", 8));
  const unsigned long sum = std::accumulate(header.begin(), header.end(), 0UL, [](unsigned long total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  put_octal(header, 148, 6, sum);
  header[154] = '\0';
  return header;
}

template <size_t Size>
void append_program(std::string& tar, std::string_view path, const std::uint8_t (&program)[Size]) {
  tar += tar_header(path.substr(1), Size);
  tar.append(reinterpret_cast<const char*>(program), Size);
  tar.append((kBlock - tar.size() % kBlock) % kBlock, '\0');
}

}  // namespace

std::string sandbox_image_name() { return std::string(kSandboxRepository) + ":" + std::string(kSandboxTag); }

std::string sandbox_image_tar() {
  std::string tar;
  append_program(tar, kSandboxProgram, kPause);
  append_program(tar, kSandboxRelay, kRelay);
  tar.append(2 * kBlock, '\0');
  return tar;
}

}  // namespace spillway::providers::docker
