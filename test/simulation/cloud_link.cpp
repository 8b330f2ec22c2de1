#include "test/simulation/cloud_link.hpp"

#include <algorithm>

#include "providers/fake/fake_provider.hpp"
#include "test/simulation/cloud_site.hpp"
#include "test/simulation/exchange.hpp"
#include "test/simulation/machine.hpp"
#include "test/simulation/passing_provider.hpp"
#include "test/simulation/world.hpp"

namespace spillway::simulation {
namespace {

namespace fake = providers::fake;
using base::ErrorKind;

/// A provider as its cloud allows it to be. Over a cloud that sells a tag twice it has to look before it buys: create
/// is idempotent at the seam, whatever the cloud is.
class TraitProvider final : public PassingProvider {
 public:
  TraitProvider(std::unique_ptr<provider::Provider> inner, const CloudTraits& traits)
      : PassingProvider(std::move(inner)), info_(PassingProvider::info()), looks_first_(traits.unique == 0) {
    info_.settle_time = std::chrono::milliseconds(traits.settle);
    if (traits.keeps != 0) return;
    info_.capabilities = {};
    for (size_t i = 0; i < static_cast<size_t>(model::Capability::kCount); ++i) {
      const auto c = static_cast<model::Capability>(i);
      if (c != model::Capability::kKeepStopped && PassingProvider::info().capabilities.has(c))
        info_.capabilities.add(c);
    }
  }

  const provider::ProviderInfo& info() const override { return info_; }
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override {
    if (looks_first_) {
      auto list = co_await inner().list_owned(placement.tag.str(), deadline);
      if (!list) co_return base::fail(ErrorKind::kUnavailable, "cannot look for the tag: " + list.error().message);
      for (model::Instance& instance : list->instances) {
        if (instance.tag == placement.tag) co_return std::move(instance);
      }
      if (!list->complete) co_return base::fail(ErrorKind::kUnavailable, "cannot look for the tag everywhere");
    }
    co_return co_await inner().create(std::move(placement), std::move(pod), deadline);
  }

 private:
  provider::ProviderInfo info_;
  bool looks_first_;
};

void note_refusal(Coverage& coverage, ErrorKind kind) {
  if (kind == ErrorKind::kRateLimited) coverage.reach(Counter::kRateLimited);
  if (kind == ErrorKind::kQuota) coverage.reach(Counter::kAccountFull);
  if (kind == ErrorKind::kUnauthenticated) coverage.reach(Counter::kUnauthenticated);
}

}  // namespace

template <class T>
async::Task<T> CloudLink::call(bool is_write, base::Deadline deadline, Work<T> work) {
  Host& host = machine_.host();
  const auto exchange = std::make_shared<Exchange<T>>(host);
  // As a client does: what cannot be answered in time is not sent.
  if (host.now() >= deadline) co_return base::fail(ErrorKind::kDeadline, "the deadline passed before the call");
  if (!machine_.dead()) {
    const base::Duration there(site_.latencies.between(0, site_.traits.latency * 500'000));
    const base::Duration back(site_.latencies.between(0, site_.traits.latency * 500'000));
    // This link may be gone by then: a daemon that lost its lease drops its providers.
    world_.agenda().after(there, [&world = world_, &site = site_, exchange, is_write, back, work = std::move(work)] {
      fake::Reply<T> reply = work(site.cloud, world.agenda().now());
      if (!reply.lost && !reply.result) note_refusal(world.coverage(), reply.result.error().kind);
      if (reply.lost) {
        reply.result = base::fail(is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kUnavailable,
                                  "the connection to the cloud broke");
      }
      world.agenda().after(back + reply.delay, [exchange, result = std::move(reply.result)]() mutable {
        exchange->reply(std::move(result));
      });
    });
  }
  co_await exchange->waiter->wait_until(deadline);
  if (exchange->answer) co_return std::move(*exchange->answer);
  co_return base::fail(is_write ? ErrorKind::kUnknownOutcome : ErrorKind::kDeadline,
                       "the cloud did not answer in time");
}

void CloudLink::told(std::span<const model::Instance> instances) {
  if (site_.lies) world_.facts().told(site_.index, instances, machine_.name());
}

void CloudLink::count(fake::Call call) {
  if (!machine_.dead()) world_.count_call(machine_, site_, call);
}

async::Task<std::vector<model::Offer>> CloudLink::list_offers(base::Deadline deadline) {
  count(fake::Call::kListOffers);
  return call<std::vector<model::Offer>>(
      false, deadline, [](fake::FakeCloud& cloud, base::TimePoint now) { return cloud.list_offers(now); });
}

async::Task<model::Instance> CloudLink::create(fake::CreateRequest request, base::Deadline deadline) {
  count(fake::Call::kCreate);
  ++machine_.buying;
  auto result = co_await call<model::Instance>(
      true, deadline,
      [&world = world_, &site = site_, buyer = machine_.name(), request = std::move(request)](
          fake::FakeCloud&, base::TimePoint) { return world.buy(buyer, site, request); });
  --machine_.buying;
  if (result) told({&*result, 1});
  co_return result;
}

async::Task<model::Instance> CloudLink::get(std::string id, base::Deadline deadline) {
  count(fake::Call::kGet);
  return call<model::Instance>(false, deadline, [id = std::move(id)](fake::FakeCloud& cloud, base::TimePoint now) {
    return cloud.get(id, now);
  });
}

async::Task<provider::OwnedList> CloudLink::list_owned(std::string tag_prefix, base::Deadline deadline) {
  // A look for one tag belongs to its create.
  if (tag_prefix == world_.facts().ownership().prefix()) count(fake::Call::kListOwned);
  auto list = co_await call<provider::OwnedList>(
      false, deadline,
      [&world = world_, &site = site_, tag_prefix = std::move(tag_prefix)](fake::FakeCloud& cloud,
                                                                           base::TimePoint now) {
        auto reply = cloud.list_owned(tag_prefix, now);
        if (!reply.result) return reply;
        if (!reply.result->complete) world.coverage().reach(Counter::kPartialList);
        const bool all = tag_prefix == world.facts().ownership().prefix();
        const bool nothing = all && reply.result->complete && reply.result->instances.empty();
        if (nothing && world.facts().any_instance(site.index, now - std::chrono::milliseconds(site.traits.lag))) {
          world.coverage().reach(Counter::kEmptyList);
        }
        if (site.lies && all && reply.result->complete) {
          world.facts().listed(site.index, reply.result->instances, now - std::chrono::milliseconds(site.traits.lag));
        }
        return reply;
      });
  if (list) told(list->instances);
  co_return list;
}

async::Task<void> CloudLink::terminate(std::string id, std::chrono::seconds grace, base::Deadline deadline) {
  count(fake::Call::kTerminate);
  return call<void>(
      true, deadline,
      [&world = world_, &site = site_, id = std::move(id), grace](fake::FakeCloud& cloud, base::TimePoint now) {
        world.touch(site, id, "terminate");
        return cloud.terminate(id, grace, now);
      });
}

async::Task<void> CloudLink::control(std::string id, std::string container, provider::ContainerAction action,
                                     std::chrono::seconds grace, base::Deadline deadline) {
  count(fake::Call::kControl);
  return call<void>(true, deadline,
                    [&world = world_, &site = site_, id = std::move(id), container = std::move(container), action,
                     grace](fake::FakeCloud& cloud, base::TimePoint now) {
                      world.touch(site, id, "control");
                      auto reply = cloud.control(id, container, action, grace, now);
                      if (reply.result) world.coverage().reach(Counter::kRestarted);
                      return reply;
                    });
}

provider::ProviderType cloud_type(World& world, Machine& machine) {
  provider::ProviderType type;
  type.make = [&world, &machine](const base::ProviderName& name, const nlohmann::json&,
                                 const provider::ProviderDeps&) -> base::Result<std::unique_ptr<provider::Provider>> {
    CloudSite& site = world.cloud(name.str());
    auto api = std::make_unique<CloudLink>(world, machine, site);
    auto plain = std::make_unique<fake::FakeProvider>(name, nullptr, std::move(api), machine.host(),
                                                      std::chrono::milliseconds(site.traits.settle));
    return world.wrap(std::make_unique<TraitProvider>(std::move(plain), site.traits));
  };
  return type;
}

}  // namespace spillway::simulation
