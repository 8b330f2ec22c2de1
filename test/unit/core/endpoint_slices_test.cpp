#include "vk-provider/core/endpoint_slices.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <random>

#include "test/unit/core/machine.hpp"

using namespace spillway;
using namespace spillway::core;
using model::Endpoint;
using model::EndpointService;
using model::EndpointSlice;

namespace {

EndpointScope scope() {
  EndpointScope out;
  out.installation = "main";
  out.zones = {{"burst", "eu-1"}};
  return out;
}

EndpointService service(int target = 8080) {
  EndpointService out;
  out.ns = "default";
  out.name = "web";
  out.uid = "service-1";
  out.selector = {{"app", "web"}};
  out.ipv4 = true;
  model::EndpointServicePort& port = out.ports.emplace_back();
  port.name = "http";
  port.port = 80;
  port.target = target;
  return out;
}

model::InstancePort published(int container, const std::string& host, int port) {
  model::InstancePort out;
  out.container_port = container;
  out.host = host;
  out.public_port = port;
  return out;
}

/// Known, ready, and published at 203.0.113.<n>:<30000 + n>.
EndpointPod pod(int n) {
  model::PodSpec spec;
  spec.key.ns = "default";
  spec.key.name = "web-" + std::to_string(n);
  spec.key.uid = base::PodUid("uid-" + std::to_string(n));
  spec.node_name = "burst";
  model::ContainerSpec& main = spec.containers.edit().emplace_back(test::a_container("main"));
  model::ContainerPort& port = main.ports.emplace_back();
  port.name = "web";
  port.port = 8080;
  EndpointPod out;
  out.spec = std::make_shared<const model::PodSpec>(std::move(spec));
  out.labels = ",app=web,tier=front,";
  out.known = out.ready = true;
  out.ports = {published(8080, "203.0.113." + std::to_string(n), 30000 + n)};
  return out;
}

EndpointPod with_spec(EndpointPod from, const std::function<void(model::PodSpec&)>& edit) {
  model::PodSpec spec = *from.spec;
  edit(spec);
  from.spec = std::make_shared<const model::PodSpec>(std::move(spec));
  return from;
}

EndpointPlan plan(const EndpointService& service, const std::vector<EndpointPod>& pods,
                  const std::vector<EndpointSlice>& existing = {}) {
  std::vector<const EndpointPod*> who;
  for (const EndpointPod& one : pods) who.push_back(&one);
  std::vector<const EndpointSlice*> stands;
  for (const EndpointSlice& one : existing) stands.push_back(&one);
  return plan_endpoints(scope(), service, who, stands);
}

std::string gap_of(const EndpointService& service, const std::vector<EndpointPod>& pods) {
  const EndpointPlan found = plan(service, pods);
  CHECK(found.slices.empty());
  return found.gaps.size() == 1 ? explain(found.gaps.front()) : "";
}

}  // namespace

TEST_CASE("a remapped port has a slice of its own, under the Service's name for it") {
  const EndpointPlan found = plan(service(), {pod(1)});
  REQUIRE(found.slices.size() == 1);
  CHECK(found.gaps.empty());
  const EndpointSlice& slice = found.slices.front();
  CHECK(slice.ns == "default");
  CHECK(slice.service == "web");
  CHECK(slice.service_uid == "service-1");
  CHECK(slice.managed_by == "spillway.dev");
  CHECK(slice.installation == "main");
  CHECK_FALSE(slice.ipv6);
  CHECK_FALSE(slice.headless);
  REQUIRE(slice.ports.size() == 1);
  CHECK(slice.ports[0].name == "http");
  CHECK(slice.ports[0].port == 30001);
  CHECK(slice.ports[0].protocol == model::Protocol::kTcp);
  REQUIRE(slice.endpoints.size() == 1);
  const Endpoint& endpoint = slice.endpoints[0];
  CHECK(endpoint.address == "203.0.113.1");
  CHECK(endpoint.node == "burst");
  CHECK(endpoint.zone == "eu-1");
  CHECK(endpoint.pod_name == "web-1");
  CHECK(endpoint.pod_uid.str() == "uid-1");
  CHECK(endpoint.hostname.empty());
  CHECK(endpoint.ready);
  CHECK(endpoint.serving);
  CHECK_FALSE(endpoint.terminating);
}

TEST_CASE("only pods of the namespace that have all labels of the selector") {
  EndpointService other = service();
  other.ns = "other";
  CHECK(plan(other, {pod(1)}).slices.empty());
  EndpointService wants_more = service();
  wants_more.selector.emplace("tier", "fron");
  CHECK(plan(wants_more, {pod(1)}).slices.empty());
  wants_more.selector["tier"] = "front";
  CHECK(plan(wants_more, {pod(1)}).slices.size() == 1);
}

TEST_CASE("one slice for each distinct set of ports, and one address for each endpoint") {
  EndpointPod same = pod(2);
  same.ports = {published(8080, "203.0.113.2", 30001)};
  const EndpointPlan found = plan(service(), {pod(1), same, pod(3)});
  REQUIRE(found.slices.size() == 2);
  const auto with = [&](int port) {
    return *std::ranges::find_if(found.slices, [&](const EndpointSlice& s) { return s.ports[0].port == port; });
  };
  CHECK(with(30001).endpoints.size() == 2);
  CHECK(with(30003).endpoints.size() == 1);
}

TEST_CASE("ports of one pod at two addresses make two endpoints") {
  EndpointService both = service();
  model::EndpointServicePort& admin = both.ports.emplace_back();
  admin.name = "admin";
  admin.port = admin.target = 9000;
  EndpointPod split = pod(1);
  split.ports.push_back(published(9000, "203.0.113.77", 30500));
  const EndpointPlan found = plan(both, {split});
  REQUIRE(found.slices.size() == 2);
  for (const EndpointSlice& slice : found.slices) {
    REQUIRE(slice.endpoints.size() == 1);
    CHECK(slice.ports.size() == 1);
    CHECK((slice.endpoints[0].address == "203.0.113.1") == (slice.ports[0].name == "http"));
  }
}

TEST_CASE("a port without a public one is left out, and the others stay") {
  EndpointService both = service();
  model::EndpointServicePort& admin = both.ports.emplace_back();
  admin.name = "admin";
  admin.port = admin.target = 9000;
  const EndpointPlan found = plan(both, {pod(1)});
  REQUIRE(found.slices.size() == 1);
  CHECK(found.slices[0].ports.size() == 1);
  REQUIRE(found.gaps.size() == 1);
  CHECK(explain(found.gaps[0]) ==
        "port admin (9000) reaches no rented pod: none publishes its port 9000; to publish it, put the annotation "
        "spillway.dev/public-ports: \"9000\" on the pod template, or the port into publicPorts of the node's profile");
}

TEST_CASE("a named targetPort is looked for in main containers, then in sidecars") {
  EndpointService named = service();
  named.ports[0].target = 0;
  named.ports[0].target_name = "web";
  CHECK(plan(named, {pod(1)}).slices[0].ports[0].port == 30001);
  named.ports[0].target_name = "metrics";
  CHECK(plan(named, {pod(1)}).slices.empty());
  CHECK(plan(named, {pod(1)}).gaps.empty());  // such a pod may have it in its next version
  EndpointPod aside = with_spec(pod(1), [](model::PodSpec& spec) {
    model::ContainerSpec sidecar = test::a_sidecar("proxy");
    sidecar.ports.emplace_back().name = "metrics";
    sidecar.ports.back().port = 9100;
    model::PodExtras extras;
    extras.init_containers.edit().push_back(std::move(sidecar));
    spec.extras = std::move(extras);
  });
  aside.ports.push_back(published(9100, "203.0.113.1", 31000));
  CHECK(plan(named, {aside}).slices[0].ports[0].port == 31000);
}

TEST_CASE("a protocol other than the declared one does not match") {
  EndpointService udp = service();
  udp.ports[0].protocol = model::Protocol::kUdp;
  CHECK(gap_of(udp, {pod(1)}).starts_with("port http (80) reaches no rented pod: their port 8080 is not published"));
  const EndpointPod speaks = with_spec(
      pod(1), [](model::PodSpec& spec) { spec.containers.edit()[0].ports[0].protocol = model::Protocol::kUdp; });
  CHECK(plan(udp, {speaks}).slices[0].ports[0].protocol == model::Protocol::kUdp);
  CHECK(plan(service(), {speaks}).slices.empty());
  // Undeclared ports are TCP.
  EndpointPod undeclared = pod(1);
  undeclared.ports = {published(7000, "203.0.113.1", 30007)};
  CHECK(plan(service(7000), {undeclared}).slices.size() == 1);
}

TEST_CASE("addresses that no endpoint may have") {
  for (const char* host : {"gpu-1.example.com", "127.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1", "239.1.1.1",
                           "255.255.255.255", "::1", "::", "fe80::1", "ff02::1", "::ffff:203.0.113.1", "", "1.2.3"}) {
    INFO(host);
    CHECK_FALSE(endpoint_address(host));
    EndpointPod bad = pod(1);
    bad.ports = {published(8080, host, 30001)};
    EndpointService dual = service();
    dual.ipv6 = true;
    CHECK(gap_of(dual, {bad}).find("which is no address") != std::string::npos);
  }
  CHECK(endpoint_address("203.0.113.1")->text == "203.0.113.1");
  CHECK(endpoint_address("2001:DB8:0:0::1")->text == "2001:db8::1");
  CHECK(endpoint_address("2001:db8::1")->ipv6);
}

TEST_CASE("IPv4 and IPv6 stand apart, and only where the Service has that family") {
  EndpointPod both = pod(1);
  both.ports.push_back(published(8080, "2001:db8::1", 30001));
  EndpointService dual = service();
  dual.ipv6 = true;
  const EndpointPlan found = plan(dual, {both});
  REQUIRE(found.slices.size() == 2);
  CHECK(found.slices[0].ipv6 != found.slices[1].ipv6);
  for (const EndpointSlice& slice : found.slices) {
    CHECK(slice.endpoints[0].address == (slice.ipv6 ? "2001:db8::1" : "203.0.113.1"));
  }
  const EndpointPlan v4 = plan(service(), {both});
  REQUIRE(v4.slices.size() == 1);
  CHECK_FALSE(v4.slices[0].ipv6);
  CHECK(v4.gaps.empty());
}

TEST_CASE("ready, serving and terminating") {
  EndpointPod unready = pod(1);
  unready.ready = false;
  Endpoint endpoint = plan(service(), {unready}).slices[0].endpoints[0];
  CHECK_FALSE(endpoint.ready);
  CHECK_FALSE(endpoint.serving);
  EndpointService anyway = service();
  anyway.publish_not_ready = true;
  endpoint = plan(anyway, {unready}).slices[0].endpoints[0];
  CHECK(endpoint.ready);
  CHECK_FALSE(endpoint.serving);
  EndpointPod going = pod(1);
  going.terminating = true;
  endpoint = plan(service(), {going}).slices[0].endpoints[0];
  CHECK_FALSE(endpoint.ready);
  CHECK(endpoint.serving);
  CHECK(endpoint.terminating);
}

TEST_CASE("what is not known stays as it stands") {
  const std::vector<EndpointSlice> before = plan(service(), {pod(1), pod(2)}).slices;
  EndpointPod unknown = pod(1);
  unknown.known = false;
  unknown.ports.clear();
  const EndpointPlan kept = plan(service(), {unknown, pod(2)}, before);
  CHECK(kept.slices == before);
  CHECK(kept.gaps.empty());
  SECTION("while it drains") {
    unknown.terminating = true;
    const EndpointPlan draining = plan(service(), {unknown}, before);
    REQUIRE(draining.slices.size() == 1);
    CHECK(draining.slices[0].name == before[draining.slices[0].name == before[0].name ? 0 : 1].name);
    CHECK_FALSE(draining.slices[0].endpoints[0].ready);
    CHECK(draining.slices[0].endpoints[0].serving);
    CHECK(draining.slices[0].endpoints[0].terminating);
  }
  SECTION("but for what is no port of the Service any more") {
    EndpointService renamed = service();
    renamed.ports[0].name = "other";
    CHECK(plan(renamed, {unknown}, before).slices.empty());
  }
  SECTION("but not what another Service of that name had") {
    EndpointService again = service();
    again.uid = "service-2";
    CHECK(plan(again, {unknown}, before).slices.empty());
  }
  SECTION("and nothing comes of nothing") { CHECK(plan(service(), {unknown}).slices.empty()); }
}

TEST_CASE("a hundred endpoints make a slice full") {
  std::vector<EndpointPod> pods;
  for (int i = 0; i < 205; ++i) {
    pods.push_back(pod(i));
    pods.back().ports = {published(8080, "198.51.100." + std::to_string(i), 30000)};
  }
  const EndpointPlan found = plan(service(), pods);
  REQUIRE(found.slices.size() == 3);
  std::vector<size_t> sizes;
  for (const EndpointSlice& slice : found.slices) sizes.push_back(slice.endpoints.size());
  std::ranges::sort(sizes);
  CHECK(sizes == std::vector<size_t>{5, 100, 100});
}

TEST_CASE("a headless Service's pod has its name in the DNS") {
  EndpointService headless = service();
  headless.headless = true;
  const EndpointPod named = with_spec(pod(1), [](model::PodSpec& spec) {
    model::PodExtras extras;
    extras.hostname = "web-1";
    extras.subdomain = "web";
    spec.extras = std::move(extras);
  });
  const EndpointPlan found = plan(headless, {named});
  CHECK(found.slices[0].headless);
  CHECK(found.slices[0].endpoints[0].hostname == "web-1");
  headless.name = "other";
  CHECK(plan(headless, {named}).slices[0].endpoints[0].hostname.empty());
}

TEST_CASE("the order of pods and slices has no effect, and what stands is not written again") {
  std::mt19937 dice(7);
  EndpointService wanted = service();
  model::EndpointServicePort& admin = wanted.ports.emplace_back();
  admin.name = "admin";
  admin.port = admin.target = 9000;
  for (int round = 0; round < 50; ++round) {
    std::vector<EndpointPod> pods;
    for (int i = 0; i < 30; ++i) {
      EndpointPod& one = pods.emplace_back(pod(i));
      one.ready = dice() % 3 != 0;
      one.terminating = dice() % 5 == 0;
      if (dice() % 2 == 0) one.ports[0].public_port = 30000;
      if (dice() % 3 == 0) one.ports.push_back(published(9000, "gpu.example.com", 1));
    }
    const std::vector<EndpointSlice> before = plan(wanted, pods).slices;
    for (EndpointPod& one : pods) one.known = dice() % 4 != 0;
    const EndpointPlan straight = plan(wanted, pods, before);
    CHECK(straight.slices == before);
    std::vector<EndpointSlice> shuffled = before;
    std::ranges::shuffle(pods, dice);
    std::ranges::shuffle(shuffled, dice);
    const EndpointPlan again = plan(wanted, pods, shuffled);
    CHECK(again.slices == straight.slices);
    REQUIRE(again.gaps.size() == straight.gaps.size());
    for (size_t i = 0; i < again.gaps.size(); ++i) CHECK(explain(again.gaps[i]) == explain(straight.gaps[i]));
  }
}

TEST_CASE("names differ by installation, Service, family and ports") {
  const std::string name = plan(service(), {pod(1)}).slices[0].name;
  CHECK(name.starts_with("web-"));
  CHECK(name.size() == 4 + 16);
  EndpointService again = service();
  again.uid = "service-2";
  CHECK(plan(again, {pod(1)}).slices[0].name != name);
  const EndpointPod one = pod(1);
  EndpointScope other = scope();
  other.installation = "second";
  CHECK(plan_endpoints(other, service(), {&one}, {}).slices[0].name != name);
}

TEST_CASE("which pods may have an endpoint, in the stages of a life") {
  model::PodSpec spec = test::a_pod();
  base::SharedText labels = ",app=web,";
  test::Machine m(spec);
  const auto now_is = [&] { return endpoint_pod(m.record, labels, m.now); };
  CHECK_FALSE(now_is());
  m.to_create();
  CHECK_FALSE(now_is());
  m.runs("main");
  m.instance.ports = {published(9000, "203.0.113.1", 2), published(8080, "203.0.113.1", 1)};
  m.on(event::Created{m.instance});
  REQUIRE(m.stage() == "running");
  REQUIRE(now_is());
  CHECK(now_is()->known);
  CHECK(now_is()->ready);
  CHECK_FALSE(now_is()->terminating);
  CHECK(now_is()->ports[0].container_port == 8080);
  CHECK(now_is()->labels == ",app=web,");
  m.record.observed.status = m.status();

  SECTION("without labels no Service selects it") {
    labels = {};
    CHECK_FALSE(now_is());
  }
  SECTION("its own address is left to the built-in controller") {
    m.record.provider.address_routable = true;
    std::get<model::Running>(m.record.stage).instance.address = "203.0.113.1";
    CHECK_FALSE(now_is());
  }
  SECTION("a container that has ended takes it out of service") {
    m.exits("main", 1);
    m.look();
    REQUIRE(now_is());
    CHECK_FALSE(now_is()->ready);
  }
  SECTION("absent from a listing once, nothing is known") {
    std::get<model::Running>(m.record.stage).instance.state = model::InstanceState::kUnknown;
    REQUIRE(now_is());
    CHECK_FALSE(now_is()->known);
  }
  SECTION("it drains while it is deleted, and leaves when its instance is gone") {
    m.user_deletes();
    REQUIRE(m.stage() == "stopping");
    REQUIRE(now_is());
    CHECK(now_is()->terminating);
    CHECK_FALSE(now_is()->known);
    m.on(event::InstanceGone{});
    CHECK_FALSE(now_is());
  }
  SECTION("a forced deletion leaves nothing to drain") {
    m.on(event::PodGone{});
    CHECK_FALSE(now_is());
  }
  SECTION("a lost instance leaves at once") {
    m.instance.state = model::InstanceState::kFailed;
    m.instance.message = "gone";
    m.look();
    CHECK(m.stage() == "stopping");  // what is left of it is ended
    CHECK_FALSE(now_is());
  }
  SECTION("a new process knows it only once it has asked the provider") {
    test::Machine again(spec, m.record.observed);
    REQUIRE(again.stage() == "admitted");
    REQUIRE(endpoint_pod(again.record, labels, again.now));
    CHECK_FALSE(endpoint_pod(again.record, labels, again.now)->known);
    again.record.observed.status.phase = model::PodPhase::kPending;
    CHECK_FALSE(endpoint_pod(again.record, labels, again.now));
  }
}
