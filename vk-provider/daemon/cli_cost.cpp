#include "vk-provider/daemon/cli_cost.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "vk-provider/base/duration_text.hpp"
#include "vk-provider/control/ledger_codec.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::daemon {
namespace {

constexpr base::Duration kReadDeadline = std::chrono::minutes(2);
// Longer than anybody keeps a ledger, and short enough for every clock.
constexpr int kMostDays = 36'600;

std::string name_of(const core::LedgerEntry& e, CostBy by) {
  const auto named = [](const base::SharedText& name) { return name.empty() ? std::string("unknown") : name.str(); };
  std::string pod = named(e.of.ns) + "/" + named(e.of.pod);
  switch (by) {
    case CostBy::kNamespace: return named(e.of.ns);
    case CostBy::kOwner:
      return e.of.owner_kind.empty() ? pod : e.of.ns.str() + "/" + e.of.owner_kind.str() + "/" + e.of.owner_name.str();
    case CostBy::kProvider: return e.ref.provider.str();
    case CostBy::kNode: return named(e.of.node);
    case CostBy::kPod: return pod;
  }
  return {};
}

void add(CostRow& row, const core::LedgerEntry& e, base::Money spent) {
  ++row.instances;
  row.spent = row.spent + spent;
  if (!e.begin) return;
  ++row.running;
  row.per_hour = row.per_hour + e.per_hour;
}

std::optional<base::Duration> parse_days(std::string_view text) {
  int days = 0;
  if (!text.ends_with('d')) return std::nullopt;
  text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), days);
  if (error != std::errc() || end != text.data() + text.size() || days < 0 || days > kMostDays) return std::nullopt;
  return std::chrono::hours(24) * days;
}

void write_row(kube::JsonWriter& w, const CostRow& row) {
  w.open_object()
      .field("name", row.name)
      .field_number("instances", row.instances)
      .field_number("running", row.running)
      .field("dollarsPerHour", row.per_hour.to_dollars())
      .field("dollars", row.spent.to_dollars())
      .field_number("micros", row.spent.micros())
      .close_object();
}

std::string to_json(const CostReport& report) {
  kube::JsonWriter w;
  w.open_object().field("by", word_of(report.by));
  if (report.since) w.field("since", base::to_rfc3339(*report.since));
  w.field_if("problem", report.problem).key("rows").open_array();
  for (const CostRow& row : report.rows) write_row(w, row);
  w.close_array().key("total");
  write_row(w, report.total);
  w.close_object();
  return w.take() + "\n";
}

}  // namespace

std::string_view word_of(CostBy by) {
  switch (by) {
    case CostBy::kNamespace: return "namespace";
    case CostBy::kOwner: return "owner";
    case CostBy::kProvider: return "provider";
    case CostBy::kNode: return "node";
    case CostBy::kPod: return "pod";
  }
  return "";
}

base::Result<base::WallTime> parse_since(std::string_view text, base::WallTime now) {
  auto back = parse_days(text);
  if (!back) back = base::parse_duration(text);
  if (back && *back >= base::Duration(0)) return now - std::chrono::duration_cast<std::chrono::microseconds>(*back);
  auto time = base::from_rfc3339(text);
  if (!time) time = base::from_rfc3339(std::string(text) + "T00:00:00Z");
  if (time) return *time;
  return base::fail(base::ErrorKind::kInvalid, "--since: found \"" + std::string(text) +
                                                   "\"; allowed: how long ago (90m, 24h, 7d), a day of UTC "
                                                   "(2026-12-01) or a time (2026-12-01T08:00:00Z)");
}

CostReport sum_up(const std::vector<core::LedgerEntry>& entries, const CostOptions& options, base::WallTime now) {
  CostReport report;
  report.by = options.by;
  report.since = options.since;
  report.total.name = "total";
  std::map<std::string, CostRow> rows;
  for (const core::LedgerEntry& e : entries) {
    // Nothing of what ended before is of that time, not even the whole steps that were paid.
    if (options.since && !e.begin && e.until < *options.since) continue;
    const base::Money spent = options.since ? core::cost_since(e, *options.since, now) : core::cost_of(e, now);
    CostRow& row = rows[name_of(e, options.by)];
    add(row, e, spent);
    add(report.total, e, spent);
  }
  for (auto& [name, row] : rows) {
    row.name = name;
    report.rows.push_back(std::move(row));
  }
  std::ranges::sort(report.rows, [](const CostRow& a, const CostRow& b) {
    return a.spent != b.spent ? a.spent > b.spent : a.name < b.name;
  });
  return report;
}

boost::asio::awaitable<CostReport> gather_cost(Surroundings in, CostOptions options) {
  kube::ConfigMapClient maps(*in.api, options.ns);
  auto shards = co_await maps.list(control::ledger_selector(options.installation), in.timers->now() + kReadDeadline);
  auto entries = shards ? control::decode_shards(std::move(*shards)) : base::fail(std::move(shards.error()));
  CostReport report;
  if (!entries) {
    report.exit_code = kExitFailed;
    report.problem = "the ledger cannot be read: " + entries.error().message;
    co_return report;
  }
  std::vector<core::LedgerEntry> list;
  for (auto& [key, entry] : *entries) list.push_back(std::move(entry));
  co_return sum_up(list, options, in.timers->wall());
}

std::string to_text(const CostReport& report, Output output) {
  if (output == Output::kJson) return to_json(report);
  if (!report.problem.empty()) return "";
  std::string head(word_of(report.by));
  std::ranges::transform(head, head.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  Table table({head, "INSTANCES", "RUNNING", "$/H", "SPENT $"});
  const auto line = [&](const CostRow& row) {
    table.add({row.name, std::to_string(row.instances), std::to_string(row.running), row.per_hour.to_dollars(),
               row.spent.to_dollars()});
  };
  for (const CostRow& row : report.rows) line(row);
  line(report.total);
  return table.to_text();
}

}  // namespace spillway::daemon
