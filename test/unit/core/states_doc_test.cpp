// docs/states.md says what core::advance does. The table there is what this file finds by trying every event on a
// representative record of every stage; `unit_tests '[.states]'` prints it anew.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/support/pod_builder.hpp"
#include "vk-provider/core/container_fsm.hpp"
#include "vk-provider/core/pod_fsm.hpp"

namespace spillway::core {
namespace {

using namespace std::chrono_literals;
using base::ErrorKind;
using model::InstanceState;
using model::PodRecord;

constexpr base::TimePoint kSteady{1000s};
constexpr base::WallTime kWall{1'700'000'000s};
constexpr base::Now kNow{kSteady, kWall};
constexpr base::Now kLater{kSteady + 1h, kWall + 1h};  // everything that was waited for is due
constexpr std::string_view kDocument = SPILLWAY_SOURCE_DIR "/vk-provider/docs/states.md";

// ---- records

struct Situation {
  Situation() = default;
  std::string name;
  PodRecord record;
  std::vector<std::string> only;  // events that are tried; empty: all
};

PodRecord a_record(model::Stage stage) {
  PodRecord r = admit(test::share(test::a_pod()), test::seen_at(), kNow);
  r.placement = test::a_placement();
  r.provider = test::facts();
  r.price_cap = base::Money::from_micros(2'000'000);
  r.attempt = 1;
  r.containers = make_container_records(*r.spec, r.observed.status);
  r.stage = std::move(stage);
  r.entered.at(r.stage.index()) = kSteady;
  return r;
}

PodRecord deleting(PodRecord r) {
  r.deleting = true;
  r.delete_by = kSteady + 30s;
  r.observed.deletion_timestamp = kWall;
  r.observed.deletion_grace = 30s;
  return r;
}

PodRecord failed(PodRecord r) {
  r.outcome = model::Outcome();
  return r;
}

model::StateRecord a_state(bool ran) {
  model::StateRecord state;
  state.placement = test::a_placement();
  state.instance = base::InstanceId("i-1");
  state.ran = ran;
  return state;
}

PodRecord admitted(model::StateAnnotation::Kind kind, bool ran) {
  PodRecord r = admit(test::share(test::a_pod()), test::seen_at(), kNow);
  r.observed.state.kind = kind;
  if (kind == model::StateAnnotation::Kind::kRecord) r.observed.state.record = a_state(ran);
  return r;
}

model::Waiting waiting(model::WaitReason why) { return {why, kSteady + 1s, "why"}; }

model::Creating creating(model::Creating::Step step) {
  model::Creating c;
  c.step = step;
  c.until = kSteady + 1s;
  c.intent_written = step != model::Creating::Step::kIntent;
  return c;
}

model::Stopping stopping(model::StopReason why, bool call_under_way) {
  model::Stopping s;
  s.ref = test::an_instance(InstanceState::kRunning).ref;
  s.why = why;
  s.retry_at = kSteady + 1s;
  s.call_under_way = call_under_way;
  s.asked_grace = 30s;
  s.message = "why";
  return s;
}

PodRecord running() {
  PodRecord r = a_record(model::Running{test::an_instance(InstanceState::kRunning)});
  apply_claims(r, test::an_instance(InstanceState::kRunning), kNow);
  r.ran = true;
  return r;
}

PodRecord running_once(bool kept) {
  PodRecord r = running();
  auto spec = *r.spec;
  spec.restart_policy = model::RestartPolicy::kNever;
  r.spec = test::share(std::move(spec));
  r.provider.keeps_stopped = kept;
  return r;
}

PodRecord crashed(bool starting) {
  PodRecord r = running();
  r.containers[0].claim.state = model::ContainerState::kExited;
  r.containers[0].crashes_in_a_row = 1;
  r.containers[0].restart_at = kSteady + 1s;
  r.containers[0].restart_under_way = starting;
  return r;
}

PodRecord finished(model::Finished::Step step, bool kept) {
  model::Finished f;
  f.step = step;
  f.delete_under_way = step == model::Finished::Step::kDeleting;
  if (kept) f.kept = test::an_instance(InstanceState::kExited).ref;
  PodRecord r = failed(a_record(std::move(f)));
  return step == model::Finished::Step::kResting ? r : deleting(std::move(r));
}

std::vector<Situation> situations() {
  using Step = model::Creating::Step;
  using End = model::Finished::Step;
  using Kind = model::StateAnnotation::Kind;
  using Stop = model::StopReason;
  std::vector<Situation> all;
  const auto add = [&](std::string name, PodRecord record, std::vector<std::string> only = {}) {
    Situation& s = all.emplace_back();
    s.name = std::move(name);
    s.record = std::move(record);
    s.only = std::move(only);
  };
  const std::vector<std::string> joins{"Joined(nothing)", "Joined(pending)", "Joined(running)"};
  const std::vector<std::string> ends{"InstanceGone"};
  add("admitted", admitted(Kind::kAbsent, false));
  add("admitted, with an intent", admitted(Kind::kRecord, false), joins);
  add("admitted, was running", admitted(Kind::kRecord, true), joins);
  add("admitted, with a state that cannot be read", admitted(Kind::kUnreadable, false), joins);
  add("admitted, deleting", deleting(admitted(Kind::kRecord, false)), joins);
  add("waiting(NoCapacity)", a_record(waiting(model::WaitReason::kNoCapacity)));
  add("waiting(Unsupported)", a_record(waiting(model::WaitReason::kRefused)));
  add("waiting(UnreadableState)", a_record(waiting(model::WaitReason::kUnreadableState)));
  add("choosing", a_record(model::Choosing{}));
  add("creating/intent", a_record(creating(Step::kIntent)));
  add("creating/intent, deleting", deleting(a_record(creating(Step::kIntent))));
  add("creating/create", a_record(creating(Step::kCreate)));
  add("creating/create, deleting", deleting(a_record(creating(Step::kCreate))));
  add("creating/retry", a_record(creating(Step::kRetry)));
  add("creating/look_up", a_record(creating(Step::kLookUp)));
  add("creating/look_up, deleting", deleting(a_record(creating(Step::kLookUp))));
  add("booting", a_record(model::Booting{test::an_instance(InstanceState::kPending), kSteady}));
  add("running", running());
  add("running, restartPolicy Never", running_once(true));
  add("running, restartPolicy Never, provider keeps nothing", running_once(false));
  add("running, container in back-off", crashed(false));
  add("running, container being started", crashed(true));
  add("stopping(deleted), asking", deleting(a_record(stopping(Stop::kDeleted, true))));
  add("stopping(deleted), asked", deleting(a_record(stopping(Stop::kDeleted, false))));
  add("stopping(completed)", failed(a_record(stopping(Stop::kCompleted, false))), ends);
  add("stopping(image_pull)", a_record(stopping(Stop::kImagePull, false)), ends);
  add("stopping(boot_failed)", a_record(stopping(Stop::kBootFailed, false)), ends);
  add("stopping(start_timeout)", a_record(stopping(Stop::kStartTimeout, false)), ends);
  add("stopping(too_dear)", a_record(stopping(Stop::kTooDear, false)), ends);
  add("stopping(lost)", a_record(stopping(Stop::kLost, false)), ends);
  add("stopping(terminal_pod)", failed(a_record(stopping(Stop::kTerminalPod, false))), ends);
  add("finished/resting", finished(End::kResting, false));
  add("finished/resting, instance kept", finished(End::kResting, true));
  add("finished/resting, deleting", deleting(finished(End::kResting, false)));
  add("finished/closing", finished(End::kClosing, false));
  add("finished/deleting", finished(End::kDeleting, false));
  add("finished/deleted", finished(End::kDeleted, false));
  return all;
}

// ---- events

/// One thing that happens, or several in a row of which the last is looked at.
struct Happening {
  Happening() = default;
  std::string name;
  std::function<std::vector<Event>(const PodRecord&)> make;
  base::Now now = kNow;
};

model::ObservedPod next_sight(const PodRecord& r) {
  model::ObservedPod observed = r.observed;
  observed.resource_version = "101";
  return observed;
}

Event pod_seen_deleting(const PodRecord& r) {
  model::ObservedPod observed = next_sight(r);
  observed.deletion_timestamp = kWall;
  observed.deletion_grace = 30s;
  return event::PodSeen{std::move(observed)};
}

Event pod_seen_terminal(const PodRecord& r) {
  model::ObservedPod observed = next_sight(r);
  observed.status.phase = model::PodPhase::kFailed;
  return event::PodSeen{std::move(observed)};
}

Event status_written(const PodRecord& r) {
  event::StatusWritten written;
  written.resource_version = "101";
  if (r.outcome) written.status.phase = r.outcome->phase;
  return written;
}

Event joined(std::optional<model::Instance> instance) {
  return event::Joined{std::move(instance), test::facts(), kSteady};
}

model::Instance failed_instance(bool image) {
  model::Instance instance = test::an_instance(InstanceState::kFailed);
  instance.image_error = image;
  return instance;
}

model::Instance dear_instance() {
  model::Instance instance = test::an_instance(InstanceState::kPending);
  instance.price_per_hour = base::Money::from_micros(3'000'000);
  return instance;
}

base::Error error(ErrorKind kind) { return {kind, "why"}; }

std::vector<ErrorKind> all_kinds() {
  std::vector<ErrorKind> kinds;
  for (int i = 0; i <= static_cast<int>(ErrorKind::kInternal); ++i) kinds.push_back(static_cast<ErrorKind>(i));
  return kinds;
}

std::vector<Happening> happenings() {
  std::vector<Happening> all;
  const auto add = [&](std::string name, std::function<std::vector<Event>(const PodRecord&)> make,
                       base::Now now = kNow) {
    Happening& h = all.emplace_back();
    h.name = std::move(name);
    h.make = std::move(make);
    h.now = now;
  };
  const auto plain = [&](std::string name, Event event) {
    add(std::move(name), [event](const PodRecord&) { return std::vector<Event>{event}; });
  };
  const auto of_kinds = [&](const std::string& name, auto make) {
    for (const ErrorKind kind : all_kinds()) {
      plain(name + "(" + std::string(to_string(kind)) + ")", make(error(kind)));
    }
  };
  add("PodSeen(same)", [](const PodRecord& r) { return std::vector<Event>{event::PodSeen{next_sight(r)}}; });
  add("PodSeen(deleting)", [](const PodRecord& r) { return std::vector<Event>{pod_seen_deleting(r)}; });
  add("PodSeen(terminal)", [](const PodRecord& r) { return std::vector<Event>{pod_seen_terminal(r)}; });
  plain("PodGone", event::PodGone{});
  plain("Joined(nothing)", joined({}));
  plain("Joined(pending)", joined(test::an_instance(InstanceState::kPending)));
  plain("Joined(running)", joined(test::an_instance(InstanceState::kRunning)));
  plain("Refused", event::Refused{"why", kSteady + 60s});
  plain("Held(NoCapacity)", event::Held{model::WaitReason::kNoCapacity, "why", kSteady + 15s});
  plain("Chosen", event::Chosen{test::a_placement(2), test::facts(), base::Money::from_micros(2'000'000)});
  plain("IntentWritten", event::IntentWritten{});
  of_kinds("IntentFailed", [](base::Error e) { return event::IntentFailed{std::move(e)}; });
  plain("Created(pending)", event::Created{test::an_instance(InstanceState::kPending)});
  plain("Created(running)", event::Created{test::an_instance(InstanceState::kRunning)});
  plain("Created(too dear)", event::Created{dear_instance()});
  of_kinds("CreateFailed", [](base::Error e) { return event::CreateFailed{std::move(e)}; });
  for (const InstanceState state :
       {InstanceState::kPending, InstanceState::kUnknown, InstanceState::kTerminating, InstanceState::kRunning}) {
    plain("InstanceSeen(" + std::string(to_string(state)) + ")", event::InstanceSeen{test::an_instance(state)});
  }
  plain("InstanceSeen(exit 0)", event::InstanceSeen{test::exited(0, kWall)});
  plain("InstanceSeen(exit 3)", event::InstanceSeen{test::exited(3, kWall)});
  plain("InstanceSeen(failed)", event::InstanceSeen{failed_instance(false)});
  plain("InstanceSeen(failed by image)", event::InstanceSeen{failed_instance(true)});
  const Event missing = event::InstanceMissing{kSteady + 1s};
  plain("InstanceMissing", missing);
  add("InstanceMissing twice", [missing](const PodRecord&) { return std::vector<Event>{missing, missing}; });
  plain("InstanceGone", event::InstanceGone{});
  add("InstanceMissing twice + InstanceGone",
      [missing](const PodRecord&) { return std::vector<Event>{missing, missing, event::InstanceGone{}}; });
  plain("TerminateAccepted", event::TerminateAccepted{});
  of_kinds("TerminateFailed", [](base::Error e) { return event::TerminateFailed{std::move(e)}; });
  plain("ContainerStarted", event::ContainerStarted{"main"});
  plain("ContainerStartFailed", event::ContainerStartFailed{"main", error(ErrorKind::kUnavailable)});
  add("StatusWritten", [](const PodRecord& r) { return std::vector<Event>{status_written(r)}; });
  plain("EntryClosed", event::EntryClosed{});
  plain("PodDeleteAccepted", event::PodDeleteAccepted{});
  of_kinds("PodDeleteFailed", [](base::Error e) { return event::PodDeleteFailed{std::move(e)}; });
  plain("Tick", event::Tick{});
  add("Tick(due)", [](const PodRecord&) { return std::vector<Event>{event::Tick{}}; }, kLater);
  return all;
}

// ---- words

std::string step_word(model::Creating::Step step) {
  constexpr std::array<std::string_view, 4> words{"intent", "create", "retry", "look_up"};
  return std::string(words.at(static_cast<size_t>(step)));
}

std::string step_word(model::Finished::Step step) {
  constexpr std::array<std::string_view, 4> words{"resting", "closing", "deleting", "deleted"};
  return std::string(words.at(static_cast<size_t>(step)));
}

/// The stage with what matters inside it, and what is known of the end.
std::string words_of(const PodRecord& r) {
  std::string text(model::stage_name(r.stage));
  if (const auto* w = std::get_if<model::Waiting>(&r.stage)) text += "(" + std::string(to_string(w->why)) + ")";
  if (const auto* c = std::get_if<model::Creating>(&r.stage)) text += "/" + step_word(c->step);
  if (const auto* s = std::get_if<model::Stopping>(&r.stage)) {
    text += "(" + std::string(to_string(s->why)) + ")";
    text += s->call_under_way ? ", asking" : ", asked";
  }
  if (const auto* f = std::get_if<model::Finished>(&r.stage)) {
    text += "/" + step_word(f->step);
    if (f->kept) text += ", instance kept";
  }
  if (std::holds_alternative<model::Running>(r.stage) && !r.containers.empty()) {
    const model::ContainerRecord& c = r.containers[0];
    if (c.restart_under_way) {
      text += ", container being started";
    } else if (c.restart_at) {
      text += ", container in back-off";
    }
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
  std::string operator()(const action::Refuse&) const { return "Refuse"; }
  std::string operator()(const action::WriteIntent&) const { return "WriteIntent"; }
  std::string operator()(const action::WriteStatus&) const { return "WriteStatus"; }
  std::string operator()(const action::Create&) const { return "Create"; }
  std::string operator()(const action::LookUp&) const { return "LookUp"; }
  std::string operator()(const action::Terminate& a) const {
    return "Terminate(" + std::to_string(a.grace.count()) + "s)";
  }
  std::string operator()(const action::Confirm&) const { return "Confirm"; }
  std::string operator()(const action::StartContainer&) const { return "StartContainer"; }
  std::string operator()(const action::CloseEntry&) const { return "CloseEntry"; }
  std::string operator()(const action::DeletePod&) const { return "DeletePod"; }
  std::string operator()(const action::Tell& a) const { return "Tell(" + a.reason + ")"; }
  std::string operator()(const action::NoteFailure&) const { return "NoteFailure"; }
  std::string operator()(const action::CoolDown& a) const {
    return a.offer.empty() ? "CoolDown(provider)" : "CoolDown(offer)";
  }
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
    if (!situation.only.empty() && std::ranges::find(situation.only, happening.name) == situation.only.end()) continue;
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

/// The lines of the document between `<!-- NAME -->` and `<!-- end of NAME -->`.
std::vector<std::string> part_of_document(const std::string& name) {
  std::ifstream file{std::string(kDocument)};
  std::vector<std::string> lines;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "<!-- end of " + name + " -->") return lines;
    if (inside) lines.push_back(line);
    if (line == "<!-- " + name + " -->") inside = true;
  }
  return {};
}

TEST_CASE("the document of states says what the code does") {
  const std::vector<std::string> code = make_table();
  const std::vector<std::string> document = part_of_document("table of states");
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
  for (const std::string& line : part_of_document("table of errors")) {
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
