// What was counted and measured, fading with time. Pure values; times are arguments.
#pragma once

#include "vk-provider/base/clock.hpp"

namespace spillway::core {

/// Outcomes of a question with yes or no. Half of it is forgotten after a half-life; then the prior speaks again.
class Evidence {
 public:
  void add(bool yes, double weight, base::TimePoint now, base::Duration half_life);
  /// The share of yes. `prior` counts like `prior_weight` outcomes.
  double share(double prior, double prior_weight, base::TimePoint now, base::Duration half_life) const;

  /// What is left of it.
  struct Counts {
    double yes = 0;
    double no = 0;
    Counts without(const Counts& part) const { return {yes - part.yes, no - part.no}; }
    double share(double prior, double prior_weight) const;
  };
  Counts at(base::TimePoint now, base::Duration half_life) const;

 private:
  double yes_ = 0;
  double no_ = 0;
  base::TimePoint at_{};
};

/// How long something takes, as far as it is believed: log-normal.
struct TimeBelief {
  double mu = 0;  // of the logarithm of seconds
  double sigma = 0;
  double mean_hours() const;
  base::Duration quantile95() const;
  /// Mean of what is left after `waited` without an end.
  double mean_rest_hours(base::Duration waited) const;
  /// Chance that it takes longer than that.
  double chance_longer(base::Duration waited) const;
};

/// Measured times. Fades with a half-life of a week.
class Measurements {
 public:
  void add(base::Duration took, base::TimePoint now);
  /// `prior` counts like five measurements.
  TimeBelief belief(const TimeBelief& prior, base::TimePoint now) const;

 private:
  double count_ = 0;
  double mean_ = 0;     // of the logarithm of seconds
  double squares_ = 0;  // sum of squared distances from the mean
  base::TimePoint at_{};
};

/// Interruptions over the time that was watched. Fades with a half-life of a week.
class Interruptions {
 public:
  /// So many instances run now: the time from here on is watched.
  void running(int change, base::TimePoint now);
  void interrupted(base::TimePoint now);
  /// Per hour of one instance; `prior_count` interruptions in `prior_hours` are what is believed before anything is
  /// seen.
  double rate(double prior_count, double prior_hours, base::TimePoint now) const;

 private:
  struct Fade {
    double factor;
    double watched;  // hours, faded like the rest
  };
  Fade since(base::TimePoint now) const;
  void settle(base::TimePoint now);

  double count_ = 0;
  double hours_ = 0;
  int running_ = 0;
  base::TimePoint at_{};
};

}  // namespace spillway::core
