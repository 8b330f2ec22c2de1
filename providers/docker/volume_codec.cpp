#include "providers/docker/volume_codec.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <nlohmann/json.hpp>

#include "providers/docker/engine_http.hpp"
#include "providers/docker/sandbox_image.hpp"
#include "providers/docker/tar.hpp"

namespace spillway::providers::docker {
namespace {

using base::ErrorKind;
using model::ResolvedVolume;
using nlohmann::json;
using Kind = model::VolumeSpec::Kind;

// In keeper and sandbox.
constexpr std::string_view kVolumes = "/volumes/";
constexpr std::string_view kMessages = "/messages";
constexpr int kMessageMode = 0666;  // the container's user may be anybody
constexpr int kBookMode = 0600;

std::string place_of(const std::string& volume) { return std::string(kVolumes) + volume; }
std::string without_slash(std::string_view path) { return std::string(path.substr(1)); }

bool has_messages(const InstancePlan& plan) {
  return std::any_of(plan.containers.begin(), plan.containers.end(),
                     [](const model::ResolvedContainer& c) { return !c.termination_message_path.empty(); });
}

const ResolvedVolume* find_volume(const std::vector<ResolvedVolume>& volumes, const std::string& name) {
  const auto it = std::find_if(volumes.begin(), volumes.end(), [&](const ResolvedVolume& v) { return v.name == name; });
  return it == volumes.end() ? nullptr : &*it;
}

const MountPoint* find_place(const std::vector<MountPoint>& made, const std::string& place) {
  const auto it = std::find_if(made.begin(), made.end(), [&](const MountPoint& m) { return m.place == place; });
  return it == made.end() ? nullptr : &*it;
}

FileOwner owner_of(const InstancePlan& plan) {
  FileOwner owner;
  if (plan.spec && plan.spec->extras && plan.spec->extras->fs_group) owner.group = *plan.spec->extras->fs_group;
  return owner;
}

json volume_labels(const InstancePlan& plan, const std::string& volume) {
  json out = json::object();
  out[std::string(kLabelTag)] = plan.tag;
  out[std::string(kLabelPod)] = plan.pod;
  if (!volume.empty()) out[std::string(kLabelVolume)] = volume;
  return out;
}

/// Without a Source the engine makes a volume for this mount.
json new_volume(const InstancePlan& plan, const std::string& volume, std::string_view place) {
  json options = json::object();
  options["NoCopy"] = true;  // nothing of an image belongs into it
  options["Labels"] = volume_labels(plan, volume);
  json mount = json::object();
  mount["Type"] = "volume";
  mount["Target"] = std::string(place);
  mount["VolumeOptions"] = std::move(options);
  return mount;
}

/// True if it leads nowhere but down.
bool is_inside(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (path.substr(0, end) == "..") return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

/// The folders above a file and below its volume, the upper ones first.
void add_parents(TarWriter& tar, std::set<std::string>& known, const std::string& place, const std::string& path,
                 FileOwner owner) {
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = place + "/" + path.substr(0, slash);
    if (known.insert(parent).second) tar.add_directory(without_slash(parent), owner.directory_mode(), owner.of());
  }
}

void add_files(TarWriter& tar, const std::vector<model::ResolvedFile>& files, FileOwner owner) {
  std::set<std::string> known;
  for (const model::ResolvedFile& file : files) {
    const std::string place = place_of(file.volume);
    add_parents(tar, known, place, file.path, owner);
    tar.add_file(without_slash(place + "/" + file.path), file.content, owner.file_mode(file.mode),
                 owner.of(file.user.value_or(0)));
  }
}

std::string memory_options(const ResolvedVolume& volume, FileOwner owner) {
  std::string options = owner.group < 0 ? "mode=0777" : "mode=02777,gid=" + std::to_string(owner.group);
  if (volume.size_limit) options += ",size=" + std::to_string(*volume.size_limit);
  return options;
}

/// Why a part of the volume cannot be mounted; empty if it can.
std::string no_sub_path(const ResolvedVolume& volume, int api) {
  if (volume.kind == Kind::kMemory) return "a part of a volume in memory cannot be mounted; mount the whole emptyDir";
  if (volume.kind == Kind::kFiles || api >= kApiWithSubPath) return "";
  return "an engine with API 1." + std::to_string(api) +
         " cannot safely mount a part of a volume that containers write to; mount the whole emptyDir, or use an engine "
         "with API 1." +
         std::to_string(kApiWithSubPath) + " (Docker 26) or later";
}

base::Result<void> check_container(const model::ResolvedPod& pod, const model::ResolvedContainer& container,
                                   const std::string& path, int api) {
  for (size_t i = 0; i < container.mounts.size(); ++i) {
    const model::ResolvedMount& mount = container.mounts[i];
    const ResolvedVolume* const volume = find_volume(pod.volumes, mount.volume);
    const std::string field = path + ".volumeMounts[" + std::to_string(i) + "]";
    if (volume == nullptr) return base::fail(ErrorKind::kInvalid, field + ".name: there is no such volume");
    if (mount.sub_path.empty()) continue;
    if (std::string why = no_sub_path(*volume, api); !why.empty()) {
      return base::fail(ErrorKind::kUnsupported, field + ".subPath: " + why);
    }
    if (!is_inside(mount.sub_path)) {
      return base::fail(ErrorKind::kInvalid, field + ".subPath: it must be a relative path without ..");
    }
  }
  return {};
}

base::Result<void> check_files(const std::vector<model::ResolvedFile>& files) {
  for (const model::ResolvedFile& file : files) {
    if (!is_inside(file.path)) {
      return base::fail(ErrorKind::kInvalid, "a file of volume " + file.volume + " has a path that leads out of it");
    }
  }
  return {};
}

base::Result<json> encode_mount(const InstancePlan& plan, const model::ResolvedMount& wanted,
                                const std::vector<MountPoint>& made) {
  const ResolvedVolume* const volume = find_volume(plan.volumes, wanted.volume);
  const MountPoint* const place = find_place(made, place_of(wanted.volume));
  if (volume == nullptr || place == nullptr) {
    return base::fail(ErrorKind::kInvalid, "volume " + wanted.volume + " is not among the pod's");
  }
  json mount = json::object();
  mount["Target"] = wanted.path;
  mount["ReadOnly"] = wanted.read_only || volume->kind == Kind::kFiles;
  if (wanted.sub_path.empty() || volume->kind != Kind::kFiles) {
    mount["Type"] = "volume";
    mount["Source"] = place->volume;
    mount["VolumeOptions"] = {{"NoCopy", true}};
    if (!wanted.sub_path.empty()) mount["VolumeOptions"]["Subpath"] = wanted.sub_path;
  } else {
    mount["Type"] = "bind";
    mount["Source"] = place->source + "/" + wanted.sub_path;
  }
  return mount;
}

}  // namespace

std::string keeper_name(const std::string& tag) { return tag + ".volumes"; }

bool needs_keeper(const InstancePlan& plan) {
  return has_messages(plan) || std::any_of(plan.volumes.begin(), plan.volumes.end(),
                                           [](const ResolvedVolume& v) { return v.kind != Kind::kMemory; });
}

bool has_memory_volumes(const InstancePlan& plan) {
  return std::any_of(plan.volumes.begin(), plan.volumes.end(),
                     [](const ResolvedVolume& v) { return v.kind == Kind::kMemory; });
}

std::string encode_keeper(const InstancePlan& plan) {
  json mounts = json::array();
  for (const ResolvedVolume& volume : plan.volumes) {
    if (volume.kind == Kind::kMemory) continue;
    json mount = new_volume(plan, volume.name, place_of(volume.name));
    if (volume.kind == Kind::kScratch && volume.size_limit.value_or(0) > 0) {
      mount["VolumeOptions"]["Labels"][std::string(kLabelSizeLimit)] = std::to_string(*volume.size_limit);
    }
    mounts.push_back(std::move(mount));
  }
  if (has_messages(plan)) mounts.push_back(new_volume(plan, "", kMessages));

  json labels = volume_labels(plan, "");
  labels[std::string(kLabelRole)] = std::string(kRoleVolumes);
  const FileOwner owner = owner_of(plan);
  if (owner.group >= 0) labels[std::string(kLabelFsGroup)] = std::to_string(owner.group);

  json host_config = json::object();
  host_config["NetworkMode"] = "none";
  host_config["Mounts"] = std::move(mounts);
  host_config["RestartPolicy"] = {{"Name", "no"}};
  host_config["AutoRemove"] = false;
  host_config["LogConfig"] = {{"Type", "none"}};
  json body = json::object();
  body["Image"] = sandbox_image_name();
  body["Entrypoint"] = {std::string(kSandboxProgram)};
  body["Labels"] = std::move(labels);
  body["HostConfig"] = std::move(host_config);
  return body.dump();
}

std::string keeper_tar(const InstancePlan& plan) {
  const FileOwner owner = owner_of(plan);
  TarWriter tar;
  for (const ResolvedVolume& volume : plan.volumes) {
    if (volume.kind == Kind::kMemory) continue;
    const int mode = volume.kind == Kind::kFiles ? owner.directory_mode() : owner.scratch_mode();
    tar.add_directory(without_slash(place_of(volume.name)), mode, owner.of());
  }
  add_files(tar, plan.files, owner);
  for (const model::ResolvedContainer& container : plan.containers) {
    if (container.termination_message_path.empty()) continue;
    tar.add_file(without_slash(message_path(container.name)), "", kMessageMode);
  }
  return tar.finish();
}

json encode_memory_volumes(const InstancePlan& plan) {
  json mounts = json::array();
  for (const ResolvedVolume& volume : plan.volumes) {
    if (volume.kind != Kind::kMemory) continue;
    json mount = new_volume(plan, volume.name, place_of(volume.name));
    json options = json::object();
    options["type"] = "tmpfs";
    options["device"] = "tmpfs";
    options["o"] = memory_options(volume, owner_of(plan));
    mount["VolumeOptions"]["DriverConfig"] = {{"Name", "local"}, {"Options", std::move(options)}};
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

base::Result<json> encode_mounts(const InstancePlan& plan, const model::ResolvedContainer& container,
                                 const std::vector<MountPoint>& made) {
  json mounts = json::array();
  for (const model::ResolvedMount& wanted : container.mounts) {
    auto mount = encode_mount(plan, wanted, made);
    if (!mount) return base::fail(std::move(mount.error()));
    mounts.push_back(std::move(*mount));
  }
  const MountPoint* const messages = find_place(made, std::string(kMessages));
  if (messages != nullptr && !container.termination_message_path.empty()) {
    mounts.push_back({{"Type", "bind"},
                      {"Source", messages->source + "/" + container.name.str()},
                      {"Target", container.termination_message_path}});
  }
  return mounts;
}

base::Result<void> check_pod(const model::ResolvedPod& pod, int api) {
  const auto is_main = [](const model::ResolvedContainer& c) { return c.role == model::ContainerRole::kMain; };
  const auto inits = std::count_if(pod.containers.begin(), pod.containers.end(), std::not_fn(is_main));
  for (size_t i = 0; i < pod.containers.size(); ++i) {
    const bool main = is_main(pod.containers[i]);
    auto checked = check_container(pod, pod.containers[i],
                                   std::string(main ? "spec.containers[" : "spec.initContainers[") +
                                       std::to_string(main ? i - static_cast<size_t>(inits) : i) + "]",
                                   api);
    if (!checked) return checked;
  }
  auto files = check_files(pod.files);
  if (!files) return files;
  const model::DnsConfig* const dns =
      pod.spec && pod.spec->extras && pod.spec->extras->dns ? &*pod.spec->extras->dns : nullptr;
  if (dns != nullptr && !dns->alone && !dns->nameservers.empty()) {
    return base::fail(ErrorKind::kUnsupported,
                      "spec.dnsConfig.nameservers: the engine cannot add servers to those of its machine, only replace "
                      "them; set dnsPolicy: None");
  }
  return {};
}

FileOwner file_owner(const Labels& keeper) {
  FileOwner owner;
  const std::string& text = label(keeper, kLabelFsGroup);
  if (!text.empty()) owner.group = std::atoll(text.c_str());
  return owner;
}

base::Result<std::string> files_tar(const std::vector<model::ResolvedFile>& files, FileOwner owner,
                                    const std::vector<MountPoint>& made) {
  for (const model::ResolvedFile& file : files) {
    if (find_place(made, place_of(file.volume)) == nullptr) {
      return base::fail(ErrorKind::kInvalid, "the instance has no volume " + file.volume + " of files");
    }
  }
  auto checked = check_files(files);
  if (!checked) return base::fail(std::move(checked.error()));
  TarWriter tar;
  add_files(tar, files, owner);
  return tar.finish();
}

bool mounts_parts(const InstancePlan& plan, const model::ResolvedContainer& container) {
  return std::ranges::any_of(container.mounts, [&](const model::ResolvedMount& mount) {
    const ResolvedVolume* const volume = find_volume(plan.volumes, mount.volume);
    return !mount.sub_path.empty() && volume != nullptr && volume->kind == Kind::kScratch;
  });
}

std::vector<std::string> folders_of(const SubPath& part, const std::vector<MountPoint>& made) {
  std::vector<std::string> out;
  const auto place = std::ranges::find(made, part.volume, &MountPoint::volume);
  if (place == made.end()) return out;
  for (size_t slash = part.path.find('/'); slash != std::string::npos; slash = part.path.find('/', slash + 1)) {
    out.push_back(place->place + "/" + part.path.substr(0, slash));
  }
  out.push_back(place->place + "/" + part.path);
  return out;
}

std::string folders_tar(const std::set<std::string>& folders, FileOwner owner) {
  TarWriter tar;
  for (const std::string& folder : folders) tar.add_directory(without_slash(folder), owner.scratch_mode(), owner.of());
  return tar.finish();
}

std::string message_path(const std::string& container) { return std::string(kMessages) + "/" + container; }

std::string run_book_path(const std::string& container) { return message_path(container) + ".runs"; }

std::string next_run_tar(const std::string& container, const std::string& run_book) {
  TarWriter tar;
  tar.add_file(without_slash(message_path(container)), "", kMessageMode);
  tar.add_file(without_slash(run_book_path(container)), run_book, kBookMode);
  return tar.finish();
}

}  // namespace spillway::providers::docker
