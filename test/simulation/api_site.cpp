#include "test/simulation/api_site.hpp"

#include <algorithm>

#include "vk-provider/kube/http_kube_api.hpp"

namespace spillway::simulation {
namespace {

using base::ErrorKind;
using nlohmann::json;
using What = ApiFault::What;
using Which = ApiFault::Which;

bool is_write(const kube::KubeRequest& request) { return request.method != net::Method::kGet; }

/// A 409 to a POST says that the object exists, and one to a DELETE that it is another one: those are always true.
bool may_conflict(const kube::KubeRequest& request) {
  return request.method == net::Method::kPatch || request.method == net::Method::kPut;
}

bool concerns(Which which, const kube::KubeRequest& request, bool watch) {
  switch (which) {
    case Which::kAny: return true;
    case Which::kReads: return !is_write(request) && !watch;
    case Which::kWrites: return is_write(request);
    case Which::kPods: return is_write(request) && request.target.find("/pods/") != std::string::npos;
    case Which::kLeases: return request.target.find("/leases") != std::string::npos;
    case Which::kWatches: return watch;
    case Which::kCount: break;
  }
  return false;
}

/// As KubeApi's header has it: what may have happened is unknown only for a write.
base::Error broken(const kube::KubeRequest& request, const char* message) {
  return base::Error(is_write(request) ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable, message);
}

Counter counter_of(ErrorKind refusal) {
  switch (refusal) {
    case ErrorKind::kRateLimited: return Counter::kApiBusy;
    case ErrorKind::kInvalid: return Counter::kApiRejected;
    case ErrorKind::kConflict: return Counter::kApiConflict;
    default: return Counter::kApiBroken;
  }
}

base::Error busy() {
  base::Error error(ErrorKind::kRateLimited, "the API server asks to wait");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

}  // namespace

ApiSite::ApiSite(std::uint64_t seed, base::Duration latency, Host& host, Facts& facts, Coverage& coverage)
    : host_(host),
      facts_(facts),
      coverage_(coverage),
      model_(host),
      latencies_(seed, "api latency"),
      dice_(seed, "api faults"),
      latency_(latency) {
  model_.watch_lag = [this] { return lag(); };
  model_.observe([this](const test::api_model::Change& change) { changed(change); });
}

base::Duration ApiSite::travel() { return base::Duration(latencies_.between(0, latency_.count() / 2)); }

void ApiSite::lag_watches(base::Duration lag, base::TimePoint until) {
  lag_ = lag;
  lag_until_ = until;
}

base::Duration ApiSite::lag() {
  if (host_.now() >= lag_until_) return travel();
  return travel() + base::Duration(latencies_.between(0, lag_.count()));
}

void ApiSite::clear_faults() {
  faults_.clear();
  silent_until_ = lag_until_ = {};
}

ApiFate ApiSite::judge(const kube::KubeRequest& request, bool watch) {
  ApiFate fate;
  fate.there = travel();
  fate.back = travel();
  const base::TimePoint now = host_.now();
  std::erase_if(faults_, [&](const ApiFault& f) { return now >= f.until; });
  for (const ApiFault& fault : faults_) {
    bad_until_ = std::max(bad_until_, fault.until);
    if (!concerns(fault.which, request, watch) || !dice_.chance(fault.percent)) continue;
    switch (fault.what) {
      case What::kLoseRequest: fate.lose_request = true; break;
      case What::kLoseAnswer: fate.lose_answer = true; break;
      case What::kBusy: fate.refuse = busy(); break;
      case What::kBroken: fate.refuse = broken(request, "the API server answered 500"); break;
      case What::kTimeout: fate.lie = broken(request, "the API server answered 504"); break;
      case What::kSlow: fate.there += base::Duration(latencies_.between(0, std::int64_t{8'000'000'000})); break;
      case What::kReject:
        if (request.method == net::Method::kPatch) fate.refuse = base::Error(ErrorKind::kInvalid, "admission said no");
        break;
      case What::kConflict:
        if (may_conflict(request)) fate.refuse = base::Error(ErrorKind::kConflict, "the API server answered 409");
        break;
      case What::kOvertaken: fate.overtaken = may_conflict(request); break;
      case What::kCount: break;
    }
  }
  if (fate.lose_request) coverage_.reach(Counter::kApiLost);
  if (fate.lose_answer) coverage_.reach(Counter::kApiAnswerLost);
  if (fate.refuse) coverage_.reach(counter_of(fate.refuse->kind));
  if (fate.lie) coverage_.reach(Counter::kApiTimeout);
  return fate;
}

base::Result<kube::KubeResponse> ApiSite::handle(const kube::KubeRequest& request) {
  test::api_model::Answer answer = model_.exchange(request);
  if (answer.code < 300) {
    kube::KubeResponse response;
    response.status = answer.code;
    response.body = std::move(answer.body);
    return response;
  }
  net::HttpResponse refusal;
  refusal.status = answer.code;
  if (answer.retry_after) refusal.headers.emplace_back("Retry-After", std::to_string(*answer.retry_after));
  refusal.body = std::move(answer.body);
  return base::fail(kube::error_of(request.method, refusal));
}

void ApiSite::changed(const test::api_model::Change& change) {
  if (change.resource->plural != "pods") return;
  const base::TimePoint now = host_.now();
  on_pod_(change.after ? facts_.pod_seen(*change.after, now) : facts_.pod_gone(change.before->uid(), now));
}

std::string ApiSite::create_pod(json object) {
  const std::string collection = "/api/v1/namespaces/" + object["metadata"]["namespace"].get<std::string>() + "/pods";
  return model_.create(collection, std::move(object))["metadata"]["uid"].get<std::string>();
}

void ApiSite::delete_pod(const std::string& path, int grace) {
  kube::KubeRequest request;
  request.method = net::Method::kDelete;
  request.target = path;
  request.content_type = "application/json";
  request.body = json{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"gracePeriodSeconds", grace}}.dump();
  (void)handle(request);
}

bool ApiSite::patch(const std::string& path, const json& body) {
  kube::KubeRequest request;
  request.method = net::Method::kPatch;
  request.target = path;
  request.content_type = "application/merge-patch+json";
  request.body = body.dump();
  return handle(request).has_value();
}

void ApiSite::overtake(const std::string& path) {
  const json annotations = {{"simulation.example/note", std::to_string(++notes_)}};
  if (patch(path, {{"metadata", {{"annotations", annotations}}}})) coverage_.reach(Counter::kOvertaken);
}

}  // namespace spillway::simulation
