// Planted bugs between a daemon and a provider.
#include <algorithm>
#include <set>
#include <string>

#include "test/simulation/mutants.hpp"
#include "test/simulation/passing_provider.hpp"

namespace spillway::simulation {
namespace {

using base::ErrorKind;

/// "No answer" is read as "bought nothing": the look for the tag is skipped.
class LostIsRefused final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override {
    auto instance = co_await inner().create(std::move(placement), std::move(pod), deadline);
    if (!instance && instance.error().kind == ErrorKind::kUnknownOutcome)
      instance.error().kind = ErrorKind::kNoCapacity;
    co_return instance;
  }
};

/// What one listing leaves out is gone, whether it was complete or not.
class ListIsTruth final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override {
    auto list = co_await inner().list_owned(std::move(tag_prefix), deadline);
    if (!list) co_return list;
    list->complete = true;
    listed_.clear();
    for (const model::Instance& instance : list->instances) listed_.insert(instance.ref.id.str());
    co_return list;
  }
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override {
    if (!listed_.contains(ref.id.str())) co_return base::fail(ErrorKind::kNotFound, "not listed");
    co_return co_await inner().get(std::move(ref), deadline);
  }

 private:
  std::set<std::string> listed_;
};

/// "On its way out" is read as "gone".
class TerminatingIsGone final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override {
    auto instance = co_await inner().get(std::move(ref), deadline);
    if (instance && instance->state == model::InstanceState::kTerminating) {
      co_return base::fail(ErrorKind::kNotFound, "as good as gone");
    }
    co_return instance;
  }
};

/// Told to end is ended: nobody looks whether it is.
class ToldIsDone final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) override {
    told_.insert(ref.id.str());
    return inner().terminate(std::move(ref), grace, deadline);
  }
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override {
    if (told_.contains(ref.id.str())) co_return base::fail(ErrorKind::kNotFound, "told to end");
    co_return co_await inner().get(std::move(ref), deadline);
  }

 private:
  std::set<std::string> told_;
};

/// Every second order to end an instance is lost in the provider, with a friendly answer.
class HalfTerminates final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<void> terminate(model::InstanceRef ref, std::chrono::seconds grace, base::Deadline deadline) override {
    if ((ref.id.str().back() - '0') % 2 == 0) co_return base::Result<void>();
    co_return co_await inner().terminate(std::move(ref), grace, deadline);
  }
};

/// All instances of the account are ours.
class NoTagCheck final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override {
    auto list = co_await inner().list_owned(std::string(), deadline);
    if (!list) co_return list;
    for (model::Instance& instance : list->instances) {
      if (instance.tag.str().starts_with(tag_prefix)) continue;
      instance.tag = base::InstanceTag(tag_prefix + "aaaaaaaaaaaaaaaaaaaaaaaaaa-1");
    }
    co_return list;
  }
};

void forget_exit_codes(model::Instance& instance) {
  for (model::InstanceContainer& container : instance.containers) {
    if (container.state == model::ContainerState::kExited) container.exit_code = 0;
  }
}

/// The price that was offered is the price that is paid.
class NoReadBack final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override {
    auto instance = co_await inner().create(std::move(placement), std::move(pod), deadline);
    if (instance) instance->price_per_hour.reset();
    co_return instance;
  }
};

void read_a_tenth(model::Instance& instance) {
  if (instance.price_per_hour)
    instance.price_per_hour = base::Money::from_micros(instance.price_per_hour->micros() / 10);
}

/// Whatever the cloud tells of an instance is read wrongly.
template <void (*Edit)(model::Instance&)>
class Misread final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override {
    auto instance = co_await inner().create(std::move(placement), std::move(pod), deadline);
    if (instance) Edit(*instance);
    co_return instance;
  }
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override {
    auto list = co_await inner().list_owned(std::move(tag_prefix), deadline);
    if (list) std::ranges::for_each(list->instances, Edit);
    co_return list;
  }
  async::Task<model::Instance> get(model::InstanceRef ref, base::Deadline deadline) override {
    auto instance = co_await inner().get(std::move(ref), deadline);
    if (instance) Edit(*instance);
    co_return instance;
  }
};

/// Asks ten times where once is enough.
class Nervous final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<provider::OwnedList> list_owned(std::string tag_prefix, base::Deadline deadline) override {
    for (int i = 0; i < 19; ++i) (void)co_await inner().list_owned(tag_prefix, deadline);
    co_return co_await inner().list_owned(std::move(tag_prefix), deadline);
  }
};

/// Buys under another key than the one that was written down.
class OtherKey final : public PassingProvider {
 public:
  using PassingProvider::PassingProvider;
  async::Task<model::Instance> create(model::Placement placement, model::ResolvedPod pod,
                                      base::Deadline deadline) override {
    placement.tag = base::InstanceTag(placement.tag.str() + "0");
    return inner().create(std::move(placement), std::move(pod), deadline);
  }
};

}  // namespace

std::vector<Mutant> provider_mutants() {
  return {
      Mutant("lost-is-refused", "takes a lost answer to a create for a refusal", wrapped<LostIsRefused>),
      Mutant("list-is-truth", "believes what one listing leaves out, also an incomplete one", wrapped<ListIsTruth>),
      Mutant("terminating-is-gone", "takes an instance that is ending for one that has ended",
             wrapped<TerminatingIsGone>),
      Mutant("told-is-done", "does not look whether an instance has ended", wrapped<ToldIsDone>),
      Mutant("half-terminates", "ends only some of what it should", wrapped<HalfTerminates>),
      Mutant("no-tag-check", "takes other people's instances for its own", wrapped<NoTagCheck>),
      Mutant("exit-zero", "takes an unknown exit code for success", wrapped<Misread<forget_exit_codes>>),
      Mutant("no-read-back", "does not read back what an instance costs", wrapped<NoReadBack>),
      Mutant("wrong-unit", "reads a tenth of what an instance costs", wrapped<Misread<read_a_tenth>>),
      Mutant("nervous", "lists without end", wrapped<Nervous>),
      Mutant("other-key", "buys under another key than it wrote down", wrapped<OtherKey>),
  };
}

}  // namespace spillway::simulation
