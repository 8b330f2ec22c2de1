#include "vk-provider/base/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace spillway::base {
namespace {

class PrometheusCounter final : public Counter {
 public:
  explicit PrometheusCounter(prometheus::Counter& c) : counter_(c) {}
  void add(double n) override { counter_.Increment(n); }

 private:
  prometheus::Counter& counter_;
};

class PrometheusGauge final : public Gauge {
 public:
  explicit PrometheusGauge(prometheus::Gauge& g) : gauge_(g) {}
  void set(double value) override { gauge_.Set(value); }

 private:
  prometheus::Gauge& gauge_;
};

class PrometheusHistogram final : public Histogram {
 public:
  explicit PrometheusHistogram(prometheus::Histogram& h) : histogram_(h) {}
  void observe(double value) override { histogram_.Observe(value); }

 private:
  prometheus::Histogram& histogram_;
};

template <class T>
using Known = std::map<std::pair<std::string, MetricLabels>, std::unique_ptr<T>>;

template <class T, class Make>
T& find_or_make(Known<T>& known, const std::string& name, const MetricLabels& labels, Make make) {
  auto& slot = known[{name, labels}];
  if (!slot) slot = make();
  return *slot;
}

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  std::map<std::string, prometheus::Family<prometheus::Counter>*> counter_families;
  std::map<std::string, prometheus::Family<prometheus::Gauge>*> gauge_families;
  std::map<std::string, prometheus::Family<prometheus::Histogram>*> histogram_families;
  Known<Counter> counters;
  Known<Gauge> gauges;
  Known<Histogram> histograms;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(const std::string& name, const std::string& help, const MetricLabels& labels) {
  return find_or_make(state_->counters, name, labels, [&] {
    auto*& family = state_->counter_families[name];
    if (family == nullptr) family = &prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
    return std::make_unique<PrometheusCounter>(family->Add(labels));
  });
}

Gauge& Metrics::gauge(const std::string& name, const std::string& help, const MetricLabels& labels) {
  return find_or_make(state_->gauges, name, labels, [&] {
    auto*& family = state_->gauge_families[name];
    if (family == nullptr) family = &prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry);
    return std::make_unique<PrometheusGauge>(family->Add(labels));
  });
}

Histogram& Metrics::histogram(const std::string& name, const std::string& help, const MetricLabels& labels,
                              const std::vector<double>& bounds) {
  return find_or_make(state_->histograms, name, labels, [&] {
    auto*& family = state_->histogram_families[name];
    if (family == nullptr) family = &prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
    return std::make_unique<PrometheusHistogram>(family->Add(labels, bounds));
  });
}

std::string Metrics::to_text() const { return prometheus::TextSerializer().Serialize(state_->registry.Collect()); }

const std::vector<double>& latency_bounds() {
  static const std::vector<double> bounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                          2.5,   5,      10,    30,   60,    120,  300, 600,  1800};
  return bounds;
}

}  // namespace spillway::base
