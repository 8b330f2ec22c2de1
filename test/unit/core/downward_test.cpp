#include "vk-provider/core/downward.hpp"

#include <catch2/catch.hpp>

#include "test/support/reference_builder.hpp"

using namespace spillway;
using namespace spillway::core;

namespace {

std::string resource(const model::PodSpec& pod, const Surroundings& read, const std::string& name,
                     const std::string& divisor = {}, const std::string& container = {}) {
  model::ResourceRef ref;
  ref.resource = name;
  ref.divisor = divisor;
  ref.container = container;
  const auto value = resource_value(pod, read, ref, "main");
  return value ? *value : "error: " + value.error().message;
}

}  // namespace

TEST_CASE("a resource is told in units of its divisor, rounded up") {
  model::PodSpec pod = test::a_pod();
  model::Resources& own = pod.containers.edit()[0].resources;
  own.cpu_limit_milli = 1500;
  own.cpu_request_milli = 250;
  own.memory_limit = 1'000'000'000;
  own.ephemeral_request = 5;
  own.ephemeral_limit = 7;
  const Surroundings read;
  CHECK(resource(pod, read, "limits.cpu") == "2");
  CHECK(resource(pod, read, "limits.cpu", "1m") == "1500");
  CHECK(resource(pod, read, "limits.cpu", "0") == "2");  // what the API server writes for none
  CHECK(resource(pod, read, "requests.cpu", "100m") == "3");
  CHECK(resource(pod, read, "limits.memory") == "1000000000");
  CHECK(resource(pod, read, "limits.memory", "1Mi") == "954");
  CHECK(resource(pod, read, "limits.memory", "0") == "1000000000");
  CHECK(resource(pod, read, "requests.ephemeral-storage") == "5");
  CHECK(resource(pod, read, "limits.ephemeral-storage") == "7");
}

TEST_CASE("a limit that is not set is the node's, a request is 0") {
  const model::PodSpec pod = test::a_pod();
  Surroundings read;
  read.allocatable.cpu_limit_milli = 64'000;
  read.allocatable.memory_limit = 1LL << 38;
  read.allocatable.ephemeral_limit = 1LL << 40;
  CHECK(resource(pod, read, "limits.cpu") == "64");
  CHECK(resource(pod, read, "limits.memory", "1Gi") == "256");
  CHECK(resource(pod, read, "limits.ephemeral-storage", "1Ti") == "1");
  CHECK(resource(pod, read, "requests.memory") == "0");
}

TEST_CASE("a resource of another container, and what there is not") {
  model::PodSpec pod = test::a_pod();
  pod.extras = model::PodExtras();
  model::ContainerSpec init;
  init.name = "init";
  init.resources.memory_request = 42;
  pod.extras->init_containers.edit().push_back(init);
  const Surroundings read;
  CHECK(resource(pod, read, "requests.memory", {}, "init") == "42");
  CHECK(resource(pod, read, "requests.memory", {}, "nobody") == "error: container nobody not found");
  CHECK(resource(pod, read, "limits.nvidia.com/gpu") ==
        "error: unsupported container resource : limits.nvidia.com/gpu");
  CHECK(resource(pod, read, "limits.cpu", "x") == "error: the divisor of limits.cpu is no quantity");
  CHECK(resource(pod, read, "limits.cpu", "-1") == "error: the divisor of limits.cpu is no quantity");
}

TEST_CASE("whole maps are lines of key=\"value\", sorted, quoted as Go does") {
  CHECK(format_map({}).empty());
  CHECK(format_map({{"b", "2"}, {"a", "1"}}) == "a=\"1\"\nb=\"2\"");
  const std::pair<const char*, const char*> rows[] = {
      {"", "\"\""},
      {"a \"b\" \\", R"("a \"b\" \\")"},
      {"\a\b\f\n\r\t\v", R"("\a\b\f\n\r\t\v")"},
      {"\x01\x1f\x7f", R"("\x01\x1f\x7f")"},
      {"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80", "\"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\""},
      {"\xC2\xA0\xE2\x80\x8B\xEF\xBB\xBF", R"("\u00a0\u200b\ufeff")"},
      {"\xF3\xA0\x80\x81", R"("\U000e0001")"},
      {"\xFF\xC3", R"("\xff\xc3")"},
      {"\xED\xA0\x80", R"("\xed\xa0\x80")"},  // half a surrogate pair is no UTF-8
      {"\xC0\x80", R"("\xc0\x80")"},
      {"$(X) ${Y}", "\"$(X) ${Y}\""},
  };
  for (const auto& [value, quoted] : rows) {
    CAPTURE(value);
    CHECK(format_map({{"k", value}}) == "k=" + std::string(quoted));
  }
}

TEST_CASE("only labels and annotations have to be read from the live pod") {
  model::PodSpec pod = test::a_pod();
  pod.containers.edit()[0].env = {test::field("A", "metadata.name"), test::field("B", "status.hostIP")};
  CHECK_FALSE(references(pod).metadata);
  pod.containers.edit()[0].env.push_back(test::field("C", "metadata.labels['x']"));
  CHECK(references(pod).metadata);

  Surroundings read;
  CHECK(field_value(pod, read, "metadata.labels['x']") == "");
  CHECK(field_value(pod, read, "metadata.annotations") == "");
  read.metadata.labels = {{"x", "1"}, {"y", "2"}};
  read.metadata.annotations = {{"a/b", "line\nline"}};
  CHECK(field_value(pod, read, "metadata.labels['x']") == "1");
  CHECK(field_value(pod, read, "metadata.labels") == "x=\"1\"\ny=\"2\"");
  CHECK(field_value(pod, read, "metadata.annotations") == "a/b=\"line\\nline\"");
  CHECK(field_value(pod, read, "metadata.annotations['a/b']") == "line\nline");
}
