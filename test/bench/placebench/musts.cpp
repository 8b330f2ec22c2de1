#include <algorithm>
#include <limits>

#include "test/bench/placebench/report.hpp"

namespace spillway::placebench {
namespace {

constexpr const char* kOurs = "index+hedge";

const Row* find(const Report& report, const std::string& scenario, double value, const std::string& policy) {
  const auto it = std::ranges::find_if(
      report.rows, [&](const Row& r) { return r.scenario == scenario && r.value == value && r.policy == policy; });
  return it == report.rows.end() ? nullptr : &*it;
}

class Musts {
 public:
  explicit Musts(const Report& report) : report_(report) {}

  void mean(const std::string& name, const std::string& scenario, double value, double Metrics::* figure,
            double limit) {
    if (const Row* const row = find(report_, scenario, value, kOurs)) {
      out_.push_back({name, limit, spread_of(row->seeds, figure).mean});
    }
  }

  void beats_baselines() {
    const Row* const ours = find(report_, "A", 1, kOurs);
    double best = std::numeric_limits<double>::infinity();
    for (const char* const name : {"cheapest5", "random", "skypilot", "dstack", "karpenter"}) {
      if (const Row* const row = find(report_, "A", 1, name)) {
        best = std::min(best, spread_of(row->seeds, &Metrics::total_to_least).mean);
      }
    }
    if (ours == nullptr || best == std::numeric_limits<double>::infinity()) return;
    out_.push_back(
        {"A, v=1: total over the best baseline's", 0.96, spread_of(ours->seeds, &Metrics::total_to_least).mean / best});
  }

  void other() {
    for (const Calibration& c : report_.calibrations) {
      if (c.name == "beliefs" && !c.bets.empty()) out_.push_back({"calibration: Brier score", 0.105, brier_of(c.bets)});
    }
    if (const auto& g = report_.storm) {
      out_.push_back({"G: instances leaked", 0, static_cast<double>(g->leaked)});
      out_.push_back({"G: pods with two instances", 0, static_cast<double>(g->doubles)});
      out_.push_back({"G: caps overrun", 0, static_cast<double>(g->overruns)});
      out_.push_back({"G: pods not done", 0, static_cast<double>(g->pods - g->done)});
    }
    if (const auto& h = report_.speed) {
      out_.push_back({"H: warm decision p50, us", 2, h->warm_p50});
      out_.push_back({"H: warm decision p99, us", 50, h->warm_p99});
      out_.push_back({"H: cold decision, us", 300, h->cold_p50});
      out_.push_back({"H: 10,000 pods decided again, ms", 500, h->redecide_ms});
    }
  }

  std::vector<Must> take() { return std::move(out_); }

 private:
  const Report& report_;
  std::vector<Must> out_;
};

}  // namespace

std::vector<Must> musts_of(const Report& report) {
  Musts musts(report);
  musts.mean("A, v=1: rent over the bound", "A", 1, &Metrics::rent_to_least, 1.06);
  musts.mean("A, v=1: rent and delay over the bound", "A", 1, &Metrics::total_to_least, 1.135);
  musts.beats_baselines();
  musts.mean("A, v=5: time to Running p99, s", "A", 5, &Metrics::to_running_p99, 420);
  musts.mean("A, v=1: work done again, share", "A", 1, &Metrics::redone_share, 0.023);
  musts.mean("A, v=1: creates per pod", "A", 1, &Metrics::calls_per_pod, 2.0);
  musts.mean("B, v=0.2: rent and delay over the bound", "B", 0.2, &Metrics::total_to_least, 1.135);
  musts.mean("B, v=1: rent and delay over the bound", "B", 1, &Metrics::total_to_least, 1.10);
  musts.mean("B, v=5: rent and delay over the bound", "B", 5, &Metrics::total_to_least, 1.12);
  musts.mean("B, v=5: time to Running p99, s", "B", 5, &Metrics::to_running_p99, 700);
  musts.mean("B, v=1: pods over 600 s to Running, share", "B", 1, &Metrics::slow_share, 0.02);
  musts.mean("B, v=1: creates per pod", "B", 1, &Metrics::calls_per_pod, 2.0);
  musts.other();
  return musts.take();
}

}  // namespace spillway::placebench
