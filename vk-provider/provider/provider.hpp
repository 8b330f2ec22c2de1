// The seam to a cloud: what a provider must do, and what it may do.
//
// A provider is a guest: it includes provider/, net/, model/ and base/, nothing else of the daemon. It is called on the
// reactor thread only and is destroyed after stop(). It translates: no method logs, retries, caches answers, sleeps or
// measures; decorators do that (metered_provider, throttled_provider). Every call ends by its deadline with kDeadline
// for a read, and kUnknownOutcome for a write that may have happened.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/task.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/model/capability.hpp"
#include "vk-provider/model/instance.hpp"
#include "vk-provider/model/offer.hpp"
#include "vk-provider/model/placement.hpp"
#include "vk-provider/model/resolved_pod.hpp"

namespace spillway::provider {

struct ProviderInfo {
  ProviderInfo() = default;
  base::ProviderName name;  // of the configuration
  std::string type;         // fake, docker, ...
  model::CapabilitySet capabilities;
  model::Trust trust = model::Trust::kDatacenter;
  /// Machines of the user's own: they may cost nothing, and have GPUs of any name.
  bool own_machines = false;
  bool address_routable = false;  // Instance::address can be a podIP
  /// How long after an unanswered create its instance may still turn up in list_owned.
  base::Duration settle_time{std::chrono::seconds(10)};
  /// How often it is good to list what we own: while something is on its way, and at rest.
  base::Duration list_busy_every{std::chrono::seconds(1)};
  base::Duration list_idle_every{std::chrono::seconds(10)};
  base::Duration offers_every{std::chrono::seconds(30)};
};

/// One listing. `complete` is false if the provider could not see everything (a host was unreachable, a page failed):
/// then what is in it is true, and what is not in it means nothing.
struct OwnedList {
  OwnedList() = default;
  std::vector<model::Instance> instances;
  bool complete = true;
  std::string incomplete_why;
};

enum class LogChannel : std::uint8_t { kStdout, kStderr };

/// What of a container's log is wanted. All of it is of one run: what a container wrote before it was started again is
/// the log of an earlier one.
struct LogOptions {
  LogOptions() = default;
  std::string container;
  bool follow = false;  // goes on until the run ends
  /// Of the run before the latest one. The latest is the one that ended, while a container waits to be started again.
  bool previous = false;
  bool timestamps = false;                  // before each line: RFC 3339 in UTC with nine digits, and a blank
  std::optional<LogChannel> channel;        // empty: both, in the order in which they were written
  std::optional<std::int64_t> tail_lines;   // the last ones of those that there are; 0: none of them
  std::optional<std::int64_t> limit_bytes;  // of what read() gives; then the stream ends
  std::optional<base::WallTime> since;      // lines that were written at this time or later
};

struct TerminalSize {
  TerminalSize() = default;
  int columns = 80;
  int rows = 24;
};

struct ExecOptions {
  ExecOptions() = default;
  std::string container;
  std::vector<std::string> command;  // empty: attach to the container's own process
  bool stdin_open = false;
  bool tty = false;
  std::optional<TerminalSize> size;
  /// It is repeated by somebody who may lose patience. A provider that cannot end a process whose session has died does
  /// not begin it while several of the same command hang in the container: kDeadline.
  bool repeated = false;
};

/// A running exec or attach. Its death ends the connection, not the process.
class ExecSession {
 public:
  virtual ~ExecSession() = default;
  /// Standard input; null without stdin_open. close_write is its end of file.
  virtual async::ByteStream* input() = 0;
  /// Standard output, and standard error with a tty. Reads end with an empty text.
  virtual async::ByteStream& output() = 0;
  /// Standard error; null with a tty. Both outputs are to be read, or the process stands still.
  virtual async::ByteStream* errors() = 0;
  /// Of the process, once it has ended; kUnsupported for an attach.
  virtual async::Task<int> exit_code(base::Deadline deadline) = 0;
  virtual async::Task<void> resize(TerminalSize size, base::Deadline deadline) = 0;
};
using ExecSessionPtr = std::unique_ptr<ExecSession>;

/// Use of one container, for metrics. Unknown values are absent, never zero.
struct Sample {
  Sample() = default;
  model::InstanceRef instance;
  std::string container;
  std::optional<std::uint64_t> cpu_ns;       // used since its start
  std::optional<std::uint64_t> working_set;  // bytes
  base::WallTime at;                         // by the clock of whoever measured
};

enum class ContainerAction : std::uint8_t { kStart, kStop, kRestart };

class Provider {
 public:
  virtual ~Provider() = default;

  virtual const ProviderInfo& info() const = 0;

  /// All that is sold, with available=false for what is sold out now. Free of side effects.
  virtual async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) = 0;

  /// Buys. Idempotent on placement.tag: with a tag that was used before, the instance that exists is returned, and an
  /// unfinished one (kPending) is carried on with. Returns as soon as the cloud has accepted; boot and image pull show
  /// in later listings. An answer that was lost is kUnknownOutcome, never kUnavailable.
  virtual async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                              base::Deadline deadline) = 0;

  /// kNotFound = gone for good, and no longer billed.
  virtual async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) = 0;

  /// Every instance that carries a tag with this prefix (Ownership::prefix), also those that are stopping or stopped:
  /// the truth about billing.
  virtual async::Task<OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) = 0;

  /// Asks for the end; repeated by the caller until get says kNotFound. `grace` is what is left of the pod's grace
  /// period. Returns as soon as the cloud has accepted. kNotFound is success.
  virtual async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) = 0;

  // Optional, by capability; the default answers kUnsupported.

  /// The log of a container that runs or has ended, byte for byte. Read from the stream until an empty text: that is
  /// the end of the log, and with `follow` that of the run. Nothing is read ahead: who does not read holds up nobody
  /// else. kNotFound: no such instance or container, or with `previous` no earlier run. kConflict: it was not started
  /// yet. kUnsupported: its log cannot be read. A read fails with kUnavailable where the log breaks off.
  virtual async::Task<async::ByteStreamPtr> open_logs(model::InstanceRef ref, LogOptions options,
                                                      base::Deadline deadline);
  /// kNotFound: no such instance or container. kConflict: it does not run. kInvalid: a command that cannot be passed
  /// on.
  virtual async::Task<ExecSessionPtr> open_exec(model::InstanceRef ref, ExecOptions options, base::Deadline deadline);
  /// A connection to a port inside the instance, also one that listens on 127.0.0.1 only. kNotFound: no such instance.
  /// kConflict: nothing listens there, or nothing runs. kInvalid: no port.
  virtual async::Task<async::ByteStreamPtr> dial(model::InstanceRef ref, int port, base::Deadline deadline);
  /// Of the running containers of all instances, in one call; what cannot be measured now is left out. kUnavailable
  /// only if nothing could be asked.
  virtual async::Task<std::vector<Sample>> samples(base::Deadline deadline);
  /// Whether to restart is decided in core, never by an engine's own restart policy. `grace` is what kStop and kRestart
  /// leave the container; a stop returns as soon as the cloud has accepted. kStart also starts what create only made.
  virtual async::Task<void> control_container(model::InstanceRef ref, std::string container, ContainerAction action,
                                              std::chrono::seconds grace, base::Deadline deadline);
  /// Replaces these files of the instance's volumes, each as a whole.
  virtual async::Task<void> put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                                      base::Deadline deadline);

  /// Cancels and awaits what runs in the background (image pulls). Instances stay as they are.
  virtual boost::asio::awaitable<void> stop();
};

}  // namespace spillway::provider
