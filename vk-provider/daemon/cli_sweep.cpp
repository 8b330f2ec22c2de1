#include "vk-provider/daemon/cli_sweep.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "vk-provider/kube/client.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::daemon {
namespace {

constexpr base::Duration kCallDeadline = std::chrono::seconds(30);
constexpr base::Duration kBetweenLooks = std::chrono::seconds(10);
constexpr base::Duration kUntilGone = std::chrono::seconds(60);
constexpr base::Duration kAskAgain = std::chrono::seconds(2);

struct Look {
  Look() = default;
  std::size_t instances = 0;
  std::vector<SweptInstance> orphans;
};

/// Instances first, pods afterwards: what is bought in between is in neither.
async::Task<Look> take_look(Surroundings in, model::Ownership ownership) {
  Look look;
  for (provider::Provider* provider : in.providers) {
    const std::string name = provider->info().name.str();
    auto listing = co_await provider->list_owned(ownership.prefix(), in.timers->now() + kCallDeadline);
    if (!listing)
      co_return base::fail(listing.error().kind, "provider " + name + " cannot be asked: " + listing.error().message);
    if (!listing->complete) {
      co_return base::fail(base::ErrorKind::kUnavailable,
                           "the listing of provider " + name + " is incomplete: " + listing->incomplete_why);
    }
    for (model::Instance& instance : listing->instances) {
      const auto owner = ownership.parse(instance.tag);
      if (!owner) continue;
      ++look.instances;
      SweptInstance& found = look.orphans.emplace_back();
      found.owner = *owner;
      found.instance = std::move(instance);
    }
  }
  kube::Client client(*in.api);
  auto living = co_await client.list_pod_uids(in.timers->now() + kCallDeadline);
  if (!living) co_return base::fail(living.error().kind, "the pods cannot be listed: " + living.error().message);
  std::erase_if(look.orphans, [&](const SweptInstance& s) { return living->contains(s.owner.uid.str()); });
  co_return look;
}

provider::Provider* find_provider(const Surroundings& in, const base::ProviderName& name) {
  const auto found = std::ranges::find_if(in.providers, [&](const auto* p) { return p->info().name == name; });
  return found == in.providers.end() ? nullptr : *found;
}

/// Asks for the end until the provider says that it is not found: everything else is still billed.
boost::asio::awaitable<SweptInstance> end(Surroundings in, SweptInstance orphan) {
  const model::InstanceRef ref = orphan.instance.ref;
  provider::Provider* const provider = find_provider(in, ref.provider);
  const auto asked = co_await provider->terminate(ref, std::chrono::seconds(0), in.timers->now() + kCallDeadline);
  if (!asked && asked.error().kind != base::ErrorKind::kNotFound) {
    orphan.outcome = "failed";
    orphan.message = asked.error().message;
    co_return orphan;
  }
  const base::TimePoint until = in.timers->now() + kUntilGone;
  for (;;) {
    const auto left = co_await provider->get(ref, in.timers->now() + kCallDeadline);
    if (!left && left.error().kind == base::ErrorKind::kNotFound) {
      orphan.outcome = "gone";
      co_return orphan;
    }
    if (in.timers->now() >= until) {
      orphan.outcome = "ending";
      orphan.message = left ? "asked to end, but still there: it is billed until the provider says not found"
                            : "asked to end; its end cannot be confirmed: " + left.error().message;
      co_return orphan;
    }
    co_await in.timers->sleep_for(kAskAgain);
  }
}

SweepReport refused(const base::Error& error) {
  SweepReport report;
  report.exit_code = kExitRefused;
  report.problem = error.message + "; nothing was ended, because what cannot be seen may be owned";
  return report;
}

std::string price_of(const SweptInstance& s) {
  return s.instance.price_per_hour ? s.instance.price_per_hour->to_dollars() : "";
}

std::string to_json(const SweepReport& report) {
  kube::JsonWriter w;
  w.open_object().field_number("instances", static_cast<std::int64_t>(report.instances));
  w.field_if("problem", report.problem).key("orphans").open_array();
  for (const SweptInstance& s : report.found) {
    w.open_object()
        .field("provider", s.instance.ref.provider.str())
        .field("instance", s.instance.ref.id.str())
        .field("tag", s.instance.tag.str())
        .field("podUID", s.owner.uid.str())
        .field_number("attempt", s.owner.attempt)
        .field("state", to_string(s.instance.state))
        .field_if("pricePerHour", price_of(s))
        .field("outcome", s.outcome)
        .field_if("message", s.message)
        .close_object();
  }
  w.close_array().close_object();
  return w.take() + "\n";
}

}  // namespace

boost::asio::awaitable<SweepReport> sweep(Surroundings in, SweepOptions options) {
  const auto cluster_id = co_await find_cluster_id(options.cluster_id, *in.api, in.timers->now() + kCallDeadline);
  if (!cluster_id) {
    SweepReport report;
    report.exit_code = kExitFailed;
    report.problem = "the API server cannot be asked for the cluster's id: " + cluster_id.error().message;
    co_return report;
  }
  const model::Ownership ownership = make_ownership(*cluster_id, options.installation);
  auto first = co_await take_look(in, ownership);
  if (!first) co_return refused(first.error());
  SweepReport report;
  report.instances = first->instances;
  report.found = std::move(first->orphans);
  if (options.dry_run || report.found.empty()) {
    for (SweptInstance& s : report.found) s.outcome = "orphan";
    co_return report;
  }

  co_await in.timers->sleep_for(kBetweenLooks);
  const auto second = co_await take_look(in, ownership);
  if (!second) co_return refused(second.error());
  for (SweptInstance& s : report.found) {
    const bool still = std::ranges::any_of(
        second->orphans, [&](const SweptInstance& other) { return other.instance.ref == s.instance.ref; });
    if (!still) {
      s.outcome = "spared";
      s.message = "it is gone or owned by now";
      continue;
    }
    s = co_await end(in, std::move(s));
    if (s.outcome != "gone") report.exit_code = kExitFailed;
  }
  co_return report;
}

std::string to_text(const SweepReport& report, Output output) {
  if (output == Output::kJson) return to_json(report);
  if (!report.problem.empty()) return "";
  std::string out = std::to_string(report.instances) + " instances of this installation, " +
                    std::to_string(report.found.size()) + " without a living pod\n";
  if (report.found.empty()) return out;
  Table table({"PROVIDER", "INSTANCE", "POD UID", "STATE", "$/H", "OUTCOME", "MESSAGE"});
  for (const SweptInstance& s : report.found) {
    table.add({s.instance.ref.provider.str(), s.instance.ref.id.str(), s.owner.uid.str(),
               std::string(to_string(s.instance.state)), price_of(s), s.outcome, s.message});
  }
  return out + table.to_text();
}

}  // namespace spillway::daemon
