// `simulation`: runs many lives in virtual time, and replays one (vk-provider/docs/simulation.md).
//
// Exit codes: 0 nothing found, 1 a rule was broken, 2 bad input.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "test/simulation/digests.hpp"
#include "test/simulation/runner.hpp"
#include "vk-provider/base/log.hpp"

namespace spillway::simulation {
namespace {

constexpr int kFound = 1;
constexpr int kBadInput = 2;
constexpr int kShrinkTries = 300;

int bad_input(const std::string& message) {
  std::cerr << "simulation: " << message << "\n";
  return kBadInput;
}

std::optional<std::uint64_t> read_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// `7`: the seeds 1 to 7. `3..7`: those.
bool read_seeds(const std::string& text, Batch& batch) {
  const size_t dots = text.find("..");
  const auto first = dots == std::string::npos ? std::optional<std::uint64_t>(1) : read_number(text.substr(0, dots));
  const auto last = read_number(dots == std::string::npos ? text : text.substr(dots + 2));
  if (!first || !last || *first > *last) return false;
  batch.first = *first;
  batch.last = *last;
  return true;
}

const Mutant* find_mutant(const std::string& name) {
  for (const Mutant& mutant : mutants()) {
    if (mutant.name == name) return &mutant;
  }
  return nullptr;
}

base::Result<std::string> read_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) return base::fail(base::ErrorKind::kInvalid, "cannot be read");
  return text;
}

/// What `parse` makes of a file.
template <class Parse>
auto read_as(Parse parse, const std::filesystem::path& file) -> decltype(parse(std::string_view())) {
  auto text = read_file(file);
  if (!text) return std::unexpected(std::move(text.error()));
  return parse(*text);
}

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void print_progress(const Tally& tally, double took) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::cerr << fmt::format("\r{} seeds, {} lives, {:.0f} lives/s, {} findings ", tally.seeds, tally.lives,
                           static_cast<double>(tally.lives) / took, tally.findings.size())
            << std::flush;
}

void print_coverage(const Coverage& coverage) {
  for (size_t i = 0; i < Coverage::kSize; ++i) std::cout << fmt::format("{:9}  {}\n", coverage[i], Coverage::name(i));
}

/// Shrinks a finding, writes the plan beside us, and says how to see it again.
void print_finding(const std::string& program, const Finding& finding, const Batch& batch) {
  const Mutant* const mutant = batch.mutant;
  const Plan whole = plan_of(batch, finding.seed);
  const Plan plan = shrink(whole, finding.violation.rule, mutant, kShrinkTries);
  const std::string file = fmt::format("simulation-{}.plan", finding.seed);
  std::ofstream(file) << "# " << finding.violation.rule << ": " << finding.violation.what << "\n" << to_text(plan);
  const std::string with = mutant == nullptr ? std::string() : fmt::format(" --mutant {}", mutant->name);
  std::cout << fmt::format("{} of {} steps are enough ({}):\n\n{}\n", plan.steps.size(), whole.steps.size(), file,
                           to_text(plan))
            << fmt::format("again:          {} replay {}{} --trace\n", program, file, with)
            << fmt::format("in a debugger:  gdb --args {} replay {}{} --trace\n", program, file, with);
}

struct Commands {
  std::string program;
  std::string seeds;
  std::uint64_t lives = 0;
  double minutes = 0;
  int jobs = 1;
  std::string mutant;
  std::string file;
  std::uint64_t seed = 0;
  bool trace = false;
  bool demand_coverage = false;
  bool keep_going = false;

  int run() const;
  int replay() const;
  int hunt() const;
  int check() const;
  int digest() const;
  int compare_digests() const;
};

int Commands::run() const {
  Batch batch;
  if (!seeds.empty() && !read_seeds(seeds, batch)) {
    return bad_input("--seeds: found \"" + seeds + "\", expected a number or a range like 1..1000");
  }
  if (lives > 0) batch.lives = lives;
  if (minutes > 0) batch.limit = std::chrono::seconds(static_cast<std::int64_t>(minutes * 60));
  if (!batch.last && !batch.lives && !batch.limit) return bad_input("run needs --seeds, --lives or --minutes");
  batch.jobs = jobs;
  batch.keep_going = keep_going;
  if (!mutant.empty() && (batch.mutant = find_mutant(mutant)) == nullptr)
    return bad_input("no mutant is called " + mutant);

  const auto begun = std::chrono::steady_clock::now();
  const Tally tally = run_batch(batch, [&](const Tally& now) { print_progress(now, seconds_since(begun)); });
  const double took = seconds_since(begun);
  print_coverage(tally.coverage);
  std::cout << fmt::format("{} seeds, {} lives, {:.1f} virtual hours in {:.1f} s: {:.0f} lives/s\n", tally.seeds,
                           tally.lives, std::chrono::duration<double, std::ratio<3600>>(tally.virtual_time).count(),
                           took, static_cast<double>(tally.lives) / took);
  for (const Finding& finding : tally.findings) {
    std::cout << fmt::format("seed {} breaks the rule \"{}\": {}\n", finding.seed, finding.violation.rule,
                             finding.violation.what);
  }
  if (!tally.findings.empty()) {
    if (!keep_going) print_finding(program, tally.findings[0], batch);
    return kFound;
  }
  if (!demand_coverage) return 0;
  int missed = 0;
  for (size_t i = 0; i < Coverage::kSize; ++i) {
    if (tally.coverage[i] > 0) continue;
    std::cout << "never reached: " << Coverage::name(i) << "\n";
    ++missed;
  }
  return missed == 0 ? 0 : kFound;
}

int Commands::replay() const {
  base::Result<Plan> plan = file.empty() ? draw_plan(seed) : read_as(parse_plan, file);
  if (!plan) return bad_input(file + ": " + plan.error().message);
  Options options;
  if (!mutant.empty() && (options.mutant = find_mutant(mutant)) == nullptr) {
    return bad_input("no mutant is called " + mutant);
  }
  options.print = trace;
  if (trace) base::log::configure(base::log::Level::kInfo, base::log::Format::kText);
  World world(std::move(*plan), options);
  const Outcome outcome = world.run();
  std::cout << fmt::format("{} lives, trace {:016x}\n", outcome.lives, outcome.trace_hash);
  if (!outcome.violation) return 0;
  std::cout << fmt::format("broken: {}: {}\n", outcome.violation->rule, outcome.violation->what);
  return kFound;
}

/// Runs every planted bug until a rule finds it, at most so many lives long.
int Commands::hunt() const {
  constexpr std::uint64_t kLives = 1000;
  int missed = 0;
  for (const Mutant& planted : mutants()) {
    Batch batch;
    batch.lives = kLives;
    batch.jobs = jobs;
    batch.mutant = &planted;
    const Tally tally = run_batch(batch, [](const Tally&) {});
    const std::string found = tally.findings.empty() ? "NOT FOUND" : tally.findings[0].violation.rule;
    std::cout << fmt::format("{:24} {:5} lives  {}\n", planted.name, tally.lives, found) << std::flush;
    if (tally.findings.empty()) ++missed;
  }
  std::cout << fmt::format("{} passed, {} failed\n", mutants().size() - static_cast<size_t>(missed), missed);
  return missed == 0 ? 0 : kFound;
}

/// Runs every plan of a folder: bugs that were found once.
int Commands::check() const {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(file, error)) {
    if (entry.path().extension() == ".plan") files.push_back(entry.path());
  }
  if (error) return bad_input(file + ": " + error.message());
  if (files.empty()) return bad_input(file + ": holds no *.plan");
  std::ranges::sort(files);
  size_t failed = 0;
  for (const std::filesystem::path& path : files) {
    auto plan = read_as(parse_plan, path);
    if (!plan) return bad_input(path.string() + ": " + plan.error().message);
    const auto violation = run_apart(*plan, nullptr);
    std::cout << fmt::format("{} {}\n", violation ? "FAIL" : "ok", path.stem().string());
    if (!violation) continue;
    ++failed;
    std::cout << fmt::format("  {}: {}\n  again: {} replay {} --trace\n", violation->rule, violation->what, program,
                             path.string());
  }
  std::cout << fmt::format("{} passed, {} failed\n", files.size() - failed, failed);
  return failed == 0 ? 0 : kFound;
}

std::uint64_t trace_of(std::uint64_t seed) {
  World world(draw_plan(seed), Options());
  return world.run().trace_hash;
}

/// The traces of some seeds: equal on every machine and in every build.
int Commands::digest() const {
  if (!file.empty()) return compare_digests();
  Batch batch;
  if (!read_seeds(seeds, batch)) return bad_input("--seeds: expected a number or a range like 1..1000");
  for (std::uint64_t s = batch.first; s <= *batch.last; ++s) std::cout << to_text(Digest{s, trace_of(s)});
  return 0;
}

int Commands::compare_digests() const {
  const auto recorded = read_as(parse_digests, file);
  if (!recorded) return bad_input(file + ": " + recorded.error().message);
  int differing = 0;
  for (const Digest& digest : *recorded) {
    const std::uint64_t left = trace_of(digest.seed);
    if (left == digest.trace) continue;
    ++differing;
    std::cout << fmt::format("seed {} leaves the trace {:016x}, recorded is {:016x}\n", digest.seed, left,
                             digest.trace);
  }
  std::cout << fmt::format("{} passed, {} failed\n", recorded->size() - static_cast<size_t>(differing), differing);
  if (differing == 0) return 0;
  std::cout << fmt::format(
      "Was the daemon, a model or the drawing of plans meant to change? Then record the traces anew:\n"
      "  build/release/simulation digest --seeds {}..{} > {}\n"
      "If not, something depends on the build or on the machine.\n",
      recorded->front().seed, recorded->back().seed, file);
  return kFound;
}

int list_verbs() {
  for (const Verb& verb : verbs()) {
    std::string fields;
    for (const Field& field : verb.fields) fields += fmt::format(" {}={}..{}", field.name, field.least, field.most);
    std::cout << fmt::format("{:16} {}\n{:16}{}\n", verb.name, verb.what, "", fields);
  }
  return 0;
}

int list_rules() {
  for (const Rule& rule : rules()) std::cout << rule.name << "\n";
  return 0;
}

int list_mutants() {
  for (const Mutant& mutant : mutants()) std::cout << fmt::format("{:24} {}\n", mutant.name, mutant.bug);
  return 0;
}

int main_of(int argc, char** argv) {
  Commands c;
  c.program = argv[0];
  CLI::App app("Runs the daemon above its seams in virtual time, with every fault, and judges what it does.");
  app.require_subcommand(1);
  CLI::App* const run = app.add_subcommand("run", "draw plans from seeds and run them");
  run->add_option("--seeds", c.seeds, "N: seeds 1 to N; A..B: those");
  run->add_option("--lives", c.lives, "until so many pods have lived")->check(CLI::PositiveNumber);
  run->add_option("--minutes", c.minutes, "of real time, at most")->check(CLI::PositiveNumber);
  run->add_option("--jobs", c.jobs, "processes at once")->check(CLI::Range(1, 256));
  run->add_option("--mutant", c.mutant, "with a planted bug");
  run->add_flag("--keep-going", c.keep_going, "past a finding, and make no smaller plan of any");
  run->add_flag("--coverage", c.demand_coverage, "fail if something was never reached");
  CLI::App* const replay = app.add_subcommand("replay", "run one plan again");
  CLI::Option* const seed = replay->add_option("--seed", c.seed, "the plan of this seed");
  CLI::Option* const file = replay->add_option("file", c.file, "a plan");
  seed->excludes(file);
  replay->add_option("--mutant", c.mutant, "with a planted bug");
  replay->add_flag("--trace", c.trace, "print what happens, and the daemon's log, to stderr");
  CLI::App* const hunt = app.add_subcommand("mutants", "run every planted bug until it is found, at most 1000 lives");
  hunt->add_option("--jobs", c.jobs, "processes at once")->check(CLI::Range(1, 256));
  CLI::App* const check = app.add_subcommand("check", "run every plan of a folder");
  check->add_option("folder", c.file, "with *.plan")->required();
  CLI::App* const digest = app.add_subcommand("digest", "the traces of some seeds");
  CLI::Option* const print = digest->add_option("--seeds", c.seeds, "print those of: N: seeds 1 to N; A..B: those");
  CLI::Option* const expect = digest->add_option("--expect", c.file, "compare with those in this file");
  print->excludes(expect);
  CLI::App* const verbs_command = app.add_subcommand("list-verbs", "what can happen in a plan");
  CLI::App* const rules_command = app.add_subcommand("list-rules", "what must hold");
  CLI::App* const mutants_command = app.add_subcommand("list-mutants", "the planted bugs");
  try {
    app.parse(argc, argv);
    if (replay->parsed() && seed->empty() && file->empty()) throw CLI::ValidationError("replay needs --seed or a file");
    if (digest->parsed() && print->empty() && expect->empty()) {
      throw CLI::ValidationError("digest needs --seeds or --expect");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadInput;
  }
  base::log::configure(base::log::Level::kNone, base::log::Format::kText);
  if (run->parsed()) return c.run();
  if (replay->parsed()) return c.replay();
  if (hunt->parsed()) return c.hunt();
  if (check->parsed()) return c.check();
  if (digest->parsed()) return c.digest();
  if (verbs_command->parsed()) return list_verbs();
  if (rules_command->parsed()) return list_rules();
  return mutants_command->parsed() ? list_mutants() : 0;
}

}  // namespace
}  // namespace spillway::simulation

int main(int argc, char** argv) { return spillway::simulation::main_of(argc, argv); }
