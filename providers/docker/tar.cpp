#include "providers/docker/tar.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <utility>

namespace spillway::providers::docker {
namespace {

// The offsets are those of POSIX pax, "ustar".
constexpr size_t kBlock = 512;
constexpr size_t kLongestPath = 100;
constexpr std::int64_t kLargestId = 07777777;
constexpr size_t kSizeOffset = 124;
constexpr size_t kSizeDigits = 11;
constexpr size_t kTypeOffset = 156;

void put_octal(std::string& header, size_t offset, int digits, std::uint64_t value) {
  std::array<char, 24> text{};
  const int size = std::snprintf(text.data(), text.size(), "%0*llo", digits, static_cast<unsigned long long>(value));
  header.replace(offset, static_cast<size_t>(size), text.data(), static_cast<size_t>(size));
}

std::string header_of(std::string_view path, char type, size_t size, int mode, TarOwner owner) {
  std::string header(kBlock, '\0');
  header.replace(0, path.size(), path);
  put_octal(header, 100, 7, static_cast<std::uint64_t>(mode));
  put_octal(header, 108, 7, static_cast<std::uint64_t>(owner.user));
  put_octal(header, 116, 7, static_cast<std::uint64_t>(owner.group));
  put_octal(header, kSizeOffset, kSizeDigits, size);
  put_octal(header, 136, 11, 0);  // mtime
  header.replace(148, 8, "        ");
  header[kTypeOffset] = type;
  header.replace(257, 8, std::string_view("ustar\00000", 8));
  const std::uint64_t sum = std::accumulate(header.begin(), header.end(), std::uint64_t{0},
                                            [](auto total, char c) { return total + static_cast<unsigned char>(c); });
  put_octal(header, 148, 6, sum);
  header[154] = '\0';
  return header;
}

/// "<length> key=value\n", where the length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest;
  while (length != rest + std::to_string(length).size()) length = rest + std::to_string(length).size();
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

std::optional<size_t> size_of(std::string_view header) {
  size_t size = 0;
  for (const char digit : header.substr(kSizeOffset, kSizeDigits)) {
    if (digit == ' ' || digit == '\0') continue;
    if (digit < '0' || digit > '7') return std::nullopt;
    size = size * 8 + static_cast<size_t>(digit - '0');
  }
  return size;
}

}  // namespace

void TarWriter::append_padded(std::string_view content) {
  tar_.append(content);
  tar_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

void TarWriter::add(std::string_view path, char type, size_t size, int mode, TarOwner owner) {
  std::string extra;
  if (path.size() > kLongestPath) extra += pax_record("path", path);
  if (owner.user > kLargestId) extra += pax_record("uid", std::to_string(std::exchange(owner.user, 0)));
  if (owner.group > kLargestId) extra += pax_record("gid", std::to_string(std::exchange(owner.group, 0)));
  if (!extra.empty()) {
    tar_ += header_of("pax", 'x', extra.size(), 0644, TarOwner());
    append_padded(extra);
  }
  tar_ += header_of(path.substr(0, kLongestPath), type, size, mode, owner);
}

void TarWriter::add_directory(std::string_view path, int mode, TarOwner owner) {
  add(std::string(path) + "/", '5', 0, mode, owner);
}

void TarWriter::add_file(std::string_view path, std::string_view content, int mode, TarOwner owner) {
  add(path, '0', content.size(), mode, owner);
  append_padded(content);
}

std::string TarWriter::finish() {
  tar_.append(2 * kBlock, '\0');
  return std::exchange(tar_, std::string());
}

std::optional<std::string> first_file(std::string_view tar) {
  while (tar.size() >= kBlock && tar.front() != '\0') {
    const auto size = size_of(tar.substr(0, kBlock));
    const char type = tar[kTypeOffset];
    tar.remove_prefix(kBlock);
    if (!size || *size > tar.size()) return std::nullopt;
    if (type == '0' || type == '\0') return std::string(tar.substr(0, *size));
    const size_t padded = (*size + kBlock - 1) / kBlock * kBlock;
    tar.remove_prefix(std::min(padded, tar.size()));
  }
  return std::nullopt;
}

}  // namespace spillway::providers::docker
