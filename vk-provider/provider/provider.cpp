#include "vk-provider/provider/provider.hpp"

namespace spillway::provider {
namespace {

std::unexpected<base::Error> unsupported(const Provider& provider, std::string_view what) {
  return base::fail(base::ErrorKind::kUnsupported,
                    "provider " + provider.info().name.str() + " cannot do " + std::string(what));
}

}  // namespace

async::Task<async::ByteStreamPtr> Provider::open_logs(model::InstanceRef, LogOptions, base::Deadline) {
  co_return unsupported(*this, "logs");
}
async::Task<ExecSessionPtr> Provider::open_exec(model::InstanceRef, ExecOptions, base::Deadline) {
  co_return unsupported(*this, "exec and attach");
}
async::Task<async::ByteStreamPtr> Provider::dial(model::InstanceRef, int, base::Deadline) {
  co_return unsupported(*this, "connections to a port");
}
async::Task<std::vector<Sample>> Provider::samples(base::Deadline) { co_return unsupported(*this, "samples of use"); }
async::Task<void> Provider::control_container(model::InstanceRef, std::string, ContainerAction, std::chrono::seconds,
                                              base::Deadline) {
  co_return unsupported(*this, "start and stop of a container");
}
async::Task<void> Provider::put_files(model::InstanceRef, std::vector<model::ResolvedFile>, base::Deadline) {
  co_return unsupported(*this, "files");
}
boost::asio::awaitable<void> Provider::stop() { co_return; }

}  // namespace spillway::provider
