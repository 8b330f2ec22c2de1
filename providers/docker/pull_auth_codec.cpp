#include <nlohmann/json.hpp>

#include "providers/docker/pull_auth.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::providers::docker {

base::Secret encode_registry_auth(const model::PullAuth& auth, const std::string& registry) {
  nlohmann::json node = nlohmann::json::object();
  node["username"] = auth.username;
  node["password"] = auth.password.reveal();
  node["serveraddress"] = registry == "docker.io" ? "https://index.docker.io/v1/" : registry;
  try {
    const base::Secret text(node.dump());
    std::string encoded = net::base64_encode(text.reveal());
    // The engine reads the alphabet for URLs.
    for (char& c : encoded) {
      if (c == '+') c = '-';
      if (c == '/') c = '_';
    }
    return base::Secret(std::move(encoded));
  } catch (const nlohmann::json::exception&) {
    return base::Secret();
  }
}

}  // namespace spillway::providers::docker
