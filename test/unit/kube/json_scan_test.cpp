#include "vk-provider/kube/json_scan.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include <nlohmann/json.hpp>
#include "vk-provider/base/random.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::kube {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

std::pair<Members, bool> members_of(std::string_view text) {
  std::pair<Members, bool> out;
  JsonObject object(text);
  while (object.next()) out.first.emplace_back(object.key(), object.value());
  out.second = !object.failed();
  return out;
}

std::pair<std::vector<std::string>, bool> elements_of(std::string_view text) {
  std::pair<std::vector<std::string>, bool> out;
  JsonArray array(text);
  while (array.next()) out.first.emplace_back(array.value());
  out.second = !array.failed();
  return out;
}

TEST_CASE("members of an object are cut out as they stand") {
  const auto [members, ok] = members_of(
      " { \"a\" : 1 , \"b\":\"x\\\"}]\" ,\"c\":{\"d\":[1,{\"e\":\"}\"}]}, \"f\":[],\n"
      "\"\":null,\"g\":-1.5e3,\"h\":true}");
  CHECK(ok);
  CHECK(members == Members{{"a", "1"},
                           {"b", "\"x\\\"}]\""},
                           {"c", "{\"d\":[1,{\"e\":\"}\"}]}"},
                           {"f", "[]"},
                           {"", "null"},
                           {"g", "-1.5e3"},
                           {"h", "true"}});
}

TEST_CASE("elements of an array are cut out as they stand") {
  const auto [elements, ok] = elements_of("[ {\"a\":\"]\"} , [1,2],3,\"\\\\\",\"\\\\\\\"\" ]");
  CHECK(ok);
  CHECK(elements == std::vector<std::string>{"{\"a\":\"]\"}", "[1,2]", "3", "\"\\\\\"", "\"\\\\\\\"\""});
  CHECK(elements_of("[]") == std::pair(std::vector<std::string>{}, true));
}

TEST_CASE("a member of a member is found without a look at what follows it") {
  const std::string text =
      R"({"kind":"Pod","metadata":{"a":{"b":1},"uid":"u","managedFields":[{"uid":"no"}]},"uid":"other"})";
  CHECK(json_member(text, "metadata", "uid") == "\"u\"");
  CHECK(json_member(text, "metadata", "a") == R"({"b":1})");
  CHECK(json_member(text, "metadata", "b").empty());
  CHECK(json_member(text, "kind", "uid").empty());
  CHECK(json_member(text, "spec", "uid").empty());
  CHECK(json_member(R"({"metadata":{"uid":"u","managedFields":[{)", "metadata", "uid") == "\"u\"");
  CHECK(json_member(R"({"metadata":{"uid":"u)", "metadata", "uid").empty());
}

TEST_CASE("what is no object has no members, and that is no failure") {
  for (const char* text : {"", "null", "1", "\"a\"", "[]", "  "}) {
    CHECK(members_of(text) == std::pair(Members{}, true));
  }
  for (const char* text : {"", "null", "1", "\"a\"", "{}", "  "}) {
    CHECK(elements_of(text) == std::pair(std::vector<std::string>{}, true));
  }
}

TEST_CASE("a text that breaks off fails, after what was whole") {
  const std::string text = R"({"a":1,"b":{"c":["x","y"]},"d":"e"})";
  for (size_t size = 1; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(members_of(text.substr(0, size)).second);
  }
  for (const char* bad : {"{\"a\"}", "{\"a\":}", "{\"a\":1 \"b\":2}", "{,}", "{a:1}", "{\"a\":1,,}", "{\"a\":1]"}) {
    CAPTURE(bad);
    CHECK_FALSE(members_of(bad).second);
  }
  for (const char* bad : {"[1 2]", "[,]", "[1,", "[", "[\"a]", "[{]"}) {
    CAPTURE(bad);
    CHECK_FALSE(elements_of(bad).second);
  }
}

TEST_CASE("depth costs no stack") {
  const std::string deep = std::string(2'000'000, '[') + std::string(2'000'000, ']');
  CHECK(elements_of(deep).second);
  CHECK_FALSE(elements_of(deep.substr(0, 3'000'000)).second);
}

TEST_CASE("scalars are read by type, and mistyped ones are not read") {
  CHECK(json_string("\"\"") == "");
  CHECK(json_string("\"a\\u00e4\\n\\\"\\/\\ud83d\\ude00\"") == "a\xC3\xA4\n\"/\xF0\x9F\x98\x80");
  CHECK(json_string("\"gr\xC3\xBC\xC3\x9F\"") == "gr\xC3\xBC\xC3\x9F");
  for (const char* bad : {"", "1", "null", "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud83d\"", "\"\\ude00\"",
                          "\"\\ud83d\\u0041\"", "\"\\u+123\""}) {
    CAPTURE(bad);
    CHECK(json_string(bad) == std::nullopt);
  }
  CHECK(json_int("-7") == -7);
  CHECK(json_int("9223372036854775807") == 9223372036854775807);
  for (const char* bad : {"", "1.0", "\"1\"", "null", "9223372036854775808", "1 "})
    CHECK(json_int(bad) == std::nullopt);
  CHECK(json_member(R"({"a":{"b":1},"b":2})", "b") == "2");
  CHECK(json_member(R"({"a":1})", "b").empty());
}

/// Walks all of a text as a decoder would.
void walk(std::string_view value, int depth) {
  if (depth > 50) return;
  JsonObject object(value);
  while (object.next()) {
    (void)json_unescape(object.key());
    walk(object.value(), depth + 1);
  }
  JsonArray array(value);
  while (array.next()) walk(array.value(), depth + 1);
  (void)json_string(value);
  (void)json_int(value);
}

TEST_CASE("mutated text never breaks the scanner, and what nlohmann accepts it cuts the same") {
  base::SeededRandom random(11);
  const std::string seed =
      R"({"a":{"b":[1,2.5,-3e4,"x\"y\\",{"c":null,"d":true}],"\u00e4":"\ud83d\ude00"},"e":[],"f":{},"g":"} ] , :"})";
  constexpr std::string_view kLetters = "{}[]\",:\\u0aD n1-.et";
  for (int i = 0; i < 60000; ++i) {
    std::string text = seed;
    for (auto n = 1 + random.next() % 3; n > 0; --n) {
      const size_t at = random.next() % text.size();
      switch (random.next() % 3) {
        case 0: text[at] = kLetters[random.next() % kLetters.size()]; break;
        case 1: text.erase(at, 1 + random.next() % 4); break;
        default: text.insert(at, 1, kLetters[random.next() % kLetters.size()]);
      }
      if (text.empty()) text = "{";
    }
    if (random.next() % 4 == 0) text.resize(random.next() % text.size());
    walk(text, 0);
    const auto dom = nlohmann::json::parse(text, nullptr, false);
    if (!dom.is_object()) continue;
    CAPTURE(text);
    const auto [members, ok] = members_of(text);
    REQUIRE(ok);
    nlohmann::json again = nlohmann::json::object();
    for (const auto& [key, value] : members) again[*json_unescape(key)] = nlohmann::json::parse(value);
    REQUIRE(again == dom);
  }
}

TEST_CASE("what is written is valid JSON, whatever the bytes") {
  base::SeededRandom random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    for (auto n = random.next() % 12; n > 0; --n) bytes += static_cast<char>(random.next() & 0xFFU);
    JsonWriter out;
    out.open_object().field("k", bytes).field_number("n", -5).field_bool("b", true).field_null("z");
    out.key("l").open_array().string("a").open_object().close_object().number(1).close_array().close_object();
    const auto dom = nlohmann::json::parse(out.text(), nullptr, false);
    REQUIRE(dom.is_object());
    if (dom["k"].get<std::string>().find("\xEF\xBF\xBD") == std::string::npos) {
      REQUIRE(dom["k"].get<std::string>() == bytes);
      REQUIRE(json_string(json_member(out.text(), "k")) == bytes);
    }
  }
  JsonWriter text;
  text.string(std::string("t\"\\\n\r\t\x01\0\x7f\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", 18));
  CHECK(text.text() == std::string("\"t\\\"\\\\\\n\\r\\t\\u0001\\u0000\x7f\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\""));
  JsonWriter broken;
  broken.string("a\xC3(\xED\xA0\x80z\xF5");
  CHECK(broken.text() == "\"a\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace spillway::kube
