// endpoints: of the configuration.
#include <catch2/catch.hpp>

#include "vk-provider/daemon/config.hpp"

using namespace spillway;

namespace {

std::expected<daemon::Config, std::vector<daemon::Fault>> parse(const std::string& section) {
  provider::Registry registry;
  provider::ProviderType type;
  type.validate = [](const nlohmann::json&) { return std::vector<provider::ConfigFault>(); };
  type.costs_money = false;
  registry["own"] = type;
  daemon::ConfigSources sources;
  sources.providers = &registry;
  return daemon::parse_config(
      "apiVersion: spillway.dev/v1\nproviders: [{name: c, type: own}]\nnodes: [{name: burst}]\n" + section, "f",
      sources);
}

}  // namespace

TEST_CASE("traffic is led to published ports only where the configuration says so") {
  CHECK(parse("")->endpoints == daemon::EndpointMode::kNone);
  CHECK(parse("endpoints: {mode: none}")->endpoints == daemon::EndpointMode::kNone);
  CHECK(parse("endpoints: {mode: direct}")->endpoints == daemon::EndpointMode::kDirect);
}

TEST_CASE("another mode, or another key, is a fault") {
  const auto other = parse("endpoints: {mode: mesh}");
  REQUIRE_FALSE(other);
  CHECK(other.error().front().path == "endpoints.mode");
  CHECK(other.error().front().message.find("none") != std::string::npos);
  const auto unknown = parse("endpoints: {modes: direct}");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().front().path == "endpoints.modes");
}
