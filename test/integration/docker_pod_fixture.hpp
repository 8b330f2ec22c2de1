// Whole pods for a real engine: docker_fixture.hpp with several containers, volumes and files.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/integration/docker_fixture.hpp"

namespace spillway::test {

class PodFixture : public DockerFixture {
 public:
  model::ResolvedContainer& add(const std::string& name, const std::string& script,
                                model::ContainerRole role = model::ContainerRole::kMain) {
    model::ResolvedContainer& out = whole.containers.emplace_back(pod(script).containers.at(0));
    out.name = name;
    out.role = role;
    out.start_at_once = role == model::ContainerRole::kMain;
    return out;
  }
  void add_volume(const std::string& name, model::VolumeSpec::Kind kind,
                  std::optional<std::int64_t> size = std::nullopt) {
    model::ResolvedVolume& out = whole.volumes.emplace_back();
    out.name = name;
    out.kind = kind;
    out.size_limit = size;
  }
  void add_file(const std::string& volume, const std::string& path, std::string content, int mode = 0644) {
    whole.files.push_back(file(volume, path, std::move(content), mode));
  }
  static model::ResolvedFile file(const std::string& volume, const std::string& path, std::string content, int mode) {
    model::ResolvedFile out;
    out.volume = volume;
    out.path = path;
    out.content = std::move(content);
    out.mode = mode;
    return out;
  }
  static model::ResolvedMount mount(const std::string& volume, const std::string& path, const std::string& sub = "") {
    model::ResolvedMount out;
    out.volume = volume;
    out.path = path;
    out.sub_path = sub;
    return out;
  }
  template <class Change>
  void change_extras(Change change) {
    auto spec = std::make_shared<model::PodSpec>(*whole.spec);
    model::PodExtras extras = spec->extras ? *spec->extras : model::PodExtras();
    change(extras);
    spec->extras = extras;
    whole.spec = std::move(spec);
  }

  model::InstanceRef buy(const std::string& tag) {
    const auto bought = create(placement(tag), whole);
    if (!bought) throw std::runtime_error(bought.error().message);
    return bought->ref;
  }
  base::Result<void> start(const model::InstanceRef& ref, const std::string& container,
                           provider::ContainerAction action = provider::ContainerAction::kStart) {
    return reactor.run(daemon->control_container(ref, container, action, std::chrono::seconds(10), soon()));
  }
  /// Ends once the container has ended; its output.
  std::string output(const model::InstanceRef& ref, const std::string& tag, const std::string& name) {
    get_until(ref, [&](const model::Instance& i) {
      return std::any_of(i.containers.begin(), i.containers.end(), [&](const model::InstanceContainer& c) {
        return c.name == name && c.state == model::ContainerState::kExited;
      });
    });
    return providers::docker::join_frames(
        api(net::Method::kGet, "/containers/" + tag + "-" + name + "/logs?stdout=true&stderr=true").body);
  }
  /// Until the container has written this.
  void wait_for(const model::InstanceRef& ref, const std::string& tag, const std::string& name,
                const std::string& words) {
    get_until(ref, [&](const model::Instance&) {
      return api(net::Method::kGet, "/containers/" + tag + "-" + name + "/logs?stdout=true").body.contains(words);
    });
  }
  static nlohmann::json labelled(const std::string& what) {
    const auto response = api(net::Method::kGet, what + providers::docker::encode_label_filter("spillway.dev/tag"));
    return nlohmann::json::parse(response.body);
  }
  static void check_nothing_left() {
    CHECK(labelled("/containers/json?all=true&") == nlohmann::json::array());
    const nlohmann::json volumes = nlohmann::json::parse(api(net::Method::kGet, "/volumes").body)["Volumes"];
    CHECK((volumes.is_null() || volumes.empty()));
    CHECK(nlohmann::json::parse(api(net::Method::kGet, "/networks").body).size() == 3);  // bridge, host, none
  }

  model::ResolvedPod whole = empty_pod();

 private:
  static model::ResolvedPod empty_pod() {
    model::ResolvedPod out = pod("");
    out.containers.clear();
    return out;
  }
};

}  // namespace spillway::test
