// The calls of one Docker Engine that we make, one method each.
//
// Owned by a Host; reactor thread only. Translates and classifies; does not repeat, remember or decide.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "providers/docker/codec.hpp"
#include "providers/docker/engine_http.hpp"
#include "providers/docker/exec_codec.hpp"
#include "providers/docker/image_reference.hpp"
#include "providers/docker/log_codec.hpp"
#include "providers/docker/stats_codec.hpp"
#include "vk-provider/async/task.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::providers::docker {

struct Listing {
  Listing() = default;
  std::vector<ContainerEntry> entries;
  std::optional<base::WallTime> engine_time;  // by the engine's clock, when it answered
};

/// What the engine said to a write; any status. A call that got no answer is an Error instead.
struct Answer {
  Answer() = default;
  int status = 0;
  std::string text;  // the new id after a create; the engine's own words for a status of 400 or more

  bool ok() const { return status < 400; }
};

struct PullResult {
  PullResult() = default;
  enum class Kind : std::uint8_t {
    kPulled,
    kMissing,      // no such image, or no right to know
    kDenied,       // the registry wants other credentials
    kRateLimited,  // too many pulls for this account or address
    kNoPlatform,   // it exists, but not for this machine
    kMalformed,    // the engine does not take the name
    kUnreachable,  // the registry did not answer: another time may do
    kNoProgress,   // nothing came for the time that is allowed
    kOther,        // the engine's words say which
    kEngineLost,   // the engine itself went away
  };
  Kind kind = Kind::kPulled;
  std::string text;
};

/// By the engine's words: it has no code for what went wrong with a registry.
PullResult::Kind classify_pull_error(std::string_view text);

class EngineClient {
 public:
  EngineClient(std::string host, std::unique_ptr<net::HttpClient> http, async::Timers& timers)
      : host_(std::move(host)), http_(std::make_unique<EngineHttp>(std::move(http))), timers_(timers) {}

  /// All containers, also stopped ones, with this label (`key` or `key=value`).
  async::Task<Listing> list(std::string label, base::Deadline deadline);
  /// By id or name; kNotFound.
  async::Task<ContainerFacts> inspect(std::string container, base::Deadline deadline);
  async::Task<Answer> create(std::string name, std::string body, base::Deadline deadline);
  async::Task<Answer> start(std::string id, base::Deadline deadline);
  /// SIGTERM (or the image's signal), after `grace` SIGKILL; answered when it has stopped. Without a grace the one that
  /// the container was made with. Takes a connection of its own: many that wait here do not keep other calls waiting.
  async::Task<Answer> stop(std::string id, std::chrono::seconds grace, base::Deadline deadline);
  async::Task<Answer> restart(std::string id, std::chrono::seconds grace, base::Deadline deadline);
  /// With its anonymous volumes, by force.
  async::Task<Answer> remove(std::string id, base::Deadline deadline);

  // client_volumes.cpp
  /// Unpacks it at `/`: also into a container that was never started, and into its volumes.
  async::Task<Answer> upload(std::string container, std::string tar, base::Deadline deadline);
  /// True if there is a file or folder at that path in the container or its volumes.
  async::Task<bool> has_path(std::string container, std::string path, base::Deadline deadline);
  /// A tar of one file; kNotFound, and kInvalid if it is larger than 1 MiB.
  async::Task<std::string> download(std::string container, std::string path, base::Deadline deadline);
  async::Task<std::vector<VolumeEntry>> list_volumes(std::string label, base::Deadline deadline);
  async::Task<Answer> remove_volume(std::string name, base::Deadline deadline);
  /// Of everything that the engine has: it looks at each file, which takes its time.
  async::Task<DiskUsage> disk_usage(base::Deadline deadline);
  /// As whom its containers run: `Config.User`, empty for root.
  async::Task<std::string> image_user(std::string image, base::Deadline deadline);

  async::Task<bool> has_image(std::string name, base::Deadline deadline);
  async::Task<std::string> architecture(base::Deadline deadline);
  /// The minor version of API 1 that is spoken with it.
  async::Task<int> api(base::Deadline deadline);
  async::Task<void> import_image(std::string repository, std::string tag, std::string tar, base::Deadline deadline);
  /// Takes as long as it takes while something comes at least every `no_progress`; ended by cancellation. `account` is
  /// encode_registry_auth's; empty for none.
  async::Task<PullResult> pull(ImageReference image, base::Secret account, base::Duration no_progress);

  // client_exec.cpp. A container or exec that is not there is kNotFound; one that does not run, kConflict.
  /// Makes an exec, which runs nothing yet; its id.
  async::Task<std::string> create_exec(std::string container, std::string body, base::Deadline deadline);
  /// Runs it. The stream is that of the process; it can be written to if `writes`.
  async::Task<async::ByteStreamPtr> start_exec(std::string id, bool tty, bool writes, base::Deadline deadline);
  async::Task<async::ByteStreamPtr> attach(std::string container, bool writes, base::Deadline deadline);
  async::Task<ExecState> inspect_exec(std::string id, base::Deadline deadline);
  /// `path` is `/exec/ID` or `/containers/ID`.
  async::Task<Answer> resize(std::string path, provider::TerminalSize size, base::Deadline deadline);

  // client_logs.cpp
  /// Frames, or from a container with a terminal the bytes themselves; ends with the log. kUnsupported if the engine
  /// cannot read it.
  async::Task<async::ByteStreamPtr> open_log(std::string container, LogQuery query, base::Deadline deadline);
  /// The same in one piece; kInvalid if it exceeds 1 MiB.
  async::Task<std::string> read_log(std::string container, LogQuery query, base::Deadline deadline);
  async::Task<ContainerStats> stats(std::string container, base::Deadline deadline);

  const std::string& host() const { return host_; }

 private:
  async::Task<async::ByteStreamPtr> upgrade(std::string target, std::string body, bool writes, base::Deadline deadline);
  async::Task<net::HttpResponse> send(net::Method method, std::string target, std::string body,
                                      base::Deadline deadline);
  async::Task<Answer> write(net::Method method, std::string target, std::string body, base::Deadline deadline);
  async::Task<Answer> answer_to(net::HttpRequest request, base::Deadline deadline);
  /// A body that is not JSON, and not large. `what` names it in errors.
  async::Task<std::string> read_bytes(std::string target, std::string what, base::Deadline deadline);
  static std::string path_of(const std::string& container, std::string_view rest = "");
  async::Task<Answer> slow_post(std::string target, base::Deadline deadline);
  /// Of an answer of 400 or more to a read.
  base::Error refusal(const net::HttpResponse& response, std::string_view what) const;
  base::Error named(base::Error error) const;

  std::string host_;
  std::unique_ptr<EngineHttp> http_;
  async::Timers& timers_;
};

}  // namespace spillway::providers::docker
