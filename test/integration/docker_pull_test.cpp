// Pulls through a real engine from a registry in this process, which can hold its answers back.
#include <nlohmann/json.hpp>

#include "providers/docker/sandbox_image.hpp"
#include "test/integration/docker_fixture.hpp"
#include "vk-provider/net/digest.hpp"
#include "vk-provider/net/http_server.hpp"

using namespace std::chrono_literals;
using namespace spillway::test;
namespace base = spillway::base;
namespace model = spillway::model;
namespace net = spillway::net;
namespace providers = spillway::providers;
using base::ErrorKind;
using model::InstanceState;
using nlohmann::json;

namespace {

std::string digest(const std::string& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "sha256:";
  for (const std::uint8_t byte : net::sha256(bytes)) {
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
  return out;
}

/// The sandbox's root file system as a layer of its own: the engine does not fetch again what it has. The owner's name
/// in the header (ustar, offset 265) tells one from the other.
std::string make_layer(const std::string& owner) {
  std::string tar = providers::docker::sandbox_image_tar();
  tar.replace(265, owner.size(), owner);
  tar.replace(148, 8, "        ");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[i]);
  char text[8];
  std::snprintf(text, sizeof(text), "%06o", sum);
  tar.replace(148, 7, text, 7);
  return tar;
}

/// Knows one image, `app`, of one tag; it runs until it is told to end.
class Registry {
 public:
  Registry(RealReactor& reactor, std::string tag)
      : tag_(std::move(tag)),
        layer_(make_layer(tag_)),
        config_(json{{"architecture", "amd64"},
                     {"os", "linux"},
                     {"config", {{"Entrypoint", {"/pause"}}, {"Labels", {{"tag", tag_}}}}},
                     {"rootfs", {{"type", "layers"}, {"diff_ids", {digest(layer_)}}}}}
                    .dump()),
        released_(reactor.timers.make_waiter()),
        server_(reactor.ctx.get_executor(), reactor.timers, net::HttpServerConfig(),
                [this](net::HttpServerRequest request) { return serve(std::move(request)); }),
        reactor_(reactor) {
    if (!server_.start()) throw std::runtime_error("the registry cannot listen");
  }
  ~Registry() { reactor_.run(server_.stop(reactor_.timers.now() + 1s)); }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  std::string image() const { return "127.0.0.1:" + std::to_string(server_.port()) + "/app:" + tag_; }
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    released_->wake();
  }
  bool asked_for_layer() const { return asked_for_layer_; }

 private:
  boost::asio::awaitable<net::HttpServerResponse> serve(net::HttpServerRequest request) {
    const std::string path(request.path());
    if (path == "/v2/") co_return net::HttpServerResponse(200, "application/json", "{}");
    if (path == "/v2/app/manifests/" + tag_ || path == "/v2/app/manifests/" + digest(manifest())) {
      net::HttpServerResponse response(200, "application/vnd.docker.distribution.manifest.v2+json", manifest());
      response.headers.emplace_back("Docker-Content-Digest", digest(manifest()));
      co_return response;
    }
    if (path == "/v2/app/blobs/" + digest(config_)) co_return blob(config_);
    if (path == "/v2/app/blobs/" + digest(layer_)) {
      asked_for_layer_ = true;
      while (held_) co_await released_->wait();
      co_return blob(layer_);
    }
    co_return net::HttpServerResponse(404, "application/json",
                                      R"({"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]})");
  }

  static net::HttpServerResponse blob(const std::string& bytes) { return {200, "application/octet-stream", bytes}; }

  std::string manifest() const {
    const json config = {{"mediaType", "application/vnd.docker.container.image.v1+json"},
                         {"size", config_.size()},
                         {"digest", digest(config_)}};
    const json layer = {{"mediaType", "application/vnd.docker.image.rootfs.diff.tar.gzip"},
                        {"size", layer_.size()},
                        {"digest", digest(layer_)}};
    return json{{"schemaVersion", 2},
                {"mediaType", "application/vnd.docker.distribution.manifest.v2+json"},
                {"config", config},
                {"layers", json::array({layer})}}
        .dump();
  }

  std::string tag_;
  std::string layer_;
  std::string config_;
  bool held_ = false;
  bool asked_for_layer_ = false;
  std::unique_ptr<spillway::async::Waiter> released_;
  net::HttpServer server_;
  RealReactor& reactor_;
};

/// Removes the image, so that the next run pulls again.
void remove_image(const std::string& image) {
  DockerFixture::api(net::Method::kDelete, "/images/" + image + "?force=true");
}

model::ResolvedPod pod_of(const std::string& image) {
  model::ResolvedPod pod = make_conformance_pod(image);
  pod.containers[0].pull_policy = model::PullPolicy::kAlways;
  return pod;
}

}  // namespace

TEST_CASE_METHOD(DockerFixture, "docker engine: an image is pulled and runs by its own entrypoint", "[docker]") {
  Registry registry(reactor, "plain");
  const auto bought = create(placement("spw-it-pull-1"), pod_of(registry.image()));
  REQUIRE(bought);
  CHECK(bought->state == InstanceState::kPending);
  get_running(bought->ref);
  end(bought->ref);
  remove_image(registry.image());
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a tag that the registry does not have", "[docker]") {
  Registry registry(reactor, "other");
  std::string image = registry.image();
  image.replace(image.rfind(':'), std::string::npos, ":missing");
  const auto bought = create(placement("spw-it-pull-2"), pod_of(image));
  REQUIRE(bought);
  const model::Instance failed =
      get_until(bought->ref, [](const model::Instance& i) { return i.state == InstanceState::kFailed; });
  CHECK(failed.image_error);
  CHECK(failed.containers.at(0).reason == "ErrImagePull");
  CHECK(says(failed.message, "manifest unknown"));
  end(bought->ref);
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a daemon that ended in the middle of a pull", "[docker]") {
  Registry registry(reactor, "resumed");
  registry.hold();
  const auto bought = create(placement("spw-it-pull-3"), pod_of(registry.image()));
  REQUIRE(bought);
  reactor.run_until([&] { return registry.asked_for_layer(); });
  restart_daemon();
  const auto left = get(bought->ref);
  REQUIRE(left);
  CHECK(left->state == InstanceState::kPending);
  registry.release();
  REQUIRE(create(placement("spw-it-pull-3"), pod_of(registry.image())));
  get_running(bought->ref);
  end(bought->ref);
  remove_image(registry.image());
}

TEST_CASE_METHOD(DockerFixture, "docker engine: a pull ends with its instance", "[docker]") {
  Registry registry(reactor, "cancelled");
  registry.hold();
  const auto bought = create(placement("spw-it-pull-4"), pod_of(registry.image()));
  REQUIRE(bought);
  reactor.run_until([&] { return registry.asked_for_layer(); });
  end(bought->ref, 30s);
  registry.release();
}
