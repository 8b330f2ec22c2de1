// What decided where pods went, as a file of JSON lines: listings, what was learnt, and each choice (decision_codec).
//
// Owned by main, outlives the daemon; reactor thread only. Lines are gathered and written in pieces by the operating
// system's cache; nothing waits for a disk. A file that cannot be written is told once in the log and costs no pod
// anything. Holds names of pods' shapes, offers and tags; no environment, argument or secret.
//
// FILE is the newest part; when it is full it becomes FILE.1, which was FILE.2 ... and the oldest is dropped. The parts
// are one log: core/ keeps what it has learnt from all of it, so that only the whole can be replayed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "vk-provider/base/error.hpp"
#include "vk-provider/core/selector.hpp"

namespace spillway::control {

struct DecisionLogLimits {
  std::uint64_t part_bytes = std::uint64_t{64} << 20U;
  int parts = 4;
};

class DecisionLog {
 public:
  /// Begins a new log; what stands in the file becomes its older parts. kInvalid if it cannot be written.
  static base::Result<std::unique_ptr<DecisionLog>> create(std::string file, DecisionLogLimits limits = {});
  ~DecisionLog();
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  /// A book and beliefs that know nothing: at the start, and when the daemon stood by meanwhile.
  void begin(const std::vector<core::ProviderAbility>& abilities);
  /// Before the book is told. Only what changed since the provider's last listing is written.
  void listed(const base::ProviderName& provider, const std::vector<model::Offer>& offers, base::TimePoint now,
              bool own_machines);
  void asked(const core::PoolKey& pool, const base::InstanceTag& who, base::TimePoint now);
  void learnt(const core::PoolKey& pool, const core::Beliefs::Report& report, base::TimePoint now);
  void decided(const core::Query& query, const core::Decision& decision, base::TimePoint now);
  void flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  DecisionLog(std::string file, DecisionLogLimits limits) : file_(std::move(file)), limits_(limits) {}
  base::Result<void> open_part();
  void write(std::string line);
  void move_on() const;
  void turn_over();
  void fail(const std::string& what);

  std::string file_;
  DecisionLogLimits limits_;
  File out_;
  std::uint64_t part_ = 0;  // from 1
  std::uint64_t written_ = 0;
  std::string buffer_;
  bool failed_ = false;
  std::map<base::ProviderName, std::unordered_map<base::OfferId, size_t>> offers_;  // hashes of what was written last
  std::unordered_map<std::uint64_t, core::Shape> shapes_;                           // that were written, by their hash
};

}  // namespace spillway::control
