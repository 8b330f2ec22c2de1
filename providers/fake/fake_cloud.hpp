// A toy cloud: sells instances that do nothing but pass through their states, and bills for them.
//
// Pure: no socket, no clock, no thread. Time is an argument of every call and must not run backwards; what was due
// between two calls happens at its own time, in order, before the next call is looked at. Equal settings and equal
// calls give equal answers. Owned by a fake-cloud server, by a provider in the daemon's process, or by a test that
// lets it outlive several daemons. Restarts nothing by itself.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "providers/fake/fake_cloud_types.hpp"
#include "providers/fake/faults.hpp"
#include "providers/fake/orders.hpp"
#include "vk-provider/base/text_pool.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::fake {

class FakeCloud {
 public:
  /// The cloud's wall clock starts at `start.wall` and never jumps.
  FakeCloud(CloudSettings settings, base::Now start);
  ~FakeCloud();
  FakeCloud(const FakeCloud&) = delete;
  FakeCloud& operator=(const FakeCloud&) = delete;

  // What a customer can do; see provider/provider.hpp for the meaning. References carry no provider name.
  Reply<std::vector<model::Offer>> list_offers(base::TimePoint now);
  Reply<model::Instance> create(CreateRequest request, base::TimePoint now);
  Reply<model::Instance> get(const std::string& id, base::TimePoint now);
  Reply<provider::OwnedList> list_owned(const std::string& tag_prefix, base::TimePoint now);
  Reply<void> terminate(const std::string& id, std::chrono::seconds grace, base::TimePoint now);
  Reply<void> control(const std::string& id, const std::string& container, provider::ContainerAction action,
                      std::chrono::seconds grace, base::TimePoint now);
  Reply<LogPage> read_log(const std::string& id, const LogRequest& request, base::TimePoint now);
  Reply<std::vector<provider::Sample>> samples(base::TimePoint now);

  // What only a test can do; faults do not touch these.
  base::Result<std::uint64_t> add_fault(FaultRule rule, base::TimePoint now) {
    return faults_.add(std::move(rule), now);
  }
  void clear_faults() { faults_.clear(); }
  base::Result<void> kill(const std::string& id, KillOrder order, base::TimePoint now);
  /// An instance of somebody else, with any tag or none, that runs until it is killed. Returns its id.
  std::string add_foreign(std::string tag, base::TimePoint now);
  std::vector<InvoiceLine> invoice(base::TimePoint now);
  Audit audit(base::TimePoint now);
  /// How many instances exist now, foreign ones included.
  size_t size(base::TimePoint now);

 private:
  using Serial = std::uint64_t;
  struct Machine;
  struct Account;
  struct Todo;

  void advance(base::TimePoint now);
  void perform(const Todo& todo, base::TimePoint at);
  void schedule(base::TimePoint at, Todo todo);
  Verdict judge(const CallFacts& facts, base::TimePoint now);

  base::Result<model::Instance> buy(CreateRequest request, const Verdict& verdict, base::TimePoint now);
  Machine& add_machine(base::SharedText tag, const CloudOffer* sold, base::TimePoint now);
  Machine* find(const std::string& id);
  Machine* find_by_tag(const base::SharedText& tag);

  void boot(Machine& m, base::TimePoint at);
  void start_container(Machine& m, size_t index, base::TimePoint at);
  void end_container(Machine& m, size_t index, int exit_code, bool oom, base::TimePoint at);
  void begin_end(Machine& m, base::TimePoint gone_at, std::string_view by, base::TimePoint now);
  void remove(Serial serial, base::TimePoint at);
  base::Result<void> do_control(Machine& m, const std::string& container, provider::ContainerAction action,
                                std::chrono::seconds grace, base::TimePoint now);
  void start_again(Machine& m, size_t index, base::TimePoint at);
  void stop_container(Machine& m, size_t index, std::chrono::seconds grace, bool again, base::TimePoint now);
  base::Result<LogPage> lines_of(const Machine& m, const LogRequest& request, base::TimePoint now) const;

  void start_meter(Machine& m, base::TimePoint at);
  void stop_meter(Machine& m, base::TimePoint at);
  void walk_prices(base::TimePoint now);
  base::WallTime wall(base::TimePoint t) const;
  int in_use(const base::SharedText& offer) const;
  std::string id_of(Serial serial) const { return id_stem_ + std::to_string(serial); }
  Account& account_of(const Machine& m);

  CloudSettings settings_;
  base::Now start_;
  base::SeededRandom random_;
  base::SeededRandom price_random_;
  FaultBook faults_;
  std::string id_stem_;
  Serial next_serial_ = 1;
  std::unordered_map<Serial, std::unique_ptr<Machine>> machines_;
  std::multimap<base::SharedText, Serial> by_tag_;
  std::map<base::SharedText, int> in_use_;  // by offer
  std::multimap<base::TimePoint, Todo> agenda_;
  std::vector<base::Money> list_prices_;  // where the walk began, by index of settings_.offers
  std::int64_t price_steps_done_ = 0;
  std::deque<Account> accounts_;                       // by serial - 1
  std::unordered_map<base::SharedText, int> creates_;  // calls that reached the cloud, by tag
  std::array<std::uint64_t, kCalls> calls_{};
  base::TextPool texts_;
};

}  // namespace spillway::providers::fake
