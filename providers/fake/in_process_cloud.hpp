// Reaches a FakeCloud in this process: what a Reply says of loss and delay is acted out in (virtual) time.
//
// Owned by a FakeProvider; the cloud and the timers outlive it. Reactor thread only. Without a delay nothing is waited
// for.
#pragma once

#include "providers/fake/fake_cloud.hpp"
#include "providers/fake/fake_cloud_api.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::providers::fake {

class InProcessCloud final : public FakeCloudApi {
 public:
  InProcessCloud(FakeCloud& cloud, async::Timers& timers) : cloud_(cloud), timers_(timers) {}

  async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) override;
  async::Task<model::Instance> create(CreateRequest request, base::Deadline deadline) override;
  async::Task<model::Instance> get(std::string id, base::Deadline deadline) override;
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override;
  async::Task<void> terminate(std::string id, std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<void> control(std::string id, std::string container, provider::ContainerAction action,
                            std::chrono::seconds grace, base::Deadline deadline) override;
  async::Task<LogPage> read_log(std::string id, LogRequest request, base::Deadline deadline) override;
  async::Task<std::vector<provider::Sample>> samples(base::Deadline deadline) override;

 private:
  template <class T>
  async::Task<T> deliver(Reply<T> reply, bool is_write, base::Deadline deadline);
  bool too_late(base::Deadline deadline) const { return timers_.now() >= deadline; }

  FakeCloud& cloud_;
  async::Timers& timers_;
};

}  // namespace spillway::providers::fake
