#include "vk-provider/daemon/cli_why.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "vk-provider/daemon/cli_status.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/pod_codec.hpp"
#include "vk-provider/model/labels.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::daemon {
namespace {

constexpr base::Duration kCallDeadline = std::chrono::seconds(15);
constexpr base::Duration kAdminDeadline = std::chrono::seconds(3);

std::string text_at(std::string_view object, std::string_view key) {
  return kube::json_string_or_empty(kube::json_member(object, key));
}

base::Money micros_at(std::string_view object, std::string_view key) {
  return base::Money::from_micros(kube::json_int(kube::json_member(object, key)).value_or(0));
}

boost::asio::awaitable<base::Result<std::string>> get(const Surroundings& in, std::string target) {
  kube::KubeRequest request;
  request.target = std::move(target);
  auto answer = co_await in.api->send(std::move(request), in.timers->now() + kCallDeadline);
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return std::move(answer->body);
}

void read_pod(std::string_view json, WhyReport& out) {
  const auto pod = kube::decode_pod(json, {});
  if (!pod) {
    out.problem = pod.error().message;
    out.exit_code = kExitFailed;
    return;
  }
  out.uid = pod->key.uid.str();
  out.node = pod->spec->node_name;
  out.stage = stage_of(pod->observed);
  if (out.stage != "running" && out.stage != "finished") out.waits_for = why_of(pod->observed);
  if (pod->observed.state.kind == model::StateAnnotation::Kind::kRecord) out.placement = *pod->observed.state.record;
  const std::string_view metadata = kube::json_member(json, "metadata");
  out.choice = text_at(kube::json_member(metadata, "annotations"), model::kAnnotationWhy);
}

void read_events(std::string_view json, WhyReport& out) {
  kube::JsonArray items(kube::json_member(json, "items"));
  while (items.next()) {
    WhyReport::Event& event = out.events.emplace_back();
    event.reason = text_at(items.value(), "reason");
    event.message = text_at(items.value(), "message");
    event.last_seen = text_at(items.value(), "lastTimestamp");
    if (event.last_seen.empty()) event.last_seen = text_at(items.value(), "eventTime");
    event.count = kube::json_int(kube::json_member(items.value(), "count")).value_or(1);
  }
  std::ranges::sort(out.events, {},
                    [](const WhyReport::Event& e) { return std::tie(e.last_seen, e.reason, e.message); });
}

/// What stood next when it was bought; of a pod that waits, what stands next now.
void read_daemon(WhyReport& out) {
  const std::string_view now = kube::json_member(out.daemon_json, "now");
  const std::string_view decided = kube::json_member(out.daemon_json, "decided");
  if (const std::string stage = text_at(out.daemon_json, "stage"); !stage.empty()) out.stage = stage;
  const bool waits = out.stage == "waiting";
  kube::JsonArray next(kube::json_member(waits || decided.empty() ? now : decided, "next"));
  while (next.next()) {
    WhyReport::Next& row = out.next.emplace_back();
    row.provider = text_at(next.value(), "provider");
    row.offer = text_at(next.value(), "offer");
    row.per_hour = micros_at(next.value(), "pricePerHourMicros");
    row.index = micros_at(next.value(), "indexMicros");
    row.lost_by = text_at(next.value(), "lostBy");
    const std::string_view closed = kube::json_member(next.value(), "closed");
    if (!closed.empty()) row.closed = text_at(closed, "why") + " until " + text_at(closed, "until");
  }
  if (!waits) return;
  kube::JsonArray changes(kube::json_member(now, "changes"));
  while (changes.next()) out.changes.push_back(text_at(changes.value(), "text"));
}

boost::asio::awaitable<void> ask_daemon(const Surroundings& in, const net::Endpoint& admin, WhyReport* out) {
  auto client = in.http->make(admin);
  if (!client) {
    out->daemon_problem = client.error().message;
    co_return;
  }
  net::HttpRequest request;
  request.target = "/debug/placement/" + out->uid;
  const auto answer = co_await (*client)->send(std::move(request), in.timers->now() + kAdminDeadline);
  if (!answer) {
    out->daemon_problem = answer.error().message;
  } else if (answer->status != 200) {
    out->daemon_problem = answer->body.substr(0, answer->body.find('\n'));
  } else {
    out->daemon_json = answer->body;
    read_daemon(*out);
  }
}

}  // namespace

boost::asio::awaitable<WhyReport> find_why(Surroundings in, WhyOptions options) {
  WhyReport out;
  out.ns = options.ns;
  out.name = options.pod;
  const std::string base = "/api/v1/namespaces/" + net::encode_query_value(options.ns);
  const auto pod = co_await get(in, base + "/pods/" + net::encode_query_value(options.pod));
  if (!pod) {
    out.problem = "the pod " + options.ns + "/" + options.pod + " cannot be read: " + pod.error().message;
    out.exit_code = kExitFailed;
    co_return out;
  }
  read_pod(*pod, out);
  if (!out.problem.empty()) co_return out;
  const auto events =
      co_await get(in, base + "/events?fieldSelector=" + net::encode_query_value("involvedObject.uid=" + out.uid));
  if (events) {
    read_events(*events, out);
  } else {
    out.events_problem = events.error().message;
  }
  co_await ask_daemon(in, options.admin, &out);
  co_return out;
}

}  // namespace spillway::daemon
