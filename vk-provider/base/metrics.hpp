// Counters, gauges and histograms of one process, exposed in the Prometheus text format.
//
// A Metrics is owned by the daemon and outlives all who hold one of its parts. Components keep references to what they
// count, made once in their constructors. Labels come from closed sets: never a pod's name or UID. Any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spillway::base {

using MetricLabels = std::map<std::string, std::string>;

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void add(double n = 1) = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void set(double value) = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  /// In the unit that the metric's name says (seconds).
  virtual void observe(double value) = 0;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// The same name and labels give the same object. A name has one help text and one type, given at its first use.
  Counter& counter(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Gauge& gauge(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  /// `bounds` are the upper bounds of the buckets, ascending.
  Histogram& histogram(const std::string& name, const std::string& help, const MetricLabels& labels,
                       const std::vector<double>& bounds);

  /// The whole registry as text/plain; version=0.0.4.
  std::string to_text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Bounds that suit calls and steps from a millisecond to half an hour, in seconds.
const std::vector<double>& latency_bounds();

}  // namespace spillway::base
