#include "vk-provider/model/spec_pool.hpp"

#include <catch2/catch.hpp>

namespace spillway::model {
namespace {

PodSpec a_spec(const std::string& owner, const std::string& image) {
  PodSpec spec;
  spec.key.ns = "team-a";
  spec.owner.uid = owner;
  ContainerSpec container;
  container.name = "main";
  container.image = image;
  EnvVar variable;
  variable.name = "MODEL";
  variable.value = "large";
  container.env = {variable};
  spec.containers.edit().push_back(container);
  return spec;
}

bool share(const base::SharedText& a, const base::SharedText& b) { return &a.str() == &b.str(); }

TEST_CASE("equal containers of one owner are one list") {
  SpecPool pool;
  PodSpec first = a_spec("owner", "registry.example/app:1");
  PodSpec second = a_spec("owner", "registry.example/app:1");
  PodSpec third = a_spec("owner", "registry.example/app:1");
  pool.share(first);
  pool.share(second);
  pool.share(third);
  CHECK(&first.containers.items() == &second.containers.items());
  CHECK(&first.containers.items() == &third.containers.items());
  CHECK(share(first.key.ns, second.key.ns));
  CHECK(second.containers[0].env[0].value == "large");
}

TEST_CASE("init containers and volumes of one owner are one list, too") {
  SpecPool pool;
  const auto with_more = [&](const std::string& volume) {
    PodSpec spec = a_spec("owner", "registry.example/app:1");
    PodExtras extras;
    extras.hostname = "differs";
    extras.init_containers = spec.containers;
    extras.init_containers.edit()[0].name = "fetch";
    extras.volumes.edit().emplace_back().name = volume;
    spec.extras = extras;
    pool.share(spec);
    return spec;
  };
  const PodSpec first = with_more("data");
  const PodSpec second = with_more("data");
  CHECK(&first.extras->init_containers.items() == &second.extras->init_containers.items());
  CHECK(&first.extras->volumes.items() == &second.extras->volumes.items());
  const PodSpec third = with_more("other");
  CHECK(&first.extras->init_containers.items() == &third.extras->init_containers.items());
  CHECK(third.extras->volumes[0].name == "other");
}

TEST_CASE("containers that differ are not shared, but their texts are") {
  SpecPool pool;
  PodSpec first = a_spec("owner", "registry.example/app:1");
  PodSpec second = a_spec("owner", "registry.example/app:2");
  PodSpec other = a_spec("another", "registry.example/app:2");
  pool.share(first);
  pool.share(second);
  pool.share(other);
  CHECK(first.containers[0].image == "registry.example/app:1");
  CHECK(second.containers[0].image == "registry.example/app:2");
  CHECK(&second.containers.items() != &other.containers.items());
  CHECK(share(second.containers[0].image, other.containers[0].image));
  CHECK(share(first.containers[0].name, second.containers[0].name));
}

TEST_CASE("a list that is edited leaves its copies as they were") {
  SpecPool pool;
  PodSpec first = a_spec("owner", "registry.example/app:1");
  PodSpec second = a_spec("owner", "registry.example/app:1");
  pool.share(first);
  pool.share(second);
  second.containers.edit()[0].image = "registry.example/app:9";
  CHECK(first.containers[0].image == "registry.example/app:1");
}

TEST_CASE("a pool keeps no text that only it has") {
  base::TextPool pool;
  base::SharedText kept("kept for long enough to be no short string");
  pool.share(kept);
  for (int i = 0; i < 1000; ++i) {
    base::SharedText gone("text " + std::to_string(i));
    pool.share(gone);
  }
  CHECK(pool.size() <= 64);
  base::SharedText again("kept for long enough to be no short string");
  pool.share(again);
  CHECK(share(kept, again));
}

}  // namespace
}  // namespace spillway::model
