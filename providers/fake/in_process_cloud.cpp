#include "providers/fake/in_process_cloud.hpp"

namespace spillway::providers::fake {
namespace {

using base::ErrorKind;

std::unexpected<base::Error> not_sent() {
  return base::fail(ErrorKind::kDeadline, "the deadline passed before the fake cloud was asked");
}

}  // namespace

template <class T>
async::Task<T> InProcessCloud::deliver(Reply<T> reply, bool is_write, base::Deadline deadline) {
  if (reply.delay > base::Duration{0}) {
    const base::TimePoint answered = timers_.now() + reply.delay;
    co_await timers_.sleep_until(std::min(answered, deadline));
    if (answered > deadline) {
      co_return base::fail(is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kDeadline,
                           "the fake cloud did not answer in time");
    }
  }
  if (reply.lost) {
    co_return base::fail(is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable,
                         "the connection to the fake cloud broke before it answered");
  }
  co_return std::move(reply.result);
}

async::Task<std::vector<model::Offer>> InProcessCloud::list_offers(base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.list_offers(timers_.now()), false, deadline);
}

async::Task<model::Instance> InProcessCloud::create(CreateRequest request, base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.create(std::move(request), timers_.now()), true, deadline);
}

async::Task<model::Instance> InProcessCloud::get(std::string id, base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.get(id, timers_.now()), false, deadline);
}

async::Task<provider::OwnedList> InProcessCloud::list_owned(std::string tag_prefix, base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.list_owned(tag_prefix, timers_.now()), false, deadline);
}

async::Task<void> InProcessCloud::terminate(std::string id, std::chrono::seconds grace, base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.terminate(id, grace, timers_.now()), true, deadline);
}

async::Task<void> InProcessCloud::control(std::string id, std::string container, provider::ContainerAction action,
                                          std::chrono::seconds grace, base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.control(id, container, action, grace, timers_.now()), true, deadline);
}

async::Task<LogPage> InProcessCloud::read_log(std::string id, LogRequest request, base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.read_log(id, request, timers_.now()), false, deadline);
}

async::Task<std::vector<provider::Sample>> InProcessCloud::samples(base::Deadline deadline) {
  if (too_late(deadline)) co_return not_sent();
  co_return co_await deliver(cloud_.samples(timers_.now()), false, deadline);
}

}  // namespace spillway::providers::fake
