#include "vk-provider/kube/prometheus_client.hpp"

#include <catch2/catch.hpp>

namespace kube = spillway::kube;

namespace {

std::string vector_of(const std::string& elements) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + elements + "]}}";
}
std::string element(const std::string& value) { return R"({"metric":{},"value":[1.7e9,")" + value + R"("]})"; }

std::string why(const std::string& body) {
  const auto number = kube::decode_prometheus_number(body);
  return number ? std::to_string(*number) : number.error();
}

}  // namespace

TEST_CASE("one finite number is data, zero too") {
  CHECK(kube::decode_prometheus_number(vector_of(element("5"))) == 5.0);
  CHECK(kube::decode_prometheus_number(vector_of(element("0"))) == 0.0);
  CHECK(kube::decode_prometheus_number(vector_of(element("1.5e1"))) == 15.0);
  CHECK(kube::decode_prometheus_number(R"({"status":"success","data":{"resultType":"scalar","result":[1,"3"]}})") ==
        3.0);
}

TEST_CASE("everything else is no data") {
  CHECK(why(vector_of("")) == "empty");
  CHECK(why(R"({"status":"success","warnings":["x"],"data":{"resultType":"vector","result":[]}})") == "empty");
  CHECK(why(vector_of(element("1") + "," + element("2"))) == "many");
  CHECK(why(vector_of(element("NaN"))) == "nan");
  CHECK(why(vector_of(element("+Inf"))) == "nan");
  CHECK(why(vector_of(element("-Inf"))) == "nan");
  CHECK(why(vector_of(element("-1"))) == "negative");
  CHECK(why(vector_of(element("five"))) == "unreadable");
  CHECK(why(R"({"status":"error","errorType":"timeout","error":"x"})") == "failed");
  CHECK(why(R"({"status":"success","data":{"resultType":"matrix","result":[]}})") == "unreadable");
  CHECK(why("<html>") == "unreadable");
  CHECK(why(R"({"status":"success","data":{"resultType":"vector","result":[)") == "unreadable");
  CHECK(why("") == "unreadable");
}

TEST_CASE("sick GPUs by node") {
  const auto sick = kube::decode_prometheus_counts(
      vector_of(R"({"metric":{"Hostname":"home1"},"value":[1,"2"]},{"metric":{"Hostname":"home1"},"value":[1,"1"]},
                   {"metric":{},"value":[1,"9"]},{"metric":{"Hostname":"home2"},"value":[1,"0"]},
                   {"metric":{"Hostname":"home3"},"value":[1,"NaN"]},{"metric":{"Hostname":"home4"},"value":[1,"0.5"]})"),
      "Hostname");
  REQUIRE(sick.has_value());
  CHECK(*sick == std::map<std::string, std::int64_t>{{"home1", 2}, {"home4", 1}});
  CHECK(kube::decode_prometheus_counts(vector_of(""), "Hostname")->empty());
  CHECK_FALSE(kube::decode_prometheus_counts("{}", "Hostname").has_value());
}
