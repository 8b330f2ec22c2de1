// What placebench found: a document for machines and a page for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/bench/placebench/data.hpp"
#include "test/bench/placebench/metrics.hpp"
#include "test/bench/placebench/speed.hpp"
#include "test/bench/placebench/storm.hpp"

namespace spillway::placebench {

/// One policy in one scenario at one value of time.
struct Row {
  std::string scenario;
  std::string what;
  double value = 0;
  std::string policy;
  std::vector<Metrics> seeds;
  std::vector<Bet> bets;
};

struct Calibration {
  std::string name;
  std::vector<Bet> bets;
};

struct Report {
  std::string folder;
  std::map<std::string, std::string> digests;
  int pods = 0;
  int seeds = 0;
  std::vector<Row> rows;
  std::vector<Calibration> calibrations;
  std::optional<StormResult> storm;
  std::optional<SpeedResult> speed;
};

struct Must {
  std::string name;
  double limit = 0;
  double value = 0;
  bool met() const { return value <= limit; }
};
/// Those for which there are figures.
std::vector<Must> musts_of(const Report& report);

std::string to_json(const Report& report);
std::string to_markdown(const Report& report);

}  // namespace spillway::placebench
