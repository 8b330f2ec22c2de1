#include "vk-provider/core/service_variables.hpp"

#include <catch2/catch.hpp>

using namespace spillway;
using core::service_variables;
using Map = std::map<std::string, std::string>;

TEST_CASE("a service is told as a kubelet tells it") {
  model::Service service;
  service.name = "super-duper";
  service.cluster_ip = "1.2.3.4";
  model::ServicePort http;
  http.name = "my-web";
  http.port = 80;
  model::ServicePort dns;
  dns.name = "dns";
  dns.port = 53;
  dns.protocol = model::Protocol::kUdp;
  service.ports = {http, dns};
  CHECK(service_variables({service}) == Map{{"SUPER_DUPER_SERVICE_HOST", "1.2.3.4"},
                                            {"SUPER_DUPER_SERVICE_PORT", "80"},
                                            {"SUPER_DUPER_SERVICE_PORT_MY_WEB", "80"},
                                            {"SUPER_DUPER_SERVICE_PORT_DNS", "53"},
                                            {"SUPER_DUPER_PORT", "tcp://1.2.3.4:80"},
                                            {"SUPER_DUPER_PORT_80_TCP", "tcp://1.2.3.4:80"},
                                            {"SUPER_DUPER_PORT_80_TCP_PROTO", "tcp"},
                                            {"SUPER_DUPER_PORT_80_TCP_PORT", "80"},
                                            {"SUPER_DUPER_PORT_80_TCP_ADDR", "1.2.3.4"},
                                            {"SUPER_DUPER_PORT_53_UDP", "udp://1.2.3.4:53"},
                                            {"SUPER_DUPER_PORT_53_UDP_PROTO", "udp"},
                                            {"SUPER_DUPER_PORT_53_UDP_PORT", "53"},
                                            {"SUPER_DUPER_PORT_53_UDP_ADDR", "1.2.3.4"}});
}

TEST_CASE("a service without an address of its own is not told, and an IPv6 address stands in brackets") {
  model::Service headless;
  headless.name = "headless";
  headless.ports.emplace_back().port = 80;
  CHECK(service_variables({headless}).empty());
  model::Service six = headless;
  six.name = "six";
  six.cluster_ip = "fd00::1";
  const Map variables = service_variables({six});
  CHECK(variables.at("SIX_SERVICE_HOST") == "fd00::1");
  CHECK(variables.at("SIX_PORT") == "tcp://[fd00::1]:80");
}

TEST_CASE("of two services of one name the first is told") {
  model::Service own;
  own.name = "kubernetes";
  own.cluster_ip = "10.0.0.9";
  model::Service api = own;
  api.cluster_ip = "10.0.0.1";
  CHECK(service_variables({own, api}).at("KUBERNETES_SERVICE_HOST") == "10.0.0.9");
}
