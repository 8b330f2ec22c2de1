#include "vk-provider/daemon/cli_doctor_reader.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "vk-provider/daemon/cli_doctor_codec.hpp"
#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/home_codec.hpp"
#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/kube/list_page.hpp"
#include "vk-provider/kube/rights_client.hpp"
#include "vk-provider/net/http_date.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::daemon {
namespace {

using base::ErrorKind;
using boost::asio::awaitable;
using kube::json_member;
using kube::json_string_or_empty;

constexpr base::Duration kCallDeadline = std::chrono::seconds(15);
constexpr const char* kVersionPath = "/version";
constexpr const char* kKueue = "/apis/kueue.x-k8s.io";

template <class T, T (*decode)(std::string_view)>
void take(std::string_view item, std::vector<T>& out) {
  out.push_back(decode(item));
}

void take_node(std::string_view item, std::vector<core::SeenNode>& out) {
  const auto decoded = kube::decode_home_node(item);
  if (!decoded) return;
  core::SeenNode& node = out.emplace_back();
  node.name = decoded->name;
  node.labels = decoded->labels;
  node.ready = decoded->ready;
}

void take_quota(std::string_view item, std::vector<core::SeenQuota>& out) {
  if (auto quota = decode_quota(item)) out.push_back(std::move(*quota));
}

void take_policies(std::string_view item, std::vector<core::SeenPolicy>& out) {
  for (core::SeenPolicy& policy : decode_policies(item)) out.push_back(std::move(policy));
}

void take_refusal(std::string_view item, std::vector<core::SeenRefusal>& out) {
  const std::string_view about = json_member(item, "involvedObject");
  core::SeenRefusal& refusal = out.emplace_back();
  refusal.pod =
      json_string_or_empty(json_member(about, "namespace")) + "/" + json_string_or_empty(json_member(about, "name"));
  refusal.message = json_string_or_empty(json_member(item, "message"));
}

}  // namespace

DoctorReader::DoctorReader(Surroundings in, const DoctorOptions& options)
    : in_(std::move(in)), options_(options), facts_(options.known) {}

base::Deadline DoctorReader::deadline() const { return in_.timers->now() + kCallDeadline; }

async::Task<std::string> DoctorReader::get(std::string target) {
  kube::KubeRequest request;
  request.target = std::move(target);
  auto answer = co_await in_.api->send(std::move(request), deadline());
  if (!answer) co_return base::fail(std::move(answer.error()));
  co_return std::move(answer->body);
}

template <class T>
async::Task<std::vector<T>> DoctorReader::list(std::string target, Take<T> take_item) {
  std::vector<T> out;
  std::string next;
  do {
    const char separator = target.find('?') == std::string::npos ? '?' : '&';
    std::string page_target = target + separator + "limit=500";
    if (!next.empty()) page_target += "&continue=" + net::encode_query_value(next);
    const auto body = co_await get(std::move(page_target));
    if (!body) co_return base::fail(body.error());
    const auto page = kube::parse_list_page(*body);
    kube::JsonArray items(page ? page->items : std::string_view());
    while (items.next()) take_item(items.value(), out);
    if (!page || items.failed()) co_return base::fail(ErrorKind::kUnavailable, "the list " + target + " was cut");
    next = page->continue_token;
  } while (!next.empty());
  co_return out;
}

async::Task<void> DoctorReader::read_cluster() {
  const auto version = co_await get(kVersionPath);
  if (!version && version.error().kind != ErrorKind::kPermission && version.error().kind != ErrorKind::kNotFound) {
    co_return base::fail(version.error());
  }
  co_await read_clock();
  facts_.caller = co_await kube::RightsClient(*in_.api).who_am_i(deadline());
  co_await read_rights();
  co_await read_leases();
  co_await read_nodes();
  co_await read_pods();
  co_await read_workloads();
  co_await read_flavors();
  co_await read_training_class();
  co_await read_signings();
  co_return base::Result<void>();
}

awaitable<void> DoctorReader::read_clock() {
  net::HttpRequest request;
  request.target = kVersionPath;
  const base::WallTime before = in_.timers->wall();
  const auto answer = co_await in_.server->send(std::move(request), deadline());
  const base::WallTime after = in_.timers->wall();
  if (!answer) {
    facts_.clock_ahead = base::fail(answer.error());
    co_return;
  }
  // Whoever answers, and whatever: a refusal has a date, too.
  const auto date = net::parse_http_date(answer->header("Date").value_or(""));
  if (!date) {
    facts_.clock_ahead = base::fail(ErrorKind::kInvalid, "the API server's answer has no Date");
    co_return;
  }
  // Half of the way there and back, and half of the second that the header leaves out.
  facts_.clock_ahead = before + (after - before) / 2 - (*date + std::chrono::milliseconds(500));
}

awaitable<void> DoctorReader::read_nodes() { facts_.nodes = co_await list<core::SeenNode>("/api/v1/nodes", take_node); }

awaitable<void> DoctorReader::read_pods() {
  std::set<std::string> own;
  for (const core::OwnNode& node : facts_.own_nodes) own.insert(node.name);
  bool metrics = false;
  const auto take_pod = [&own, &metrics](std::string_view item, std::vector<core::SeenPod>& out) {
    metrics = metrics || is_state_metrics(item);
    if (auto pod = decode_seen_pod(item, own)) out.push_back(std::move(*pod));
  };
  facts_.pods = co_await list<core::SeenPod>("/api/v1/pods", take_pod);
  facts_.kube_state_metrics = metrics;
  if (!facts_.pods) facts_.kube_state_metrics = base::fail(facts_.pods.error());
}

awaitable<void> DoctorReader::read_workloads() {
  facts_.budgets =
      co_await list<core::SeenBudget>("/apis/policy/v1/poddisruptionbudgets", take<core::SeenBudget, decode_budget>);
  facts_.daemon_sets =
      co_await list<core::SeenDaemonSet>("/apis/apps/v1/daemonsets", take<core::SeenDaemonSet, decode_daemon_set>);
  facts_.quotas = co_await list<core::SeenQuota>("/api/v1/resourcequotas", take_quota);
  facts_.policies = co_await list<core::SeenPolicy>("/api/v1/configmaps", take_policies);
  facts_.refusals = co_await list<core::SeenRefusal>(
      "/api/v1/events?fieldSelector=" + net::encode_query_value("reason=QuotaExceeded,reportingComponent=spillway"),
      take_refusal);
}

awaitable<void> DoctorReader::read_flavors() {
  const auto group = co_await get(kKueue);
  if (!group) {
    if (group.error().kind != ErrorKind::kNotFound) facts_.flavors = base::fail(group.error());
    co_return;
  }
  const std::string version = json_string_or_empty(json_member(json_member(*group, "preferredVersion"), "version"));
  auto flavors = co_await list<core::SeenFlavor>(
      std::string(kKueue) + "/" + net::encode_path_segment(version) + "/resourceflavors",
      take<core::SeenFlavor, decode_flavor>);
  if (!flavors && flavors.error().kind == ErrorKind::kNotFound) co_return;
  facts_.flavors = std::move(flavors);
}

awaitable<void> DoctorReader::read_training_class() {
  const auto body =
      co_await get("/apis/scheduling.k8s.io/v1/priorityclasses/" + net::encode_path_segment(facts_.training_class));
  if (body) {
    const auto value = kube::json_int(json_member(*body, "value"));
    if (value && std::in_range<int>(*value)) facts_.training_priority = std::optional(static_cast<int>(*value));
  } else if (body.error().kind != ErrorKind::kNotFound) {
    facts_.training_priority = base::fail(body.error());
  }
}

awaitable<void> DoctorReader::read_signings() {
  if (!facts_.wants_certificate) co_return;
  const std::string prefix = "spillway-" + options_.installation.name + "-";
  const auto take_own = [&prefix](std::string_view item, std::vector<core::SeenSigning>& out) {
    if (decode_name(item).name.starts_with(prefix)) out.push_back(decode_signing(item));
  };
  facts_.signings =
      co_await list<core::SeenSigning>("/apis/certificates.k8s.io/v1/certificatesigningrequests", take_own);
}

awaitable<void> DoctorReader::read_leases() {
  const InstallationConfig& installation = options_.installation;
  facts_.leases = std::vector<core::SeenLease>();
  auto done = co_await read_lease(installation.ns, "spillway-" + installation.name, "the daemon");
  if (done && facts_.gated) {
    done = co_await read_lease(installation.ns, "spillway-gate-" + installation.name, "the gate");
  }
  for (const core::OwnNode& node : facts_.own_nodes) {
    if (done) done = co_await read_lease("kube-node-lease", node.name, "node " + node.name);
  }
  if (!done) facts_.leases = base::fail(done.error());
}

async::Task<void> DoctorReader::read_lease(std::string ns, std::string name, std::string purpose) {
  core::SeenLease out;
  out.object = "Lease " + ns + "/" + name;
  out.purpose = std::move(purpose);
  kube::Client client(*in_.api);
  const auto lease = co_await client.get_lease(ns, name, deadline());
  if (!lease && lease.error().kind != ErrorKind::kNotFound) co_return base::fail(lease.error());
  if (lease) {
    out.exists = true;
    out.holder = lease->holder;
    out.duration = lease->duration;
    const base::Duration ahead = facts_.clock_ahead.value_or(base::Duration());
    if (lease->renew_time) out.age = in_.timers->wall() - *lease->renew_time - ahead;
  }
  facts_.leases->push_back(std::move(out));
  co_return base::Result<void>();
}

awaitable<void> DoctorReader::read_rights() {
  const InstallationConfig& installation = options_.installation;
  facts_.rights = std::vector<core::SeenRight>();
  std::vector<core::Right> daemon = core::daemon_rights(installation.name, installation.ns);
  std::vector<core::Right> gate = core::gate_rights(installation.name, installation.ns);
  const bool apart = options_.gate_apart && !options_.account.ns.empty();
  if (options_.surges) std::ranges::copy(core::surge_rights(), std::back_inserter(apart ? gate : daemon));
  if (options_.leads_traffic) std::ranges::copy(core::endpoint_rights(), std::back_inserter(daemon));
  auto done = co_await read_rights_of(options_.account.name, std::move(daemon));
  if (done && apart) done = co_await read_rights_of(options_.account.name + "-gate", std::move(gate));
  if (!done) facts_.rights = base::fail(done.error());
}

async::Task<void> DoctorReader::read_rights_of(std::string account, std::vector<core::Right> rights) {
  kube::UserInfo user;
  if (options_.account.ns.empty()) {
    user.name = account;
    user.groups = {"system:authenticated"};
  } else {
    user = kube::service_account(options_.account.ns, account);
    account = "ServiceAccount " + options_.account.ns + "/" + account;
  }
  kube::RightsClient client(*in_.api);
  for (core::Right& right : rights) {
    kube::ResourceRight asked;
    const std::size_t slash = right.resource.find('/');
    asked.group = right.group;
    asked.resource = right.resource.substr(0, slash);
    if (slash != std::string::npos) asked.subresource = right.resource.substr(slash + 1);
    asked.verb = right.verb;
    asked.ns = right.ns;
    asked.name = right.name;
    const auto allowed = co_await client.review(user, std::move(asked), deadline());
    if (!allowed) co_return base::fail(allowed.error());
    core::SeenRight& seen = facts_.rights->emplace_back();
    seen.account = account;
    seen.right = std::move(right);
    seen.allowed = *allowed;
  }
  co_return base::Result<void>();
}

awaitable<void> DoctorReader::read_providers() {
  for (provider::Provider* provider : in_.providers) {
    const auto offers = co_await provider->list_offers(deadline());
    core::SeenProvider& seen = facts_.providers.emplace_back();
    seen.name = provider->info().name.str();
    if (offers) seen.offers = offers->size();
    if (!offers) seen.error = offers.error();
  }
}

}  // namespace spillway::daemon
