// Reads of a live cluster what the doctor judges: lists page by page, of each object a few fields.
//
// Owned by the doctor's coroutine, which outlives its own; main's thread. Only asks, and repeats nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/daemon/cli_doctor.hpp"

namespace spillway::daemon {

class DoctorReader {
 public:
  DoctorReader(Surroundings in, const DoctorOptions& options);
  DoctorReader(const DoctorReader&) = delete;
  DoctorReader& operator=(const DoctorReader&) = delete;

  /// An error: the API server does not answer, or does not know us. What one list lacks stands in the facts.
  async::Task<void> read_cluster();
  boost::asio::awaitable<void> read_providers();

  const core::DoctorFacts& facts() const { return facts_; }

 private:
  template <class T>
  using Take = std::function<void(std::string_view item, std::vector<T>& out)>;

  /// All pages of a list.
  template <class T>
  async::Task<std::vector<T>> list(std::string target, Take<T> take);
  async::Task<std::string> get(std::string target);

  boost::asio::awaitable<void> read_clock();
  boost::asio::awaitable<void> read_nodes();
  boost::asio::awaitable<void> read_pods();
  boost::asio::awaitable<void> read_workloads();
  boost::asio::awaitable<void> read_flavors();
  boost::asio::awaitable<void> read_training_class();
  boost::asio::awaitable<void> read_signings();
  boost::asio::awaitable<void> read_leases();
  async::Task<void> read_lease(std::string ns, std::string name, std::string purpose);
  boost::asio::awaitable<void> read_rights();
  async::Task<void> read_rights_of(std::string account, std::vector<core::Right> rights);

  base::Deadline deadline() const;

  Surroundings in_;
  const DoctorOptions& options_;
  core::DoctorFacts facts_;
};

}  // namespace spillway::daemon
