#include "vk-provider/api/remote_status_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

using namespace spillway;
using api::CommandEnd;
using api::SizeDecoder;
using base::ErrorKind;
using nlohmann::json;

namespace {

CommandEnd ended(int code, std::string failure = {}) {
  CommandEnd end;
  end.exit_code = code;
  end.failure = std::move(failure);
  return end;
}

std::vector<std::pair<int, int>> sizes_of(SizeDecoder& decoder, std::string_view bytes) {
  std::vector<std::pair<int, int>> out;
  const auto sizes = decoder.feed(bytes);
  REQUIRE(sizes);
  for (const auto& size : *sizes) out.emplace_back(size.columns, size.rows);
  return out;
}

}  // namespace

TEST_CASE("the end of a command, as a client reads it") {
  CHECK(json::parse(api::encode_end(ended(0), false)) == json::parse(R"({"metadata": {}, "status": "Success"})"));
  CHECK(json::parse(api::encode_end(ended(7), false)) == json::parse(R"({
    "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
    "message": "command terminated with non-zero exit code: exit code 7",
    "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}})"));
  CHECK(json::parse(api::encode_end(ended(0, "no such container"), false)) == json::parse(R"({
    "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
    "message": "Internal error occurred: error executing command in container: no such container"})"));
  // A client takes the code for one byte.
  CHECK(json::parse(api::encode_end(ended(256), false))["reason"] == "InternalError");
  CHECK(json::parse(api::encode_end(ended(-1), false))["reason"] == "InternalError");
  CHECK(json::accept(api::encode_end(ended(0, "\xff"), false)));
}

TEST_CASE("the end of a command, as a client of old reads it") {
  CHECK(api::encode_end(ended(0), true).empty());
  CHECK(api::encode_end(ended(7), true) == "command terminated with non-zero exit code: exit code 7");
  CHECK(api::encode_end(ended(0, "why"), true) == "error executing command in container: why");
}

TEST_CASE("sizes of a terminal come one after the other, in whatever pieces") {
  using Sizes = std::vector<std::pair<int, int>>;
  SizeDecoder decoder;
  CHECK(sizes_of(decoder, R"({"Width":80,"Height":24})") == Sizes{{80, 24}});
  CHECK(sizes_of(decoder, R"({"Width":1,"Height":2}{"Height":4,"Width":3})"
                          "\n") == Sizes{{1, 2}, {3, 4}});
  CHECK(sizes_of(decoder, R"({"Wid)").empty());
  CHECK(sizes_of(decoder, R"(th":5,"Height":6)").empty());
  CHECK(sizes_of(decoder, "}") == Sizes{{5, 6}});
  CHECK(sizes_of(decoder, R"({"Width":65535,"Height":0})") == Sizes{{65535, 0}});
}

TEST_CASE("what is no size of a terminal is refused") {
  for (const std::string bytes : {"}", "[}", R"({"Width":80})", R"({"Width":-1,"Height":1})",
                                  R"({"Width":65536,"Height":1})", R"({"Width":"80","Height":1})"}) {
    INFO(bytes);
    CHECK(SizeDecoder().feed(bytes).error().kind == ErrorKind::kInvalid);
  }
  CHECK(SizeDecoder().feed(std::string(1025, '{')).error().kind == ErrorKind::kInvalid);
}
