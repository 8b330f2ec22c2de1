// endpoint_controller, second part: what is written to the API server. The only writer of our EndpointSlices.
#include "vk-provider/base/backoff.hpp"
#include "vk-provider/base/log.hpp"
#include "vk-provider/control/endpoint_controller.hpp"
#include "vk-provider/kube/endpoint_codec.hpp"

namespace spillway::control {
namespace asio = boost::asio;
namespace log = base::log;

namespace {

using base::ErrorKind;

constexpr base::Duration kCallDeadline = std::chrono::seconds(10);
constexpr base::BackoffPolicy kRetry{std::chrono::milliseconds(100), std::chrono::seconds(15)};
constexpr double kJitter = 0.2;

std::string collection(const std::string& ns) {
  return "/apis/discovery.k8s.io/v1/namespaces/" + ns + "/endpointslices";
}

std::string path_of(const std::string& ns, const std::string& name) { return collection(ns) + "/" + name; }

}  // namespace

async::Loop EndpointController::write(Job job) {
  const Key key{job.slice.ns, job.slice.name};
  // A process that stood still may find its answers before it finds that its lease is gone: then somebody else writes.
  if (!d_.holds_lease()) {
    under_way_.erase(key);
    co_return note_change(key.first);
  }
  const base::Result<void> done = co_await send(job);
  const char* const verb = job.verb == Job::Verb::kCreate  ? "create"
                           : job.verb == Job::Verb::kPatch ? "patch"
                                                           : "delete";
  d_.metrics
      ->counter("spillway_endpoint_writes_total", "Writes of EndpointSlices.",
                {{"verb", verb}, {"result", done ? "ok" : std::string(to_string(done.error().kind))}})
      .add();
  if (done) {
    failures_.erase(key);
    update_seconds_.observe(std::chrono::duration<double>(d_.timers->now() - job.changed_at).count());
  } else {
    note_failure(job, done.error());
    // Whatever we thought of it, this is what stands.
    co_await read_again(key);
  }
  under_way_.erase(key);
  note_change(key.first);
  waiter_->wake();
}

asio::awaitable<base::Result<void>> EndpointController::send(const Job& job) {
  kube::KubeRequest request;
  request.content_type = "application/json";
  switch (job.verb) {
    case Job::Verb::kCreate:
      request.method = net::Method::kPost;
      request.target = collection(job.slice.ns);
      request.body = kube::encode_endpoint_slice(job.slice);
      break;
    case Job::Verb::kPatch:
      request.method = net::Method::kPatch;
      request.target = path_of(job.slice.ns, job.slice.name);
      request.content_type = "application/merge-patch+json";
      request.body = kube::encode_endpoint_slice_patch(job.slice);
      break;
    case Job::Verb::kDelete:
      request.method = net::Method::kDelete;
      request.target = path_of(job.slice.ns, job.slice.name);
      request.body = kube::encode_endpoint_slice_removal(job.slice);
      break;
  }
  auto answer = co_await d_.api->send(std::move(request), d_.timers->now() + kCallDeadline);
  if (job.verb == Job::Verb::kDelete) {
    if (!answer && answer.error().kind != ErrorKind::kNotFound) co_return base::fail(std::move(answer.error()));
    forget({job.slice.ns, job.slice.name});
    co_return base::Result<void>();
  }
  if (!answer) co_return base::fail(std::move(answer.error()));
  auto slice = kube::decode_endpoint_slice(answer->body);
  if (!slice) co_return base::fail(std::move(slice.error()));
  absorb(std::move(*slice));
  co_return base::Result<void>();
}

asio::awaitable<void> EndpointController::read_again(Key key) {
  kube::KubeRequest request;
  request.target = path_of(key.first, key.second);
  auto answer = co_await d_.api->send(std::move(request), d_.timers->now() + kCallDeadline);
  if (!answer) {
    if (answer.error().kind == ErrorKind::kNotFound) forget(key);
    co_return;
  }
  if (auto slice = kube::decode_endpoint_slice(answer->body)) absorb(std::move(*slice));
}

void EndpointController::note_failure(const Job& job, const base::Error& error) {
  Failure& failure = failures_[{job.slice.ns, job.slice.name}];
  const base::Duration own = d_.random->jittered(base::backoff_delay(kRetry, ++failure.count), kJitter);
  if (failure.count == 1) failure.changed_at = job.changed_at;
  failure.retry_at = d_.timers->now() + base::heed_retry_after(own, error);
  // A write that came before ours is no failure: it is read, and the next one is on top of it.
  if (failure.count > 1 || error.kind == ErrorKind::kConflict) return;
  const bool denied = error.kind == ErrorKind::kPermission;
  log::warn("an EndpointSlice is not written",
            {{"slice", job.slice.ns + "/" + job.slice.name},
             {"service", job.slice.service},
             {"error", error},
             {"remedy", denied ? "apply config/deploy/endpoints, unless the namespace is going away" : "retrying"}});
}

}  // namespace spillway::control
