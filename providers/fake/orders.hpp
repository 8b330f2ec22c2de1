// What a pod orders of the fake cloud by annotations under fake.spillway.dev/: how its run shall go.
//
// Pure values and parsing. Every other provider ignores these annotations.
//
//   boot-time      2s            until the container starts; otherwise the cloud's boot time
//   run-for        30s           the container ends by itself after that; otherwise it runs until it is stopped
//   exit-code      3  or  1,1,0  of a run that ends by itself; several: of the first, second, ... run, the last repeats
//   oom            true          runs end by being killed for memory (137)
//   start-error    no such file  the container cannot be started (128), with this message
//   image-error    not found     the image cannot be pulled, with this message
//   fail-boot      host died     the instance fails instead of starting, with this message
//   fail-create    no_capacity   create answers this kind of error
//   stop-time      5s            how long the container takes to end when it is told to; the grace cuts it short
//   preempt-after  1m            the cloud takes the instance back so long after its start
//   log-lines      100           how many lines a run writes to its log; otherwise 3
//   log-width      200           each of them is filled up to so many bytes, at most 4096; otherwise it is short
//   log-every      1s            between two of them; otherwise all are written at the start
//
// `run-for.NAME` and `exit-code.NAME` order it of the container NAME alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/error.hpp"

namespace spillway::providers::fake {

/// How the runs of one container shall go.
struct RunOrders {
  RunOrders() = default;
  std::optional<base::Duration> run_for;
  std::vector<int> exit_codes;
};

struct PodOrders {
  PodOrders() = default;
  std::optional<base::Duration> boot_time;
  std::optional<base::Duration> run_for;
  std::vector<int> exit_codes{0};
  bool oom = false;
  std::string start_error;
  std::string image_error;
  std::string fail_boot;
  std::optional<base::ErrorKind> fail_create;
  base::Duration stop_time{0};
  std::optional<base::Duration> preempt_after;
  int log_lines = 3;
  int log_width = 0;
  base::Duration log_every{0};

  std::map<std::string, RunOrders, std::less<>> containers;  // what is ordered of one alone

  /// Of run number `run` (1 is the first).
  int exit_code_of_run(std::string_view container, int run) const;
  std::optional<base::Duration> run_time_of(std::string_view container) const;
};

/// Reads the orders among a pod's annotations; keys of other prefixes are skipped. kInvalid with every fault in one
/// message; an unknown key is answered with the nearest valid one.
base::Result<PodOrders> parse_orders(const std::map<std::string, std::string>& annotations);

/// `250ms`, `2s`, `5m`, `1h`, `0`; a sum like `1m30s` works, too. Empty on anything else and on more than 10 years.
std::optional<base::Duration> parse_duration(std::string_view text);
/// The inverse, in the largest unit that is exact: `90s`, `250ms`, `2m`.
std::string format_duration(base::Duration d);

/// The kind whose word (base::to_string) this is.
std::optional<base::ErrorKind> parse_error_kind(std::string_view word);

/// Of `valid`, the word with the fewest edits to `text`.
std::string nearest(std::string_view text, const std::vector<std::string_view>& valid);

}  // namespace spillway::providers::fake
