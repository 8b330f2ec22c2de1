// The volumes of a pod on an engine: which there are, what is uploaded into them, and where containers see them.
//
// Pure. All are anonymous volumes of one of two containers, and go with it. The *keeper* (`<tag>.volumes`, made, never
// started) has those on disk: the files and scratch space of the pod, and the termination messages; archives are
// uploaded through it, because an engine takes none into a read-only mount. It never runs, so no process of the pod can
// reach its mounts, and a file of one may be bound by its path on the host. The sandbox has those in memory, which last
// as long as something runs that has them mounted.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "providers/docker/codec.hpp"
#include "providers/docker/tar.hpp"

namespace spillway::providers::docker {

/// Name of the keeper. No container of a pod can be called so: their names follow a dash.
std::string keeper_name(const std::string& tag);
bool needs_keeper(const InstancePlan& plan);
bool has_memory_volumes(const InstancePlan& plan);

/// Body of POST /containers/create for the keeper.
std::string encode_keeper(const InstancePlan& plan);
/// What is uploaded into `/` of the keeper: the roots of its volumes, the files, an empty termination message for each
/// container.
std::string keeper_tar(const InstancePlan& plan);
/// The `Mounts` of the sandbox.
nlohmann::json encode_memory_volumes(const InstancePlan& plan);
/// The `Mounts` of a container, `made` being what keeper and sandbox have. kInvalid if a volume is not among them.
base::Result<nlohmann::json> encode_mounts(const InstancePlan& plan, const model::ResolvedContainer& container,
                                           const std::vector<MountPoint>& made);

/// Before anything is bought: kUnsupported, with the path of the field in the pod, for what an engine cannot do. `api`
/// is the minor version that is spoken with it.
base::Result<void> check_pod(const model::ResolvedPod& pod, int api);

/// The owner and the bits that a kubelet gives to files and folders of a pod with an fsGroup; -1 is none.
struct FileOwner {
  std::int64_t group = -1;

  TarOwner of(std::int64_t user = 0) const { return {user, group < 0 ? 0 : group}; }
  int file_mode(int mode) const { return group < 0 ? mode : mode | 0440; }
  int directory_mode() const { return group < 0 ? 0755 : 02755; }
  int scratch_mode() const { return group < 0 ? 0777 : 02777; }
};
FileOwner file_owner(const Labels& keeper);

/// Files of volumes as an upload into `/` of the keeper. kInvalid if one belongs to none of the `made`, or leads out.
base::Result<std::string> files_tar(const std::vector<model::ResolvedFile>& files, FileOwner owner,
                                    const std::vector<MountPoint>& made);

/// True if the container mounts a part of an emptyDir: a folder or file that must be there when it starts.
bool mounts_parts(const InstancePlan& plan, const model::ResolvedContainer& container);
/// Where the part and all above it lie in the keeper, whose mounts are `made`; the upper ones first.
std::vector<std::string> folders_of(const SubPath& part, const std::vector<MountPoint>& made);
/// An upload into `/` of the keeper that makes these folders, which a kubelet gives the rights of their volume.
std::string folders_tar(const std::set<std::string>& folders, FileOwner owner);

/// Where the termination message of a container lies in the keeper.
std::string message_path(const std::string& container);
/// Where its book of runs (run_book.hpp) does, which no container sees. None is called so: their names have no dot.
std::string run_book_path(const std::string& container);
/// What is uploaded before a container runs again: an empty message, and its book.
std::string next_run_tar(const std::string& container, const std::string& run_book);

}  // namespace spillway::providers::docker
