// Volumes of the engine in memory, and the archives that go into them.
#include "providers/docker/tar.hpp"
#include "test/support/docker_engine_model.hpp"

namespace spillway::test {
namespace {

using nlohmann::json;

constexpr size_t kBlock = 512;

std::string field(std::string_view header, size_t offset, size_t size) {
  return std::string(std::string(header.substr(offset, size)).c_str());
}

}  // namespace

/// A mount without a source is a new volume, which goes with its container.
void DockerEngineModel::make_volumes(Container& container) {
  const json mounts = container.body.value("HostConfig", json::object()).value("Mounts", json::array());
  for (const json& wanted : mounts) {
    json mount = {{"Type", wanted["Type"]}, {"Destination", wanted["Target"]}};
    std::string name = wanted.value("Source", "");
    if (wanted["Type"] == "volume" && name.empty()) {
      name = "volume-" + std::to_string(next_volume_++);
      const json options = wanted.value("VolumeOptions", json::object());
      Volume& volume = volumes[name];
      volume.owner = container.id;
      volume.labels = options.value("Labels", json::object());
      volume.options = options.value("DriverConfig", json::object()).value("Options", json::object());
    }
    if (wanted["Type"] == "volume") mount["Name"] = name;
    mount["Source"] = wanted["Type"] == "volume" ? "/engine/volumes/" + name + "/_data" : name;
    container.mounts.push_back(std::move(mount));
  }
}

void DockerEngineModel::remove_volumes(const std::string& container_id) {
  std::erase_if(volumes, [&](const auto& item) { return item.second.owner == container_id; });
}

DockerEngineModel::Response DockerEngineModel::upload(const Container& container, std::string_view tar) {
  while (tar.size() >= kBlock && tar.front() != '\0') {
    const std::string path = field(tar, 0, 100);
    File file;
    file.type = tar[156];
    file.mode = std::stoi(field(tar, 100, 8), nullptr, 8);
    file.uid = std::stoll(field(tar, 108, 8), nullptr, 8);
    file.gid = std::stoll(field(tar, 116, 8), nullptr, 8);
    const size_t size = std::stoul(field(tar, 124, 12), nullptr, 8);
    tar.remove_prefix(kBlock);
    file.content = tar.substr(0, size);
    tar.remove_prefix((size + kBlock - 1) / kBlock * kBlock);
    files[container.name + ":/" + path] = std::move(file);
  }
  return answer(200, json::object());
}

DockerEngineModel::Response DockerEngineModel::download(const Container& container, const std::string& path) {
  const auto file = files.find(container.name + ":" + path);
  if (file == files.end()) return refuse(404, "Could not find the file " + path + " in container " + container.id);
  providers::docker::TarWriter tar;
  tar.add_file(path.substr(path.rfind('/') + 1), file->second.content, file->second.mode);
  Response response = answer(200, json::object());
  response->body = tar.finish();
  return response;
}

bool DockerEngineModel::has_path(const Container& container, const std::string& path) const {
  return files.contains(container.name + ":" + path) || files.contains(container.name + ":" + path + "/");
}

bool DockerEngineModel::has_parts(const Container& container, std::string& error) {
  const json mounts = container.body.value("HostConfig", json::object()).value("Mounts", json::array());
  for (const json& wanted : mounts) {
    const std::string part = wanted.value("VolumeOptions", json::object()).value("Subpath", "");
    if (part.empty()) continue;
    const auto volume = wanted["Source"].get<std::string>();
    const Container& owner = *find(volumes.at(volume).owner);
    for (const json& mount : owner.mounts) {
      if (mount.value("Name", "") != volume) continue;
      if (has_path(owner, mount["Destination"].get<std::string>() + "/" + part)) continue;
      error = "cannot access path /engine/volumes/" + volume + "/_data/" + part;
      return false;
    }
  }
  return true;
}

DockerEngineModel::Response DockerEngineModel::handle_volumes(net::Method method, const std::string& target) {
  constexpr std::string_view kVolumes = "/v1.41/volumes/";
  if (method == net::Method::kDelete) {
    const bool removed = volumes.erase(target.substr(kVolumes.size())) == 1;
    return removed ? answer(204, json::object()) : refuse(404, "no such volume");
  }
  const json filter = json::parse(query_value(target, "filters"), nullptr, false);
  const std::string wanted = filter["label"][0];
  const std::string key = wanted.substr(0, wanted.find('='));
  json out = json::array();
  for (const auto& [name, volume] : volumes) {
    const std::string value = volume.labels.value(key, "");
    if (value.empty() || (wanted != key && wanted != key + "=" + value)) continue;
    out.push_back({{"Name", name}, {"Labels", volume.labels}, {"Driver", "local"}});
  }
  return answer(200, {{"Volumes", out.empty() ? json() : out}, {"Warnings", nullptr}});
}

}  // namespace spillway::test
