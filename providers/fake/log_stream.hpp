// The log of a container of the fake cloud, as a stream.
//
// Owned by whoever opened it, and dies before its provider; reactor thread only. The cloud has pages of lines and no
// streams: to follow is to ask again, twice a second.
#pragma once

#include <memory>
#include <string>

#include "providers/fake/fake_cloud_api.hpp"
#include "vk-provider/async/byte_stream.hpp"
#include "vk-provider/async/timer.hpp"
#include "vk-provider/provider/log_filter.hpp"

namespace spillway::providers::fake {

class LogStream final : public async::ByteStream {
 public:
  /// `first` is the answer to the first request, for which `options` were seen to.
  LogStream(FakeCloudApi& api, async::Timers& timers, std::string id, const provider::LogOptions& options,
            LogPage first);

  async::Task<std::string> read(base::Deadline deadline) override;
  async::Task<void> write(std::string bytes, base::Deadline deadline) override;
  async::Task<void> close_write(base::Deadline deadline) override;

 private:
  /// What a coroutine needs that still waits when the stream dies.
  struct State;

  static async::Task<std::string> read_from(std::shared_ptr<State> state, base::Deadline deadline);

  std::shared_ptr<State> state_;
};

/// Asks for the first page.
async::Task<async::ByteStreamPtr> open_log(FakeCloudApi& api, async::Timers& timers, std::string id,
                                           provider::LogOptions options, base::Deadline deadline);

}  // namespace spillway::providers::fake
