#include "providers/docker/tar.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace spillway::providers::docker;

namespace {

size_t octal(const std::string& text) { return std::stoul(text, nullptr, 8); }

void check_sum(const std::string& header) {
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  CHECK(octal(header.substr(148, 6)) == sum);
}

}  // namespace

TEST_CASE("tar: a folder and a file, with mode and owner") {
  TarWriter writer;
  writer.add_directory("volumes/cfg", 02755, {0, 2000});
  writer.add_file("volumes/cfg/a", std::string("\0\xff", 2), 0440, {1000, 2000});
  const std::string tar = writer.finish();
  REQUIRE(tar.size() == 512 + 1024 + 1024);
  CHECK(std::string(tar.c_str()) == "volumes/cfg/");
  CHECK(tar[156] == '5');
  CHECK(tar.substr(100, 7) == "0002755");
  CHECK(octal(tar.substr(116, 7)) == 2000);
  check_sum(tar);
  const std::string file = tar.substr(512);
  CHECK(std::string(file.c_str()) == "volumes/cfg/a");
  CHECK(file[156] == '0');
  CHECK(octal(file.substr(108, 7)) == 1000);
  CHECK(octal(file.substr(116, 7)) == 2000);
  CHECK(octal(file.substr(124, 11)) == 2);
  CHECK(file.substr(512, 3) == std::string("\0\xff\0", 3));
  check_sum(file);
  CHECK(tar.substr(tar.size() - 1024) == std::string(1024, '\0'));
  CHECK(first_file(tar) == std::string("\0\xff", 2));
  CHECK(writer.finish() == std::string(1024, '\0'));
}

TEST_CASE("tar: what ustar cannot hold goes before it as pax") {
  const std::string path = "volumes/cfg/" + std::string(150, 'x');
  TarWriter writer;
  writer.add_file(path, "content", 0644, {1000660001, 1000660000});
  const std::string tar = writer.finish();
  CHECK(tar[156] == 'x');
  check_sum(tar);
  const std::string records = tar.substr(512, octal(tar.substr(124, 11)));
  CHECK(records == "172 path=" + path + "\n" + "18 uid=1000660001\n" + "18 gid=1000660000\n");
  check_sum(tar.substr(1024));
  CHECK(octal(tar.substr(1024 + 116, 7)) == 0);
  CHECK(first_file(tar) == "content");
}

TEST_CASE("tar: the length of a pax record counts its own digits") {
  for (const size_t size : {101UL, 988UL, 989UL, 990UL, 991UL, 992UL, 993UL}) {
    TarWriter writer;
    writer.add_file(std::string(size, 'p'), "", 0644);
    const std::string tar = writer.finish();
    const size_t length = octal(tar.substr(124, 11));
    INFO(size);
    CHECK(tar.substr(512, 512).starts_with(std::to_string(length) + " path=p"));
    CHECK(tar[512 + length - 1] == '\n');
    CHECK(length == std::to_string(length).size() + 6 + size + 1);
  }
}

TEST_CASE("tar: what is no tar of a file has none") {
  TarWriter folder;
  folder.add_directory("d", 0755);
  TarWriter file;
  file.add_file("f", std::string(600, 'x'), 0644);
  const std::string whole = file.finish();
  std::string bad_size = whole;
  bad_size.replace(124, 1, "9");
  for (const std::string& text :
       {std::string(), std::string("x"), folder.finish(), whole.substr(0, 512), whole.substr(0, 700), bad_size}) {
    CHECK_FALSE(first_file(text));
  }
  TarWriter empty;
  empty.add_file("f", "", 0644);
  CHECK(first_file(empty.finish()) == "");
}
