#include "test/simulation/world.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "test/simulation/books.hpp"
#include "test/simulation/calm.hpp"
#include "vk-provider/net/digest.hpp"

namespace spillway::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Duration kLookEvery = seconds(5);
// The longest back-off of all that may have to run out is an hour (an offer that failed).
constexpr base::Duration kCalmWithin = minutes(75);
constexpr base::Duration kGoneWithin = minutes(30);
constexpr base::Duration kClosesWithin = minutes(5);
constexpr base::Duration kStopsWithin = seconds(12);

/// What was listed is what is charged.
bool prices_stand(const Plan& plan) {
  const Verb* const overcharge = find_verb("overcharge");
  return std::ranges::all_of(plan.clouds, [](const CloudTraits& c) { return c.step == 0; }) &&
         std::ranges::none_of(plan.steps, [&](const Step& step) { return step.verb == overcharge; });
}

daemon::Config make_config(const Plan& plan) {
  daemon::Config config;
  config.installation.cluster_id = "simulation";
  config.placement.start_deadline = minutes(2);
  config.placement.orphan_grace = seconds(30);
  for (std::int64_t i = 0; i < plan.settings.nodes; ++i) {
    model::NodeProfile node;
    node.name = fmt::format("burst-{}", i);
    node.capacity = {{"cpu", "640"},
                     {"memory", "2560Gi"},
                     {"pods", "1000"},
                     {"ephemeral-storage", "10Ti"},
                     {"nvidia.com/gpu", "80"}};
    node.internal_ip = "192.0.2.10";
    if (plan.settings.cap > 0) node.max_price_per_hour = base::Money::from_micros(plan.settings.cap);
    config.nodes.push_back(std::move(node));
  }
  if (plan.settings.budget > 0) config.spend.installation.per_hour = base::Money::from_micros(plan.settings.budget);
  for (size_t i = 0; i < plan.clouds.size(); ++i) {
    daemon::ProviderConfig provider;
    provider.name = base::ProviderName(fmt::format("cloud{}", i));
    provider.type = "sim";
    provider.config = std::make_shared<const nlohmann::json>(nlohmann::json::object());
    config.providers.push_back(std::move(provider));
  }
  return config;
}

/// Whether some pod may find nothing that it can buy, for ever.
bool is_scarce(const Plan& plan) {
  return plan.settings.cap > 0 || plan.settings.budget > 0 ||
         std::ranges::any_of(plan.clouds, [](const CloudTraits& c) { return c.stock > 0; });
}

model::Ownership make_ownership(const daemon::Config& config) {
  return model::Ownership(net::sha256(config.installation.cluster_id + "/" + config.installation.name));
}

}  // namespace

World::World(Plan plan, Options options)
    : plan_(std::move(plan)),
      options_(options),
      trace_(agenda_, options.print),
      config_(make_config(plan_)),
      facts_(make_ownership(config_)),
      server_("server", agenda_, context_),
      api_(plan_.seed, milliseconds(plan_.settings.latency), server_, facts_, coverage_),
      users_(plan_.seed, plan_.settings.nodes, api_, facts_, coverage_),
      order_(plan_.seed, "order"),
      dice_(plan_.seed, "world"),
      prices_stand_(prices_stand(plan_)) {
  for (size_t i = 0; i < plan_.clouds.size(); ++i) {
    clouds_.emplace_back(plan_.seed, static_cast<int>(i), plan_.clouds[i], base::Now{agenda_.now(), agenda_.wall()},
                         [this, i](const providers::fake::Sight& sight) { seen(clouds_[i], sight); });
  }
  const base::TimePoint start = agenda_.now();
  for (const Step& step : plan_.steps) {
    if (step.verb == find_verb("empty-lists")) cloud(step.args[0]).lies = true;
    agenda_.at(start + milliseconds(step.at), [this, &step] {
      trace_.note("step", step.verb->name);
      step.verb->apply(*this, step.args);
    });
  }
}

World::~World() {
  for (Machine& machine : machines_) machine.host().freeze(false);
  // One that stops in order is waited for; the others die.
  const base::TimePoint patience = agenda_.now() + minutes(1);
  const auto stopping = [](const Machine& m) { return m.state() == Machine::State::kStopping; };
  violation_.reset();
  while (std::ranges::any_of(machines_, stopping) && turn(patience)) {
  }
}

CloudSite& World::cloud(const std::string& name) { return *std::ranges::find(clouds_, name, &CloudSite::name); }

void World::poll_context() {
  context_.restart();
  context_.poll();
}

Machine* World::pick() {
  Machine* ready = nullptr;
  std::int64_t count = 0;
  // Of several daemons that could go on, any may.
  for (Machine& machine : machines_) {
    if (machine.host().can_run() && order_.between(0, count++) == 0) ready = &machine;
  }
  return ready;
}

bool World::turn(base::TimePoint limit) {
  while (!violation_) {
    Machine* machine = pick();
    if (machine == nullptr) {
      // Who waits for the end of a task group waits for a timer of Asio's; without one this costs nothing.
      poll_context();
      machine = pick();
    }
    if (machine == nullptr) break;
    machine->step();
  }
  return !violation_ && agenda_.step(limit);
}

void World::run_until(base::TimePoint limit) {
  while (turn(limit)) {
  }
}

template <class Calm>
void World::run_until_calm(base::Duration limit, std::string_view what, Calm calm) {
  const base::TimePoint end = agenda_.now() + limit;
  std::string why = calm();
  while (!violation_ && !why.empty() && agenda_.now() < end) {
    run_until(agenda_.now() + kLookEvery);
    why = calm();
  }
  if (!violation_ && !why.empty()) violate(what, why);
}

Outcome World::run() {
  const base::TimePoint start = agenda_.now();
  start_daemon();
  if (plan_.settings.standby != 0) start_daemon();
  agenda_.after(kLookEvery, [this] { look(); });
  run_until(start + milliseconds(plan_.settings.length));
  if (!violation_) finish();
  Outcome outcome;
  outcome.violation = violation_;
  outcome.lives = users_.lives();
  outcome.trace_hash = trace_.hash();
  outcome.virtual_time = agenda_.now() - start;
  outcome.coverage = coverage_;
  return outcome;
}

/// Faults end, frozen daemons wake up, and one daemon at least runs.
void World::make_peace() {
  api_.clear_faults();
  for (CloudSite& site : clouds_) {
    site.cloud.clear_faults();
    site.apply_traits(agenda_.now());
  }
  for (Machine& machine : machines_) machine.host().freeze(false);
  if (running(0) == nullptr) start_daemon();
  users_.rest();
  trace_.note("peace");
}

void World::finish() {
  make_peace();
  run_until_calm(kCalmWithin, "everything converges", [this] { return unsettled(facts_, users_, is_scarce(plan_)); });
  if (violation_) return;
  users_.leave();
  run_until_calm(kGoneWithin, "everything goes", [this] { return remains(facts_); });
  if (violation_) return;
  for (CloudSite& site : clouds_) {
    const std::string bill = still_billed(site, agenda_.now());
    if (!bill.empty()) return violate("nothing is billed in the end", bill);
  }
  run_until_calm(kClosesWithin, "the ledger is the invoice", [this] { return audit(); });
  if (violation_) return;
  closing_ = true;
  for (Machine& machine : machines_) machine.stop();
  run_until_calm(kStopsWithin, "a daemon stops in time", [this] {
    const auto it =
        std::ranges::find_if(machines_, [](const Machine& m) { return m.state() != Machine::State::kEnded; });
    return it == machines_.end() ? std::string() : it->name() + " still runs";
  });
}

/// The ledger outlives pods and instances.
std::string World::audit() {
  // A restart measures what runs by the wall clock.
  const Verb* const jump = find_verb("jump");
  if (std::ranges::any_of(plan_.steps, [&](const Step& step) { return step.verb == jump; })) return {};
  const auto ledger = read_ledger(api_.model());
  if (!ledger) return ledger.error().message;
  for (CloudSite& site : clouds_) {
    if (std::string wrong = misbilled(facts_, site, *ledger, harmed_, agenda_.now()); !wrong.empty()) return wrong;
  }
  return {};
}

void World::violate(std::string_view rule, std::string what) {
  if (violation_) return;
  trace_.note("violated", rule, what);
  violation_ = Violation{std::string(rule), std::move(what)};
}

std::unique_ptr<kube::KubeApi> World::wrap(std::unique_ptr<kube::KubeApi> api) {
  if (options_.mutant == nullptr || options_.mutant->api == nullptr) return api;
  return options_.mutant->api(std::move(api));
}

std::unique_ptr<provider::Provider> World::wrap(std::unique_ptr<provider::Provider> provider) {
  if (options_.mutant == nullptr || options_.mutant->provider == nullptr) return provider;
  return options_.mutant->provider(std::move(provider));
}

}  // namespace spillway::simulation
