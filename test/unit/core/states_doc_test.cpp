// docs/states.md says what core::advance does. The table there is what this file finds by trying every event on a
// representative record of every stage; `unit_tests '[.states]'` prints it anew.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/support/document_part.hpp"
#include "test/unit/core/states_samples.hpp"
#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::core {
namespace {

using namespace states;

constexpr std::string_view kDocument = SPILLWAY_SOURCE_DIR "/vk-provider/docs/states.md";

// ---- words

std::string step_word(model::Creating::Step step) {
  constexpr std::array<std::string_view, 4> kWords{"intent", "create", "retry", "look_up"};
  return std::string(kWords.at(static_cast<size_t>(step)));
}

std::string step_word(model::Finished::Step step) {
  constexpr std::array<std::string_view, 4> kWords{"resting", "closing", "deleting", "deleted"};
  return std::string(kWords.at(static_cast<size_t>(step)));
}

std::string words_of(const model::ContainerRecord& c) {
  if (c.stop) {
    constexpr std::array<std::string_view, 3> kWords{", preStop hook under way", "", ", asked"};
    return ", container being stopped" + std::string(kWords.at(static_cast<size_t>(c.stop->step)));
  }
  if (c.start_under_way) return ", container being started";
  if (c.restart_at) return ", container in back-off";
  if (c.ready) return ", probed ready";
  if (c.started) return ", probed started";
  return c.post_start == model::ContainerRecord::PostStart::kUnderWay ? ", postStart hook under way" : "";
}

/// The stage with what matters inside it, and what is known of the end.
std::string words_of(const PodRecord& r) {
  std::string text(model::stage_name(r.stage));
  if (const auto* w = std::get_if<model::Waiting>(&r.stage)) text += "(" + std::string(to_string(w->why)) + ")";
  if (const auto* c = std::get_if<model::Creating>(&r.stage)) text += "/" + step_word(c->step);
  if (const auto* s = std::get_if<model::Stopping>(&r.stage)) {
    text += "(" + std::string(to_string(s->why)) + ")";
    text += s->gone ? ", gone" : s->call_under_way ? ", asking" : s->hooks_left > 0 ? ", hooks under way" : ", asked";
  }
  if (const auto* f = std::get_if<model::Finished>(&r.stage)) {
    text += "/" + step_word(f->step);
    if (f->kept) text += ", instance kept";
  }
  if (std::holds_alternative<model::Running>(r.stage)) {
    for (const model::ContainerRecord& c : r.containers) text += words_of(c);
  }
  if (r.outcome) text += ", " + std::string(to_string(r.outcome->phase));
  if (r.api_gone) {
    text += ", object gone";
  } else if (r.deleting) {
    text += ", deleting";
  }
  return text;
}

struct ActionWords {
  std::string operator()(const action::Choose&) const { return "Choose"; }
  std::string operator()(const action::WriteIntent&) const { return "WriteIntent"; }
  std::string operator()(const action::WriteStatus&) const { return "WriteStatus"; }
  std::string operator()(const action::Create&) const { return "Create"; }
  std::string operator()(const action::LookUp&) const { return "LookUp"; }
  std::string operator()(const action::Terminate& a) const {
    return "Terminate(" + std::to_string(a.grace.count()) + "s)";
  }
  std::string operator()(const action::Confirm&) const { return "Confirm"; }
  std::string operator()(const action::StartContainer&) const { return "StartContainer"; }
  std::string operator()(const action::StopContainer& a) const {
    return "StopContainer(" + std::to_string(a.grace.count()) + "s)";
  }
  std::string operator()(const action::RunHook& a) const {
    return a.hook == Hook::kPostStart ? "RunHook(postStart)" : "RunHook(preStop)";
  }
  std::string operator()(const action::CloseEntry&) const { return "CloseEntry"; }
  std::string operator()(const action::DeletePod&) const { return "DeletePod"; }
  std::string operator()(const action::Tell& a) const { return "Tell(" + a.reason + ")"; }
  std::string operator()(const action::NoteFailure&) const { return "NoteFailure"; }
  std::string operator()(const action::WakeAt&) const { return "WakeAt"; }
  std::string operator()(const action::Forget&) const { return "Forget"; }
};

std::string words_of(const Actions& actions) {
  std::string text;
  for (const Action& a : actions) text += (text.empty() ? "" : ", ") + std::visit(ActionWords{}, a);
  return text.empty() ? "-" : text;
}

// ---- the table

struct Row {
  std::vector<std::string> events;
  std::string next;
  std::string actions;
};

std::vector<Row> rows_of(const Situation& situation, const std::vector<Happening>& all) {
  const std::string before = words_of(situation.record);
  std::vector<Row> rows;
  for (const Happening& happening : all) {
    const bool asked = std::ranges::find(situation.only, happening.name) != situation.only.end();
    if (situation.only.empty() ? happening.special : !asked) continue;
    PodRecord record = situation.record;
    Actions actions;
    for (const Event& e : happening.make(record)) actions = advance(record, e, happening.now, PodPolicy{});
    const std::string next = words_of(record);
    if (next == before && actions.empty()) continue;
    const std::string done = words_of(actions);
    const auto same = std::ranges::find_if(rows, [&](const Row& r) { return r.next == next && r.actions == done; });
    if (same != rows.end()) {
      same->events.push_back(happening.name);
    } else {
      rows.push_back(Row{{happening.name}, next, done});
    }
  }
  return rows;
}

/// `X(a)` and `X(b)` become `X(a b)`, and most kinds of error `X(any other)`.
std::string shorten(const std::vector<std::string>& events) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const std::string& event : events) {
    const size_t open = event.find('(');
    const std::string head = event.substr(0, open);
    if (groups.empty() || groups.back().first != head) groups.emplace_back(head, std::vector<std::string>{});
    if (open != std::string::npos) groups.back().second.push_back(event.substr(open + 1, event.size() - open - 2));
  }
  std::string text;
  for (const auto& [head, details] : groups) {
    text += (text.empty() ? "" : ", ") + head;
    if (details.empty()) continue;
    std::string inside;
    for (const std::string& detail : details) inside += (inside.empty() ? "" : " | ") + detail;
    if (details.size() > all_kinds().size() / 2) inside = "any other";
    std::ranges::replace(inside, '|', '/');
    text += "(" + inside + ")";
  }
  return text;
}

std::vector<std::string> make_table() {
  const std::vector<Happening> all = happenings();
  std::vector<std::string> lines;
  for (const Situation& situation : situations()) {
    lines.push_back("### " + situation.name);
    lines.emplace_back();
    lines.emplace_back("| event | next | actions |");
    lines.emplace_back("| --- | --- | --- |");
    for (const Row& row : rows_of(situation, all)) {
      lines.push_back("| " + shorten(row.events) + " | " + row.next + " | " + row.actions + " |");
    }
    lines.emplace_back();
  }
  return lines;
}

TEST_CASE("the document of states says what the code does") {
  const std::vector<std::string> code = make_table();
  const std::vector<std::string> document = test::part_of_document(kDocument, "table of states");
  INFO("unit_tests '[.states]' prints the table as it is now; it stands in " << kDocument);
  std::string heading;
  for (size_t i = 0; i < std::max(code.size(), document.size()); ++i) {
    const std::string found = i < code.size() ? code[i] : "(the table ends)";
    const std::string written = i < document.size() ? document[i] : "(the document ends)";
    if (found.starts_with("###")) heading = found;
    INFO("under \"" << heading << "\"");
    REQUIRE(written == found);
  }
  REQUIRE(code.size() > 100);
}

TEST_CASE("every event does something somewhere") {
  std::string text;
  for (const std::string& line : make_table()) text += line + "\n";
  for (const Happening& happening : happenings()) {
    if (happening.name == "PodSeen(same)") continue;
    const std::string head = happening.name.substr(0, happening.name.find_first_of("( "));
    INFO(head);
    CHECK(text.find(head) != std::string::npos);
  }
}

TEST_CASE("the document explains every kind of error once") {
  std::map<std::string, int> found;
  for (const std::string& line : test::part_of_document(kDocument, "table of errors")) {
    const size_t begin = line.find('`');
    const size_t end = line.find('`', begin + 1);
    if (begin != std::string::npos && end != std::string::npos) ++found[line.substr(begin + 1, end - begin - 1)];
  }
  for (const ErrorKind kind : all_kinds()) {
    INFO(to_string(kind));
    CHECK(found[std::string(to_string(kind))] == 1);
  }
  CHECK(found.size() == all_kinds().size());
}

TEST_CASE("print the table of states", "[.states]") {
  for (const std::string& line : make_table()) std::cout << line << "\n";
}

}  // namespace
}  // namespace spillway::core
