#include "vk-provider/control/pod_resolver.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "vk-provider/control/token_keeper.hpp"
#include "vk-provider/kube/object_codec.hpp"
#include "vk-provider/model/quantity.hpp"

namespace spillway::control {
namespace {

using core::Hindrance;
using model::WaitReason;

/// For everything that one pod refers to: an API server that does not answer is not waited for object by object.
constexpr base::Duration kReadDeadline = std::chrono::seconds(30);

model::Resources allocatable_of(const model::NodeProfile& profile) {
  model::Resources out;
  const auto text = [&](const char* resource) {
    const auto it = profile.capacity.find(resource);
    return it == profile.capacity.end() ? std::string_view("0") : std::string_view(it->second);
  };
  out.cpu_limit_milli = model::quantity_milli(text("cpu")).value_or(0);
  out.memory_limit = model::quantity_value(text("memory")).value_or(0);
  out.ephemeral_limit = model::quantity_value(text("ephemeral-storage")).value_or(0);
  return out;
}

std::unexpected<Hindrance> config_error(const std::string& what, const base::Error& error) {
  return std::unexpected(Hindrance(WaitReason::kConfig, fmt::format("Error: {}: {}", what, error.message)));
}

}  // namespace

boost::asio::awaitable<Resolution> PodResolver::resolve(model::PodSpecPtr pod, const model::NodeProfile& profile,
                                                        std::vector<int> public_ports) {
  const base::Deadline deadline = timers_.now() + kReadDeadline;
  Resolution out;
  const Read surroundings = co_await read(pod, profile, deadline);
  if (!surroundings) {
    out.pod = std::unexpected(surroundings.error());
    co_return out;
  }
  out.pod = core::resolve_pod(pod, *surroundings, std::move(public_ports), out.notes);
  if (!out.pod) co_return out;
  out.mounted = digests_of(core::references(*pod), *surroundings);
  for (const auto& [wish, token] : surroundings->tokens) {
    const base::TimePoint due = renewal_of(token, timers_.both());
    out.renew_tokens_at = std::min(out.renew_tokens_at.value_or(due), due);
  }
  auto logins = co_await read_pull_secrets(pod, *surroundings, out.notes, deadline);
  if (logins) {
    out.pod->pull_auth = std::move(*logins);
  } else {
    out.pod = std::unexpected(std::move(logins.error()));
  }
  co_return out;
}

boost::asio::awaitable<PodResolver::Read> PodResolver::read(model::PodSpecPtr pod, const model::NodeProfile& profile,
                                                            base::Deadline deadline) {
  const core::References needed = core::references(*pod);
  core::Surroundings out;
  out.node_ip = profile.internal_ip.str();
  out.allocatable = allocatable_of(profile);
  auto services = co_await services_.services_for(pod->key.ns, pod->service_links, deadline);
  if (!services) co_return config_error("the services of the namespace cannot be read", services.error());
  out.services = std::move(*services);
  if (needed.metadata) {
    auto metadata = co_await client_.get_pod_metadata(pod->key, deadline);
    if (!metadata) co_return config_error("the pod's labels and annotations cannot be read", metadata.error());
    out.metadata = std::move(*metadata);
  }
  for (const core::ConfigSource& source : needed.config) {
    auto object = source.kind == model::ConfigRef::Kind::kSecret
                      ? co_await client_.get_secret(pod->key.ns, source.name, deadline)
                      : co_await client_.get_config_map(pod->key.ns, source.name, deadline);
    out.config.emplace(source, std::move(object));
  }
  for (const core::TokenWish& wish : needed.tokens) {
    auto token =
        co_await client_.request_token(pod->key, pod->service_account, wish.audience, wish.expiration, deadline);
    if (!token) {
      co_return std::unexpected(
          Hindrance(WaitReason::kMount, fmt::format("failed to fetch token: {}", token.error().message)));
    }
    out.tokens.emplace(wish, std::move(*token));
  }
  co_return out;
}

/// The pod names those of its ServiceAccount, too: the API server copies them into a pod that names none.
boost::asio::awaitable<std::expected<std::vector<model::PullAuth>, Hindrance>> PodResolver::read_pull_secrets(
    model::PodSpecPtr pod, const core::Surroundings& read, std::vector<core::Note>& notes, base::Deadline deadline) {
  std::vector<model::PullAuth> out;
  std::string missing;
  if (!pod->extras) co_return out;
  for (const std::string& name : pod->extras->pull_secrets) {
    const auto known = read.config.find(core::ConfigSource(model::ConfigRef::Kind::kSecret, name));
    const auto secret =
        known != read.config.end() ? known->second : co_await client_.get_secret(pod->key.ns, name, deadline);
    if (!secret && secret.error().kind == base::ErrorKind::kNotFound) {
      missing += (missing.empty() ? "" : ", ") + name;
      continue;
    }
    if (!secret) co_return config_error(fmt::format("image pull secret \"{}\" cannot be read", name), secret.error());
    auto logins = kube::decode_pull_secret(*secret);
    if (!logins) co_return config_error(fmt::format("image pull secret \"{}\" is malformed", name), logins.error());
    for (model::PullAuth& login : *logins) out.push_back(std::move(login));
  }
  if (!missing.empty()) {
    notes.emplace_back("FailedToRetrieveImagePullSecret",
                       fmt::format("Unable to retrieve some image pull secrets ({}); attempting to pull the image may "
                                   "not succeed.",
                                   missing));
  }
  co_return out;
}

}  // namespace spillway::control
