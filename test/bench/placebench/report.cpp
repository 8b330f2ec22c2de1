#include "test/bench/placebench/report.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace spillway::placebench {
namespace {

using nlohmann::json;

struct Figure {
  const char* name;
  double Metrics::* value;
};
constexpr std::array<Figure, 13> kFigures{{{"rent_per_hour", &Metrics::rent_per_hour},
                                           {"rent_to_least", &Metrics::rent_to_least},
                                           {"total_to_least", &Metrics::total_to_least},
                                           {"to_running_p50", &Metrics::to_running_p50},
                                           {"to_running_p95", &Metrics::to_running_p95},
                                           {"to_running_p99", &Metrics::to_running_p99},
                                           {"slow_share", &Metrics::slow_share},
                                           {"calls_per_pod", &Metrics::calls_per_pod},
                                           {"losses_per_pod", &Metrics::losses_per_pod},
                                           {"redone_share", &Metrics::redone_share},
                                           {"wasted_share", &Metrics::wasted_share},
                                           {"delay_hours", &Metrics::delay_hours},
                                           {"brier", &Metrics::brier}}};

json json_of(const std::vector<Bet>& bets) {
  json out = json::array();
  for (const Bin& bin : bins_of(bets)) {
    out.push_back({{"believed", bin.believed}, {"cameTrue", bin.came_true}, {"count", bin.count}});
  }
  return out;
}

json json_of(const Row& row) {
  json out{{"scenario", row.scenario}, {"value", row.value}, {"policy", row.policy}};
  for (const Figure& f : kFigures) {
    const Spread spread = spread_of(row.seeds, f.value);
    out[f.name] = {{"mean", spread.mean}, {"worst", spread.worst}};
  }
  if (!row.bets.empty()) out["reliability"] = json_of(row.bets);
  return out;
}

json json_of(const StormResult& g) {
  return {{"pods", g.pods},
          {"done", g.done},
          {"lastDoneSeconds", g.last_done},
          {"creates", g.calls},
          {"ghosts", g.ghosts},
          {"leaked", g.leaked},
          {"doubles", g.doubles},
          {"overruns", g.overruns},
          {"mostBurn", g.most_burn},
          {"cap", g.cap},
          {"rateLimited", g.rate_limited},
          {"crowdedProbes", g.crowded_probes}};
}

json json_of(const SpeedResult& h) {
  return {{"warmP50Us", h.warm_p50},   {"warmP99Us", h.warm_p99},     {"coldP50Us", h.cold_p50},
          {"coldP99Us", h.cold_p99},   {"redecideMs", h.redecide_ms}, {"tableMs", h.table_ms},
          {"explainUs", h.explain_us}, {"learnNs", h.learn_ns}};
}

void add_rows(std::string& out, const Report& report, const Row& first) {
  out += fmt::format("\n### {}, v = ${} per hour of delay\n\n{}\n\n", first.scenario, first.value, first.what);
  out +=
      "| policy | $/useful h | rent ÷ bound (worst) | rent and delay ÷ bound (worst) | to Running p50/p95/p99 s | > "
      "600 s % "
      "| creates/pod | taken back/pod | redone % | wasted % | Brier |\n";
  out += "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : report.rows) {
    if (row.scenario != first.scenario || row.value != first.value) continue;
    const auto mean = [&](double Metrics::* f) { return spread_of(row.seeds, f).mean; };
    const auto worst = [&](double Metrics::* f) { return spread_of(row.seeds, f).worst; };
    out += fmt::format(
        "| {} | {:.3f} | {:.3f} ({:.3f}) | {:.3f} ({:.3f}) | {:.0f}/{:.0f}/{:.0f} | {:.2f} | {:.2f} | {:.2f} "
        "| {:.2f} | {:.2f} | {} |\n",
        row.policy, mean(&Metrics::rent_per_hour), mean(&Metrics::rent_to_least), worst(&Metrics::rent_to_least),
        mean(&Metrics::total_to_least), worst(&Metrics::total_to_least), mean(&Metrics::to_running_p50),
        mean(&Metrics::to_running_p95), mean(&Metrics::to_running_p99), 100 * mean(&Metrics::slow_share),
        mean(&Metrics::calls_per_pod), mean(&Metrics::losses_per_pod), 100 * mean(&Metrics::redone_share),
        100 * mean(&Metrics::wasted_share), row.bets.empty() ? "" : fmt::format("{:.3f}", brier_of(row.bets)));
  }
}

/// Where somebody else was better than we are, in what counts.
void add_losses(std::string& out, const Report& report) {
  for (const Row& ours : report.rows) {
    if (ours.policy != "index+hedge") continue;
    const double mine = spread_of(ours.seeds, &Metrics::total_to_least).mean;
    for (const Row& row : report.rows) {
      const bool rival = row.policy != "index" && row.policy != ours.policy && row.policy != "clairvoyant";
      if (!rival || row.scenario != ours.scenario || row.value != ours.value) continue;
      const double theirs = spread_of(row.seeds, &Metrics::total_to_least).mean;
      if (theirs < mine) {
        out += fmt::format("\nIn {} at v = {} `{}` wins: {:.3f} against {:.3f}.\n", ours.scenario, ours.value,
                           row.policy, theirs, mine);
      }
    }
  }
}

void add_calibration(std::string& out, const Report& report) {
  if (report.calibrations.empty()) return;
  out += "\n### Calibration of the chances\n\n| who | questions | Brier score |\n|---|---|---|\n";
  for (const Calibration& c : report.calibrations) {
    out += fmt::format("| {} | {} | {:.4f} |\n", c.name, c.bets.size(), brier_of(c.bets));
  }
  out += "\n| believed | came true | questions |\n|---|---|---|\n";
  for (const Bin& bin : bins_of(report.calibrations.front().bets)) {
    out += fmt::format("| {:.3f} | {:.3f} | {} |\n", bin.believed, bin.came_true, bin.count);
  }
}

void add_storm_and_speed(std::string& out, const Report& report) {
  if (const auto& g = report.storm) {
    out += fmt::format(
        "\n### G, the storm\n\n{} of {} pods done after {:.0f} min; {} creates, {} of them 429, {} ghosts; leaked {}, "
        "twice {}, "
        "overruns {}; at most ${:.2f} of ${:.2f} per hour; {} tries turned away by a lease.\n",
        g->done, g->pods, g->last_done / 60, g->calls, g->rate_limited, g->ghosts, g->leaked, g->doubles, g->overruns,
        g->most_burn, g->cap, g->crowded_probes);
  }
  if (const auto& h = report.speed) {
    out += fmt::format(
        "\n### H, speed\n\nwarm, 10,000 offers: p50 {:.2f} us, p99 {:.2f} us; cold, 50,000 offers: p50 {:.0f} us, p99 "
        "{:.0f} us; "
        "10,000 pods decided again: {:.0f} ms, of which the table {:.0f} ms; an explanation {:.0f} us; a report {:.0f} "
        "ns.\n",
        h->warm_p50, h->warm_p99, h->cold_p50, h->cold_p99, h->redecide_ms, h->table_ms, h->explain_us, h->learn_ns);
  }
}

}  // namespace

std::string to_json(const Report& report) {
  json out{
      {"data", {{"folder", report.folder}, {"files", report.digests}}}, {"pods", report.pods}, {"seeds", report.seeds}};
  for (const Row& row : report.rows) out["rows"].push_back(json_of(row));
  for (const Calibration& c : report.calibrations) {
    out["calibration"].push_back(
        {{"who", c.name}, {"questions", c.bets.size()}, {"brier", brier_of(c.bets)}, {"reliability", json_of(c.bets)}});
  }
  if (report.storm) out["storm"] = json_of(*report.storm);
  if (report.speed) out["speed"] = json_of(*report.speed);
  for (const Must& must : musts_of(report)) {
    out["musts"].push_back({{"name", must.name}, {"limit", must.limit}, {"value", must.value}, {"met", must.met()}});
  }
  return out.dump(2) + "\n";
}

std::string to_markdown(const Report& report) {
  std::string out =
      fmt::format("# placebench\n\n{} pods, {} seeds. Data seen, in {}:\n\n", report.pods, report.seeds, report.folder);
  for (const auto& [file, digest] : report.digests) out += fmt::format("- {} ({})\n", file, digest);
  const std::vector<Must> musts = musts_of(report);
  if (!musts.empty()) out += "\n| must | limit | here | |\n|---|---|---|---|\n";
  for (const Must& must : musts) {
    out += fmt::format("| {} | {:.3f} | {:.3f} | {} |\n", must.name, must.limit, must.value,
                       must.met() ? "met" : "MISSED");
  }
  add_losses(out, report);
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const Row& row = report.rows[i];
    const bool seen = std::any_of(report.rows.begin(), report.rows.begin() + static_cast<std::ptrdiff_t>(i),
                                  [&](const Row& r) { return r.scenario == row.scenario && r.value == row.value; });
    if (!seen) add_rows(out, report, row);
  }
  add_calibration(out, report);
  add_storm_and_speed(out, report);
  return out;
}

}  // namespace spillway::placebench
