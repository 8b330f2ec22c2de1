// Reaches a fake cloud in another process, over its socket.
//
// Owned by a FakeProvider; reactor thread only. One request per call, repeats nothing. kNotFound comes only from the
// fake cloud itself, never from a 404 of somebody else at that socket.
#pragma once

#include <memory>
#include <string>

#include "providers/fake/fake_cloud_api.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::providers::fake {

class HttpCloud final : public FakeCloudApi {
 public:
  explicit HttpCloud(std::unique_ptr<net::HttpClient> http) : http_(std::move(http)) {}

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
  /// The body of a 2xx answer.
  async::Task<std::string> send(net::Method method, std::string target, std::string body, base::Deadline deadline);

  std::unique_ptr<net::HttpClient> http_;
};

}  // namespace spillway::providers::fake
