// Between the Docker Engine's JSON (API 1.41 to 1.45) and our values.
//
// Pure. Fields that are absent, null or of another type are taken as unknown; bytes that are no JSON are an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/docker/config.hpp"
#include "vk-provider/base/error.hpp"
#include "vk-provider/model/instance.hpp"
#include "vk-provider/model/placement.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::providers::docker {

// What we write on every container, and all that is known of an instance after a restart of the daemon.
inline constexpr std::string_view kLabelTag = "spillway.dev/tag";
inline constexpr std::string_view kLabelRole = "spillway.dev/role";
inline constexpr std::string_view kLabelContainer = "spillway.dev/container";  // name of the container in the pod
inline constexpr std::string_view kLabelPod = "spillway.dev/pod";              // namespace/name, for people
inline constexpr std::string_view kLabelPart = "spillway.dev/part";            // of a container: init, sidecar, main
inline constexpr std::string_view kLabelOrder = "spillway.dev/order";          // of a container: its place in the pod
// On the sandbox only.
inline constexpr std::string_view kLabelContainers = "spillway.dev/containers";  // names, with commas
inline constexpr std::string_view kLabelParts = "spillway.dev/parts";            // of each of them, in the same order
inline constexpr std::string_view kLabelGpus = "spillway.dev/gpus";              // indices, with commas
inline constexpr std::string_view kLabelRestartPolicy = "spillway.dev/restart-policy";
inline constexpr std::string_view kLabelPrice = "spillway.dev/price-micros";  // per hour

// On a volume, the keeper of volumes, a container.
inline constexpr std::string_view kLabelVolume = "spillway.dev/volume";                // its name in the pod
inline constexpr std::string_view kLabelFsGroup = "spillway.dev/fs-group";             // of the pod
inline constexpr std::string_view kLabelSizeLimit = "spillway.dev/size-limit";         // of a volume, bytes
inline constexpr std::string_view kLabelDiskLimit = "spillway.dev/disk-limit";         // of a container, bytes
inline constexpr std::string_view kLabelMessage = "spillway.dev/termination-message";  // kMessageFile or ...OrLog

inline constexpr std::string_view kRoleSandbox = "sandbox";
inline constexpr std::string_view kRoleContainer = "container";
inline constexpr std::string_view kRoleVolumes = "volumes";  // volume_codec.hpp

inline constexpr std::string_view kMessageFile = "file";
inline constexpr std::string_view kMessageFileOrLog = "file-or-log";

/// Of kLabelRestartPolicy: containers of the pod have rules of their own, so that an exit alone proves nothing.
inline constexpr std::string_view kRestartByContainer = "ByContainer";

/// A label's word for it, and back: anything else is a main container, as before there were others.
std::string_view to_string(model::ContainerRole part);
model::ContainerRole from_part_label(std::string_view text);

using Labels = std::map<std::string, std::string, std::less<>>;
/// An empty text if there is no such label.
const std::string& label(const Labels& labels, std::string_view key);

/// One container in a listing.
struct ContainerEntry {
  ContainerEntry() = default;
  std::string id;
  std::string name;    // without its leading slash
  std::string state;   // created, running, paused, restarting, removing, exited, dead
  std::string status;  // in words: status_text.hpp
  std::string image_id;
  Labels labels;
  std::optional<base::WallTime> created;
  std::vector<model::InstancePort> ports;  // published ones
};

/// A volume that a container has mounted.
struct MountPoint {
  MountPoint() = default;
  std::string place;   // in the container
  std::string volume;  // its name at the engine; empty for a bind
  std::string source;  // on the host
};

/// One volume in a listing.
struct VolumeEntry {
  VolumeEntry() = default;
  std::string name;
  Labels labels;
};

/// What a container or a volume of ours takes on the disk.
struct DiskUse {
  DiskUse() = default;
  Labels labels;
  std::int64_t bytes = 0;
};
struct DiskUsage {
  DiskUsage() = default;
  std::vector<DiskUse> containers;  // what they wrote beside their volumes, without logs
  std::vector<DiskUse> volumes;
};

/// A part of a volume that a container was made to mount.
struct SubPath {
  SubPath() = default;
  std::string volume;  // its name at the engine
  std::string path;    // inside it
};

/// One container as inspected. Times are empty where the engine has year 1.
struct ContainerFacts {
  ContainerFacts() = default;
  std::string id;
  std::string state;
  std::string error;  // why the last start failed
  int exit_code = 0;
  bool oom_killed = false;
  bool tty = false;
  Labels labels;
  std::string image_id;
  std::optional<base::WallTime> created;
  std::optional<base::WallTime> started_at;
  std::optional<base::WallTime> finished_at;
  std::vector<MountPoint> mounts;
  std::vector<SubPath> sub_paths;
  std::string termination_message;  // read apart, once it has ended

  bool running() const { return state == "running" || state == "paused"; }
  /// A start was asked for and refused (no such program, no such device); State.Status is `created` or `exited` then.
  bool start_failed() const { return !running() && !error.empty(); }
  bool never_started() const { return state == "created" && error.empty(); }
};

base::Result<std::vector<ContainerEntry>> decode_list(std::string_view body);
base::Result<ContainerFacts> decode_container(std::string_view body);
/// `Id` of the answer to a create.
base::Result<std::string> decode_created(std::string_view body);
/// What GET /version says.
struct EngineVersion {
  EngineVersion() = default;
  std::string architecture;  // amd64
  // Minor versions of API 1 that it speaks.
  int oldest = 0;
  int newest = 0;
};
base::Result<EngineVersion> decode_version(std::string_view body);
base::Result<std::vector<VolumeEntry>> decode_volumes(std::string_view body);
/// Of GET /system/df: what has our tag. A volume whose size the engine cannot tell is left out.
base::Result<DiskUsage> decode_disk_usage(std::string_view body);
/// `Config.User` of an image.
std::string decode_image_user(std::string_view body);
/// The output of a container without a terminal, freed of the engine's frames (a type, three zeros, a length).
std::string join_frames(std::string_view framed);
/// `message` of an error; the body itself, cut, if it is no JSON.
std::string decode_message(std::string_view body);
/// The error in one line of a pull's progress, if it is one.
std::optional<std::string> decode_pull_error(std::string_view line);

/// What a sandbox and its containers are made from.
struct InstancePlan {
  InstancePlan() = default;
  std::string tag;
  std::string hostname;
  std::string pod;     // namespace/name
  std::string pod_id;  // name_namespace(uid), as a kubelet names a pod in its messages
  std::vector<int> gpus;
  base::Money price_per_hour;
  std::string restart_policy{"Always"};  // value of its label
  std::chrono::seconds grace{30};
  std::vector<int> public_ports;
  std::vector<model::ResolvedContainer> containers;
  std::vector<model::PullAuth> pull_auth;
  std::vector<model::ResolvedVolume> volumes;
  std::vector<model::ResolvedFile> files;
  model::PodSpecPtr spec;  // may be null
};
InstancePlan make_plan(const model::Placement& placement, model::ResolvedPod pod, std::vector<int> gpus,
                       base::Money price);

std::string container_name(const std::string& tag, const std::string& container);

/// Bodies of POST /containers/create.
std::string encode_sandbox(const InstancePlan& plan, const HostConfig& host);
/// What is known only when the rest of an instance stands.
struct Surroundings {
  Surroundings() = default;
  std::string sandbox_id;
  std::vector<MountPoint> volumes;  // of the sandbox and the keeper
  std::string image_user;           // if needs_image_user()
};
/// Of the container at `index` of the plan. kInvalid, with the variable's name and never its value, if a text is not
/// UTF-8: JSON cannot carry it.
base::Result<std::string> encode_container(const InstancePlan& plan, size_t index, const Surroundings& around,
                                           const HostConfig& host);

/// `filters=` of a listing: what has this label (`key` or `key=value`), encoded for a query.
std::string encode_label_filter(std::string_view label);

}  // namespace spillway::providers::docker
