// The customer's side of the fake cloud: in this process, or behind a socket.
//
// Owned by a FakeProvider; reactor thread only. Calls end by their deadline: kDeadline for a read or if nothing was
// sent, kUnknownOutcome for a write that may have happened. Repeats nothing.
#pragma once

#include <string>
#include <vector>

#include "providers/fake/fake_cloud_types.hpp"
#include "vk-provider/async/task.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::fake {

class FakeCloudApi {
 public:
  virtual ~FakeCloudApi() = default;
  virtual async::Task<std::vector<model::Offer>> list_offers(base::Deadline deadline) = 0;
  virtual async::Task<model::Instance> create(CreateRequest request, base::Deadline deadline) = 0;
  virtual async::Task<model::Instance> get(std::string id, base::Deadline deadline) = 0;
  virtual async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) = 0;
  virtual async::Task<void> terminate(std::string id, std::chrono::seconds grace, base::Deadline deadline) = 0;
  virtual async::Task<void> control(std::string id, std::string container, provider::ContainerAction action,
                                    std::chrono::seconds grace, base::Deadline deadline) = 0;
  // Of no use to a simulation of purchases: the default answers kUnsupported.
  virtual async::Task<LogPage> read_log(std::string id, LogRequest request, base::Deadline deadline);
  virtual async::Task<std::vector<provider::Sample>> samples(base::Deadline deadline);
};

}  // namespace spillway::providers::fake
