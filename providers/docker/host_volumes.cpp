// Volumes, files and termination messages of instances on an engine; what they are is in volume_codec.hpp.
#include <algorithm>

#include "providers/docker/host.hpp"
#include "providers/docker/run_book.hpp"
#include "providers/docker/sandbox_image.hpp"
#include "providers/docker/security_codec.hpp"
#include "providers/docker/tar.hpp"
#include "providers/docker/volume_codec.hpp"

namespace spillway::providers::docker {
namespace {

namespace asio = boost::asio;
using base::ErrorKind;

constexpr base::Duration kCallTime = std::chrono::seconds(60);
// What a kubelet keeps of a termination message, and of the log in its place.
constexpr size_t kLongestMessage = 4096;
constexpr size_t kLongestLogMessage = 2048;
constexpr int kMostLogLines = 80;

std::string last_bytes(std::string text, size_t most) {
  return text.size() > most ? text.substr(text.size() - most) : text;
}

void fail_with(Progress& progress, const std::string& container, std::string message) {
  StartFailure& failure = progress.failures[container];
  failure.reason = "CreateContainerConfigError";
  failure.message = std::move(message);
}

}  // namespace

/// All that a container refers to when it is made. Done again as long as one is missing: then files have no reader yet.
asio::awaitable<Host::Step> Host::surround(WorkPtr work, PlanPtr plan, size_t missing,
                                           std::shared_ptr<Surroundings> around) {
  around->volumes.clear();
  if (has_memory_volumes(*plan)) {
    const auto sandbox = co_await client_.inspect(around->sandbox_id, in(kCallTime));
    if (!sandbox) co_return Step::kAgain;
    around->volumes = sandbox->mounts;
  }
  if (!needs_keeper(*plan)) co_return Step::kDone;
  const std::string name = keeper_name(plan->tag);
  auto keeper = co_await client_.inspect(name, in(kCallTime));
  if (!keeper && keeper.error().kind == ErrorKind::kNotFound) {
    const auto image = co_await ensure_sandbox_image(in(kCallTime));
    if (!image) co_return Step::kAgain;
    const auto made = co_await client_.create(name, encode_keeper(*plan), in(kCallTime));
    if (made && made->status == 404) sandbox_image_present_ = false;  // somebody pruned it
    keeper = co_await client_.inspect(name, in(kCallTime));
    if (!keeper && made && made->status == 400) {
      fail_with(work->progress, plan->containers[missing].name, "the volumes cannot be made: " + made->text);
      co_return Step::kFailed;
    }
  }
  if (!keeper) co_return Step::kAgain;
  if (label(keeper->labels, kLabelTag) != plan->tag) {
    fail_with(work->progress, plan->containers[missing].name,
              "the name " + name + " is taken by a container that is not ours; remove it");
    co_return Step::kFailed;
  }
  const auto uploaded = co_await client_.upload(keeper->id, keeper_tar(*plan), in(kCallTime));
  if (uploaded && !uploaded->ok()) work->progress.activity = "the volumes cannot be filled: " + uploaded->text;
  if (!uploaded || !uploaded->ok()) co_return Step::kAgain;
  work->progress.activity = "starting";
  around->volumes.insert(around->volumes.end(), keeper->mounts.begin(), keeper->mounts.end());
  co_return Step::kDone;
}

/// As whom the container runs, and whether it may.
asio::awaitable<Host::Step> Host::check_user(WorkPtr work, PlanPtr plan, size_t index,
                                             std::shared_ptr<Surroundings> around) {
  const model::ResolvedContainer& container = plan->containers[index];
  around->image_user.clear();
  if (needs_image_user(container)) {
    auto user = co_await client_.image_user(container.image, in(kCallTime));
    if (!user) co_return Step::kAgain;
    around->image_user = std::move(*user);
  }
  std::string breach = breach_of_non_root(*plan, container, around->image_user);
  if (breach.empty()) co_return Step::kDone;
  fail_with(work->progress, container.name, std::move(breach));
  co_return Step::kFailed;
}

async::Task<void> Host::put_files(std::string tag, std::vector<model::ResolvedFile> files, base::Deadline deadline) {
  const auto keeper = co_await client_.inspect(keeper_name(tag), deadline);
  if (!keeper) co_return base::fail(keeper.error());
  if (label(keeper->labels, kLabelTag) != tag) {
    co_return base::fail(ErrorKind::kNotFound, "docker host " + config_.name + ": instance " + tag + " has no volumes");
  }
  auto tar = files_tar(files, file_owner(keeper->labels), keeper->mounts);
  if (!tar) co_return base::fail(std::move(tar.error()));
  const auto answer = co_await client_.upload(keeper->id, std::move(*tar), deadline);
  if (!answer) co_return base::fail(answer.error());
  if (answer->ok()) co_return base::Result<void>();
  co_return base::fail(answer->status == 404 ? ErrorKind::kNotFound : ErrorKind::kUnavailable,
                       "docker host " + config_.name + ": upload of files: " + answer->text);
}

/// A kubelet's rule: the file that the container wrote; if that is empty after a failure, the end of its log.
async::Task<std::string> Host::termination_message(ContainerEntry entry, ContainerFacts facts,
                                                   base::Deadline deadline) {
  const std::string& source = docker::label(entry.labels, kLabelMessage);
  if (source.empty() || facts.start_failed()) co_return std::string();
  const std::string& tag = docker::label(entry.labels, kLabelTag);
  const auto tar =
      co_await client_.download(keeper_name(tag), message_path(docker::label(entry.labels, kLabelContainer)), deadline);
  if (!tar && tar.error().kind == ErrorKind::kInvalid) co_return "the termination message is larger than 1 MiB";
  if (!tar && tar.error().kind != ErrorKind::kNotFound) co_return base::fail(tar.error());
  std::string message = last_bytes(tar ? first_file(*tar).value_or("") : "", kLongestMessage);
  if (!message.empty() || source != kMessageFileOrLog || facts.exit_code == 0) co_return message;
  const auto earlier = co_await runs_before(tag, docker::label(entry.labels, kLabelContainer), facts, deadline);
  if (!earlier) co_return base::fail(earlier.error());
  LogQuery query;
  query.tail = kMostLogLines;
  query.since = latest_run(facts, *earlier).begin;
  const auto log = co_await client_.read_log(facts.id, query, deadline);
  if (!log && (log.error().kind == ErrorKind::kInvalid || log.error().kind == ErrorKind::kNotFound)) {
    co_return std::string();
  }
  if (!log) co_return base::fail(log.error());
  co_return last_bytes(facts.tty ? *log : join_frames(*log), kLongestLogMessage);
}

/// Before a container runs again: its message is of one run, and the engine forgets when the last one was.
async::Task<void> Host::turn_page(std::string tag, std::string container, ContainerFacts ended,
                                  base::Deadline deadline) {
  auto book = co_await read_run_book(tag, container, deadline);
  if (!book) co_return base::fail(std::move(book.error()));
  note_run(*book, ended);
  const auto answer =
      co_await client_.upload(keeper_name(tag), next_run_tar(container, encode_run_book(*book)), deadline);
  if (!answer) co_return base::fail(answer.error());
  if (answer->ok() || answer->status == 404) co_return base::Result<void>();
  co_return base::fail(ErrorKind::kUnavailable, "docker host " + config_.name + ": " + answer->text);
}

/// Before a container starts: the parts of emptyDirs that it mounts must be there, and what another container made in
/// their place stays. A kubelet makes those that are missing.
async::Task<void> Host::make_parts(std::string tag, ContainerFacts facts, base::Deadline deadline) {
  if (facts.sub_paths.empty()) co_return base::Result<void>();
  const auto keeper = co_await client_.inspect(keeper_name(tag), deadline);
  if (!keeper) co_return base::fail(keeper.error());
  std::set<std::string> missing;
  for (const SubPath& part : facts.sub_paths) {
    for (std::string& folder : folders_of(part, keeper->mounts)) {
      const auto there = co_await client_.has_path(keeper->id, folder, deadline);
      if (!there) co_return base::fail(there.error());
      if (!*there) missing.insert(std::move(folder));
    }
  }
  if (missing.empty()) co_return base::Result<void>();
  const auto answer = co_await client_.upload(keeper->id, folders_tar(missing, file_owner(keeper->labels)), deadline);
  if (!answer) co_return base::fail(answer.error());
  if (answer->ok()) co_return base::Result<void>();
  co_return base::fail(
      ErrorKind::kUnavailable,
      "docker host " + config_.name + ": the parts of volumes that a container mounts cannot be made: " + answer->text);
}

async::Task<bool> Host::has_volumes(std::string tag, base::Deadline deadline) {
  const auto volumes = co_await client_.list_volumes(std::string(kLabelTag) + "=" + tag, deadline);
  if (!volumes) co_return base::fail(volumes.error());
  co_return !volumes->empty();
}

/// They go with keeper and sandbox; these are left where one of those was removed without its volumes.
asio::awaitable<void> Host::remove_left_volumes(std::string tag) {
  const auto volumes = co_await client_.list_volumes(std::string(kLabelTag) + "=" + tag, in(kCallTime));
  if (!volumes) co_return;
  for (const VolumeEntry& volume : *volumes) {
    static_cast<void>(co_await client_.remove_volume(volume.name, in(kCallTime)));
  }
}

}  // namespace spillway::providers::docker
