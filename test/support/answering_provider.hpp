// A provider that buys nothing and answers exec and dial as a test says: for probes and hooks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/support/canned_stream.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::test {

/// A process that ends at once with an exit code, or never.
class ScriptedExec final : public provider::ExecSession {
 public:
  ScriptedExec(async::Timers& timers, std::string output, std::string errors, int code, bool hangs)
      : output_(timers, pieces(std::move(output)), hangs),
        errors_(timers, pieces(std::move(errors)), hangs),
        code_(code) {}

  async::ByteStream* input() override { return nullptr; }
  async::ByteStream& output() override { return output_; }
  async::ByteStream* errors() override { return &errors_; }
  async::Task<int> exit_code(base::Deadline) override { co_return code_; }
  async::Task<void> resize(provider::TerminalSize, base::Deadline) override { co_return base::Result<void>(); }

 private:
  static std::deque<std::string> pieces(std::string text) {
    return text.empty() ? std::deque<std::string>() : std::deque<std::string>{std::move(text)};
  }

  CannedStream output_;
  CannedStream errors_;
  int code_;
};

class AnsweringProvider final : public provider::Provider {
 public:
  AnsweringProvider() { info_.name = base::ProviderName("cloud"); }

  const provider::ProviderInfo& info() const override { return info_; }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline) override { co_return std::vector<model::Offer>(); }
  async::Task<model::Instance> create(model::Placement, model::ResolvedPod, base::Deadline) override {
    co_return base::fail(base::ErrorKind::kUnsupported, "nothing is for sale");
  }
  async::Task<model::Instance> get(model::InstanceRef, base::Deadline) override {
    co_return base::fail(base::ErrorKind::kNotFound, "there is nothing");
  }
  async::Task<provider::OwnedList> list_owned(std::string, base::Deadline) override { co_return provider::OwnedList(); }
  async::Task<void> terminate(model::InstanceRef, std::chrono::seconds, base::Deadline) override {
    co_return base::Result<void>();
  }
  async::Task<provider::ExecSessionPtr> open_exec(model::InstanceRef, provider::ExecOptions options,
                                                  base::Deadline) override {
    execs.push_back(std::move(options));
    co_return exec();
  }
  async::Task<async::ByteStreamPtr> dial(model::InstanceRef, int port, base::Deadline) override {
    dials.push_back(port);
    co_return stream();
  }
  async::Task<async::ByteStreamPtr> open_logs(model::InstanceRef, provider::LogOptions options,
                                              base::Deadline) override {
    logs.push_back(std::move(options));
    co_return log();
  }
  async::Task<std::vector<provider::Sample>> samples(base::Deadline) override {
    ++rounds;
    co_return measure();
  }

  void can(model::Capability capability) { info_.capabilities.add(capability); }

  std::vector<provider::ExecOptions> execs;
  std::vector<int> dials;
  std::vector<provider::LogOptions> logs;
  int rounds = 0;  // of samples
  std::function<base::Result<provider::ExecSessionPtr>()> exec;
  std::function<base::Result<async::ByteStreamPtr>()> stream;
  std::function<base::Result<async::ByteStreamPtr>()> log;
  std::function<base::Result<std::vector<provider::Sample>>()> measure;

 private:
  provider::ProviderInfo info_;
};

}  // namespace spillway::test
