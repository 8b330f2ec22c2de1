#include "vk-provider/provider/metered_provider.hpp"

#include <algorithm>

#include "vk-provider/base/log.hpp"

namespace spillway::provider {
namespace {

using std::chrono::seconds;

constexpr seconds kListDeadline{30};
constexpr seconds kGetDeadline{10};
constexpr seconds kTerminateDeadline{30};
constexpr seconds kStreamDeadline{15};  // up to the point at which bytes flow
constexpr seconds kControlDeadline{30};
constexpr seconds kFilesDeadline{60};

}  // namespace

MeteredProvider::MeteredProvider(std::unique_ptr<Provider> inner, const base::Clock& clock, base::Metrics& metrics,
                                 Bookkeeper* books)
    : inner_(std::move(inner)), clock_(clock), metrics_(metrics), books_(books) {}

base::Deadline MeteredProvider::capped(base::Deadline deadline, base::Duration longest) const {
  return std::min(deadline, clock_.now() + longest);
}

void MeteredProvider::note(std::string_view method, base::TimePoint begun, const base::Error* error) {
  const base::Duration took = clock_.now() - begun;
  const std::string_view outcome = error == nullptr ? std::string_view("ok") : base::to_string(error->kind);
  base::Histogram*& histogram = histograms_[{method, outcome}];
  if (histogram == nullptr) {
    const base::MetricLabels labels{
        {"provider", info().name.str()}, {"method", std::string(method)}, {"outcome", std::string(outcome)}};
    histogram =
        &metrics_.histogram("spillway_provider_call_seconds", "Calls of providers.", labels, base::latency_bounds());
  }
  histogram->observe(std::chrono::duration<double>(took).count());
  base::log::debug("provider called",
                   {{"provider", info().name},
                    {"method", method},
                    {"outcome", outcome},
                    {"took_ms", std::chrono::duration_cast<std::chrono::milliseconds>(took).count()},
                    {"error", error == nullptr ? std::string_view() : std::string_view(error->message)}});
}

template <class T>
async::Task<T> MeteredProvider::measure(std::string_view method, async::Task<T> call) {
  const base::TimePoint begun = clock_.now();
  base::Result<T> result = co_await std::move(call);
  note(method, begun, result ? nullptr : &result.error());
  co_return result;
}

// Coroutines, so that the longest time of a call is counted from its start and not from that of a wait before it.

async::Task<std::vector<model::Offer>> MeteredProvider::list_offers(base::Deadline deadline) {
  co_return co_await measure("list_offers", inner_->list_offers(capped(deadline, kListDeadline)));
}

async::Task<model::Instance> MeteredProvider::create(model::Placement placement, model::ResolvedPod pod,
                                                     base::Deadline deadline) {
  const model::Placement intent = placement;
  const model::PodSpecPtr spec = pod.spec;
  auto instance = co_await measure(
      "create", inner_->create(std::move(placement), std::move(pod), capped(deadline, kCreateDeadline)));
  if (instance && books_ != nullptr && spec) books_->bought(info(), intent, *spec, *instance);
  co_return instance;
}

async::Task<model::Instance> MeteredProvider::get(model::InstanceRef ref, base::Deadline deadline) {
  auto instance = co_await measure("get", inner_->get(ref, capped(deadline, kGetDeadline)));
  if (books_ == nullptr) co_return instance;
  if (instance) {
    books_->seen(info(), *instance);
  } else if (instance.error().kind == base::ErrorKind::kNotFound) {
    books_->not_found(ref);
  }
  co_return instance;
}

async::Task<OwnedList> MeteredProvider::list_owned(std::string tag_prefix, base::Deadline deadline) {
  const base::TimePoint began = clock_.now();
  auto list =
      co_await measure("list_owned", inner_->list_owned(std::move(tag_prefix), capped(deadline, kListDeadline)));
  if (list && books_ != nullptr) books_->listed(info(), *list, began);
  co_return list;
}

async::Task<void> MeteredProvider::terminate(model::InstanceRef ref, std::chrono::seconds grace,
                                             base::Deadline deadline) {
  co_return co_await measure("terminate",
                             inner_->terminate(std::move(ref), grace, capped(deadline, kTerminateDeadline)));
}

async::Task<async::ByteStreamPtr> MeteredProvider::open_logs(model::InstanceRef ref, LogOptions options,
                                                             base::Deadline deadline) {
  co_return co_await measure("open_logs",
                             inner_->open_logs(std::move(ref), std::move(options), capped(deadline, kStreamDeadline)));
}

async::Task<ExecSessionPtr> MeteredProvider::open_exec(model::InstanceRef ref, ExecOptions options,
                                                       base::Deadline deadline) {
  co_return co_await measure("open_exec",
                             inner_->open_exec(std::move(ref), std::move(options), capped(deadline, kStreamDeadline)));
}

async::Task<async::ByteStreamPtr> MeteredProvider::dial(model::InstanceRef ref, int port, base::Deadline deadline) {
  co_return co_await measure("dial", inner_->dial(std::move(ref), port, capped(deadline, kStreamDeadline)));
}

async::Task<std::vector<Sample>> MeteredProvider::samples(base::Deadline deadline) {
  co_return co_await measure("samples", inner_->samples(capped(deadline, kGetDeadline)));
}

async::Task<void> MeteredProvider::control_container(model::InstanceRef ref, std::string container,
                                                     ContainerAction action, std::chrono::seconds grace,
                                                     base::Deadline deadline) {
  const base::TimePoint asked = clock_.now();
  auto done = co_await measure("control_container", inner_->control_container(ref, std::move(container), action, grace,
                                                                              capped(deadline, kControlDeadline)));
  const bool may = done || done.error().kind == base::ErrorKind::kUnknownOutcome;
  if (may && books_ != nullptr && action != ContainerAction::kStop) books_->started(ref, asked);
  co_return done;
}

async::Task<void> MeteredProvider::put_files(model::InstanceRef ref, std::vector<model::ResolvedFile> files,
                                             base::Deadline deadline) {
  co_return co_await measure("put_files",
                             inner_->put_files(std::move(ref), std::move(files), capped(deadline, kFilesDeadline)));
}

}  // namespace spillway::provider
