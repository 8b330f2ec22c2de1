// How `spillway doctor` looks: what is wrong first, then what is well; JSON for programs.
#include "vk-provider/daemon/cli_doctor.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::daemon {
namespace {

using core::DoctorReport;
using core::DoctorSeverity;
using State = DoctorReport::State;

constexpr std::size_t kMostShown = 20;  // findings of one check; what is more is counted

/// ok, warning, error, skipped, not checked.
std::string_view result_of(const DoctorReport& report) {
  if (!report.findings.empty()) return to_string(report.severity());
  if (report.state == State::kNotRun) return "not checked";
  return report.state == State::kSkipped ? "skipped" : "ok";
}

std::string finding_lines(const DoctorReport& report, DoctorSeverity wanted) {
  std::string out;
  std::size_t shown = 0;
  for (const core::DoctorFinding& finding : report.findings) {
    if (finding.severity != wanted || ++shown > kMostShown) continue;
    out += std::string(wanted == DoctorSeverity::kError ? "ERROR    " : "WARNING  ") +
           std::string(to_string(report.check)) + ": " + printable(finding.object + ": " + finding.what) + "\n";
  }
  if (shown > kMostShown) out += "         ... and " + std::to_string(shown - kMostShown) + " more\n";
  if (out.empty()) return out;
  return out + "         why: " + std::string(why_of(report.check)) +
         "\n         fix: " + std::string(fix_of(report.check)) + "\n";
}

std::string not_run_line(const DoctorReport& report) {
  return "WARNING  " + std::string(to_string(report.check)) + ": not checked: " + printable(report.note) + "\n";
}

std::string to_table(const DoctorOutcome& outcome) {
  std::string out;
  for (const DoctorReport& report : outcome.reports) out += finding_lines(report, DoctorSeverity::kError);
  for (const DoctorReport& report : outcome.reports) {
    out += finding_lines(report, DoctorSeverity::kWarning);
    if (report.state == State::kNotRun) out += not_run_line(report);
  }
  if (!out.empty()) out += "\n";
  Table table({"CHECK", "RESULT", "NOTE"});
  for (const DoctorReport& report : outcome.reports) {
    table.add({std::string(to_string(report.check)), std::string(result_of(report)), report.note});
  }
  return out + table.to_text();
}

std::string to_json(const DoctorOutcome& outcome) {
  kube::JsonWriter w;
  w.open_object().field_if("problem", outcome.problem);
  w.field("worst", to_string(core::worst_of(outcome.reports)));
  w.key("checks").open_array();
  for (const DoctorReport& report : outcome.reports) {
    w.open_object().field("check", to_string(report.check)).field("result", result_of(report));
    w.field_if("note", report.note).key("findings").open_array();
    for (const core::DoctorFinding& finding : report.findings) {
      w.open_object().field("severity", to_string(finding.severity)).field("object", finding.object);
      w.field("what", finding.what).field("why", why_of(report.check)).field("fix", fix_of(report.check));
      w.close_object();
    }
    w.close_array().close_object();
  }
  w.close_array().close_object();
  return w.take() + "\n";
}

}  // namespace

std::string to_text(const DoctorOutcome& outcome, Output output) {
  return output == Output::kJson ? to_json(outcome) : to_table(outcome);
}

}  // namespace spillway::daemon
