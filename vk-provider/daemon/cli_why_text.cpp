// How `spillway why` looks: a few lines and tables for people, JSON for programs.
#include <fmt/format.h>

#include "vk-provider/core/explain_text.hpp"
#include "vk-provider/daemon/cli_why.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::daemon {
namespace {

std::string bought_text(const model::StateRecord& record) {
  const model::Placement& p = record.placement;
  std::string text = fmt::format("offer {} of provider {} at ${}/h, attempt {}", p.offer.str(), p.provider.str(),
                                 p.price_per_hour.to_dollars(), p.attempt);
  if (!record.instance.empty()) text += ", instance " + record.instance.str();
  return text;
}

std::string table_text(const WhyReport& report) {
  if (!report.problem.empty()) return "";
  std::string text = fmt::format("Pod {}/{} on node {}: {}\n", report.ns, report.name,
                                 report.node.empty() ? "(none yet)" : report.node, report.stage);
  if (report.placement) text += "  chosen: " + bought_text(*report.placement) + "\n";
  if (!report.choice.empty()) text += "  why: " + report.choice + "\n";
  if (!report.waits_for.empty()) text += "  waits for: " + report.waits_for + "\n";
  for (const std::string& change : report.changes) text += "  would change it: " + change + "\n";
  if (!report.events_problem.empty()) text += "  its events cannot be read: " + report.events_problem + "\n";
  if (!report.daemon_problem.empty()) text += "  the daemon was not asked: " + report.daemon_problem + "\n";
  if (!report.next.empty()) {
    Table next({"NEXT", "PROVIDER", "$/H", "EXPECTED COST", "LOST BY", "REMARK"});
    for (const WhyReport::Next& row : report.next) {
      next.add({row.offer, row.provider, row.per_hour.to_dollars(), core::rounded_dollars(row.index), row.lost_by,
                row.closed});
    }
    text += "\n" + next.to_text();
  }
  if (!report.events.empty()) {
    Table events({"LAST SEEN", "TIMES", "EVENT", "MESSAGE"});
    for (const WhyReport::Event& e : report.events) {
      events.add({e.last_seen, std::to_string(e.count), e.reason, e.message});
    }
    text += "\n" + events.to_text();
  }
  return text;
}

std::string json_text(const WhyReport& report) {
  kube::JsonWriter w;
  w.open_object().field("namespace", report.ns).field("name", report.name).field_if("problem", report.problem);
  w.field_if("uid", report.uid).field_if("node", report.node).field_if("stage", report.stage);
  w.field_if("waitsFor", report.waits_for).field_if("why", report.choice);
  if (report.placement) {
    const model::Placement& p = report.placement->placement;
    w.key("placement").open_object().field("provider", p.provider.str()).field("offer", p.offer.str());
    w.field_number("pricePerHourMicros", p.price_per_hour.micros()).field_number("attempt", p.attempt);
    w.field("tag", p.tag.str()).field_if("instance", report.placement->instance.str()).close_object();
  }
  w.key("events").open_array();
  for (const WhyReport::Event& e : report.events) {
    w.open_object().field("lastSeen", e.last_seen).field_number("count", e.count).field("reason", e.reason);
    w.field("message", e.message).close_object();
  }
  w.close_array().field_if("eventsProblem", report.events_problem).field_if("daemonProblem", report.daemon_problem);
  // What the daemon says is JSON already.
  const std::string daemon = report.daemon_json.empty() ? "null" : report.daemon_json;
  return w.take() + ",\"daemon\":" + daemon + "}\n";
}

}  // namespace

std::string to_text(const WhyReport& report, Output output) {
  return output == Output::kJson ? json_text(report) : table_text(report);
}

}  // namespace spillway::daemon
