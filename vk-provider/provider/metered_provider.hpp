// Measures every call of a provider, bounds how long it may take, and tells a bookkeeper what it says of instances.
//
// Decorator; owns the provider inside. Reactor thread only. Decides nothing about retries: throttled_provider stands
// outside of it, so that only calls that are really made are counted.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "vk-provider/base/metrics.hpp"
#include "vk-provider/provider/bookkeeper.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::provider {

/// The longest time that a call may take, whatever its caller allows. A create must end inside the installation lease.
inline constexpr std::chrono::seconds kCreateDeadline{20};

class MeteredProvider final : public Provider {
 public:
  /// `books` may be null; otherwise it outlives this.
  MeteredProvider(std::unique_ptr<Provider> inner, const base::Clock& clock, base::Metrics& metrics,
                  Bookkeeper* books = nullptr);

  const ProviderInfo& info() const override { return inner_->info(); }
  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override;
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override;
  async::Task<OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override;
  async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> open_logs(model::InstanceRef ref, LogOptions options,
                                              base::Deadline deadline) override;
  async::Task<ExecSessionPtr> open_exec(model::InstanceRef ref, ExecOptions options, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> dial(model::InstanceRef ref, int port, base::Deadline deadline) override;
  async::Task<std::vector<Sample>> samples(base::Deadline deadline) override;
  async::Task<void> control_container(model::InstanceRef ref, std::string container, ContainerAction action,
                                      std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<void> put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                              base::Deadline deadline) override;
  boost::asio::awaitable<void> stop() override { return inner_->stop(); }

 private:
  base::Deadline capped(base::Deadline deadline, base::Duration longest) const;
  void note(std::string_view method, base::TimePoint begun, const base::Error* error);
  template <class T>
  async::Task<T> measure(std::string_view method, async::Task<T> call);

  std::unique_ptr<Provider> inner_;
  const base::Clock& clock_;
  base::Metrics& metrics_;
  Bookkeeper* books_;
  std::map<std::pair<std::string_view, std::string_view>, base::Histogram*> histograms_;  // by method and outcome
};

}  // namespace spillway::provider
