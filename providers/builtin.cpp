#include "providers/builtin.hpp"

#include "providers/docker/docker_provider.hpp"
#include "providers/fake/fake_provider.hpp"

namespace spillway::providers {

provider::Registry builtin_providers() {
  return {
      {"docker", docker::provider_type()},
      {"fake", fake::provider_type()},
  };
}

}  // namespace spillway::providers
