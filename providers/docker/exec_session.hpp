// An exec or attach on an engine, as provider::ExecSession.
//
// Owned by whoever opened it, and dies before its provider; reactor thread only. Its death closes the connection: the
// engine then ends the standard input of the process, and leaves the process alone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "providers/docker/client.hpp"
#include "providers/docker/exec_wire.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::docker {

class DockerExecSession final : public provider::ExecSession {
 public:
  enum class Kind : std::uint8_t { kExec, kAttach };

  /// `id` is of the exec, or of the container that was attached to. `left` is called with it if the session dies before
  /// its process is known to have ended.
  DockerExecSession(EngineClient& client, async::Timers& timers, Kind kind, std::string id, ExecWirePtr wire,
                    const provider::ExecOptions& options, std::function<void(const std::string&)> left = {});
  ~DockerExecSession() override;
  DockerExecSession(const DockerExecSession&) = delete;
  DockerExecSession& operator=(const DockerExecSession&) = delete;

  async::ByteStream* input() override { return input_.get(); }
  async::ByteStream& output() override { return *output_; }
  async::ByteStream* errors() override { return errors_.get(); }
  async::Task<int> exit_code(base::Deadline deadline) override;
  async::Task<void> resize(provider::TerminalSize size, base::Deadline deadline) override;

 private:
  /// What a coroutine needs that still waits when the session dies.
  struct Subject;

  static async::Task<int> wait_for_exit(std::shared_ptr<Subject> subject, base::Deadline deadline);
  static async::Task<void> set_size(std::shared_ptr<Subject> subject, provider::TerminalSize size,
                                    base::Deadline deadline);

  std::shared_ptr<Subject> subject_;
  ExecWirePtr wire_;
  async::ByteStreamPtr input_;
  async::ByteStreamPtr output_;
  async::ByteStreamPtr errors_;
  std::function<void(const std::string&)> left_;
};

}  // namespace spillway::providers::docker
