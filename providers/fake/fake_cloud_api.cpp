#include "providers/fake/fake_cloud_api.hpp"

namespace spillway::providers::fake {

async::Task<LogPage> FakeCloudApi::read_log(std::string, LogRequest, base::Deadline) {
  co_return base::fail(base::ErrorKind::kUnsupported, "this fake cloud has no logs");
}
async::Task<std::vector<provider::Sample>> FakeCloudApi::samples(base::Deadline) {
  co_return base::fail(base::ErrorKind::kUnsupported, "this fake cloud takes no samples");
}

}  // namespace spillway::providers::fake
