// The cases about logs, processes, ports and samples.
#include "test/support/provider_access_cases.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "test/support/provider_probe.hpp"

namespace spillway::test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using base::ErrorKind;
using model::Capability;

/// All that a stream gives until its end.
async::Task<std::string> read_all(async::ByteStream* stream, base::Deadline deadline) {
  std::string all;
  for (;;) {
    if (stream == nullptr) co_return all;
    const auto bytes = co_await stream->read(deadline);
    if (!bytes) co_return base::fail(bytes.error());
    if (bytes->empty()) co_return all;
    all += *bytes;
  }
}

async::Task<std::string> read_log(Probe& probe, model::InstanceRef ref, provider::LogOptions options) {
  options.container = "main";
  const auto stream = co_await probe.provider().open_logs(std::move(ref), std::move(options), probe.soon());
  if (!stream) co_return base::fail(stream.error());
  co_return co_await read_all(stream->get(), probe.soon());
}

asio::awaitable<void> check_log_options(Probe& probe, model::InstanceRef ref, const std::string& whole) {
  provider::LogOptions follow;
  follow.follow = true;
  const auto followed = co_await read_log(probe, ref, follow);
  CHECK(followed == whole);  // it has ended, and so does this
  provider::LogOptions tail;
  tail.tail_lines = 1;
  const auto last = co_await read_log(probe, ref, tail);
  CHECK(last == whole.substr(whole.rfind('\n', whole.size() - 2) + 1));
  tail.tail_lines = 0;
  const auto none = co_await read_log(probe, ref, tail);
  CHECK(none == std::string());
  provider::LogOptions limit;
  limit.limit_bytes = 5;
  const auto cut = co_await read_log(probe, ref, limit);
  CHECK(cut == whole.substr(0, 5));
  provider::LogOptions since;
  since.since = std::chrono::sys_days(std::chrono::year(2200) / 1 / 1);
  const auto future = co_await read_log(probe, ref, since);
  CHECK(future == std::string());
  provider::LogOptions output;
  output.channel = provider::LogChannel::kStdout;
  const auto out = co_await read_log(probe, ref, output);
  output.channel = provider::LogChannel::kStderr;
  const auto errors = co_await read_log(probe, ref, output);
  CHECK((out && errors && out->size() + errors->size() == whole.size()));
  provider::LogOptions stamped;
  stamped.timestamps = true;
  stamped.tail_lines = 1;
  const auto times = co_await read_log(probe, ref, stamped);
  CHECK(times.has_value());
  if (times) {
    constexpr size_t kTime = 30;
    CHECK(base::from_rfc3339(times->substr(0, kTime)).has_value());
    CHECK((last && times->substr(std::min(kTime, times->size())) == " " + *last));
  }
}

struct Finished {
  base::Result<std::string> output = std::string();
  base::Result<std::string> errors = std::string();
  base::Result<int> code = 0;
};

/// Writes `input`, if the command reads any, and reads until its end.
async::Task<Finished> run_command(Probe& probe, model::InstanceRef ref, std::vector<std::string> command,
                                  std::string input) {
  using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
  provider::ExecOptions options;
  options.container = "main";
  options.command = std::move(command);
  options.stdin_open = !input.empty();
  const auto session = co_await probe.provider().open_exec(std::move(ref), std::move(options), probe.soon());
  if (!session) co_return base::fail(session.error());
  if (!input.empty()) {
    const auto written = co_await (*session)->input()->write(std::move(input), probe.soon());
    CHECK(written.has_value());
    const auto closed = co_await (*session)->input()->close_write(probe.soon());
    CHECK(closed.has_value());
  }
  Finished finished;
  auto [output, errors] =
      co_await (read_all(&(*session)->output(), probe.soon()) && read_all((*session)->errors(), probe.soon()));
  finished.output = std::move(output);
  finished.errors = std::move(errors);
  finished.code = co_await (*session)->exit_code(probe.soon());
  co_return finished;
}

const provider::Sample* find_sample(const base::Result<std::vector<provider::Sample>>& samples,
                                    const model::InstanceRef& ref) {
  if (!samples) return nullptr;
  const auto it = std::ranges::find(*samples, ref, &provider::Sample::instance);
  return it == samples->end() ? nullptr : &*it;
}

}  // namespace

asio::awaitable<void> logs_case(ProviderHarness& harness) {
  Probe probe(harness);
  auto talker = harness.talking_pod();
  if (!probe.can(Capability::kLogs) || !talker) co_return;
  const auto bought = co_await probe.buy(1, std::move(talker->pod));
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto ended = co_await probe.get_exited(bought->ref);
  CHECK(ended.has_value());
  if (talker->write) talker->write();
  const auto whole = co_await read_log(probe, bought->ref, provider::LogOptions());
  CHECK(whole == talker->log);
  if (whole && *whole == talker->log) co_await check_log_options(probe, bought->ref, *whole);

  provider::LogOptions previous;
  previous.previous = true;
  const auto earlier = co_await read_log(probe, bought->ref, previous);
  CHECK((!earlier && earlier.error().kind == ErrorKind::kNotFound));
  provider::LogOptions stranger;
  stranger.container = "stranger";
  const auto unknown = co_await probe.provider().open_logs(bought->ref, stranger, probe.soon());
  CHECK((!unknown && unknown.error().kind == ErrorKind::kNotFound));
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
  const auto after = co_await read_log(probe, bought->ref, provider::LogOptions());
  CHECK((!after && after.error().kind == ErrorKind::kNotFound));
}

asio::awaitable<void> exec_case(ProviderHarness& harness) {
  Probe probe(harness);
  if (!probe.can(Capability::kExec) || !harness.runs_processes()) co_return;
  const auto bought = co_await probe.buy(1, harness.lasting_pod());
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto running = co_await probe.get_running(bought->ref);
  CHECK(running.has_value());

  const auto echo = co_await run_command(probe, bought->ref, {"echo", "two", "words"}, "");
  CHECK((echo && echo->output == "two words\n" && echo->errors == "" && echo->code == 0));
  const auto error = co_await run_command(probe, bought->ref, {"sh", "-c", "echo apart >&2"}, "");
  CHECK((error && error->output == "" && error->errors == "apart\n" && error->code == 0));
  const auto failed = co_await run_command(probe, bought->ref, {"sh", "-c", "exit 42"}, "");
  CHECK((failed && failed->output == "" && failed->code == 42));
  const auto copied = co_await run_command(probe, bought->ref, {"cat"}, std::string("a\0b\xff\n", 5));
  CHECK((copied && copied->output == std::string("a\0b\xff\n", 5) && copied->code == 0));

  provider::ExecOptions stranger;
  stranger.container = "stranger";
  stranger.command = {"true"};
  const auto unknown = co_await probe.provider().open_exec(bought->ref, stranger, probe.soon());
  CHECK((!unknown && unknown.error().kind == ErrorKind::kNotFound));
  if (probe.can(Capability::kAttach)) {
    provider::ExecOptions attach;
    attach.container = "main";
    const auto session = co_await probe.provider().open_exec(bought->ref, attach, probe.soon());
    CHECK(session.has_value());
    if (session) {
      const auto code = co_await (*session)->exit_code(probe.soon());
      CHECK((!code && code.error().kind == ErrorKind::kUnsupported));
    }
  }
  if (probe.can(Capability::kRestartContainer)) {
    const auto stopped = co_await probe.provider().control_container(
        bought->ref, "main", provider::ContainerAction::kStop, std::chrono::seconds(1), probe.soon());
    CHECK(stopped.has_value());
    const auto ended = co_await probe.get_exited(bought->ref);
    CHECK(ended.has_value());
    const auto late = co_await run_command(probe, bought->ref, {"true"}, "");
    CHECK((!late && late.error().kind == ErrorKind::kConflict));
  }
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
}

asio::awaitable<void> dial_case(ProviderHarness& harness) {
  Probe probe(harness);
  auto listener = harness.echoing_pod();
  if (!probe.can(Capability::kDial) || !listener) co_return;
  const auto bought = co_await probe.buy(1, std::move(listener->pod));
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto running = co_await probe.get_running(bought->ref);
  CHECK(running.has_value());
  auto stream = co_await probe.provider().dial(bought->ref, listener->port, probe.soon());
  for (const base::Deadline end = probe.soon();
       !stream && stream.error().kind == ErrorKind::kConflict && harness.timers().now() < end;) {
    co_await probe.pause();  // it has begun, and does not listen yet
    stream = co_await probe.provider().dial(bought->ref, listener->port, end);
  }
  CHECK(stream.has_value());
  if (stream) {
    const std::string text("to and fro\0\xff", 12);
    const auto written = co_await (*stream)->write(text, probe.soon());
    CHECK(written.has_value());
    const auto closed = co_await (*stream)->close_write(probe.soon());
    CHECK(closed.has_value());
    const auto back = co_await read_all(stream->get(), probe.soon());
    CHECK(back == text);
  }
  for (const int port : {0, 65536}) {
    const auto impossible = co_await probe.provider().dial(bought->ref, port, probe.soon());
    CHECK((!impossible && impossible.error().kind == ErrorKind::kInvalid));
  }
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
  const auto after = co_await probe.provider().dial(bought->ref, listener->port, probe.soon());
  CHECK((!after && after.error().kind == ErrorKind::kNotFound));
}

asio::awaitable<void> samples_case(ProviderHarness& harness) {
  Probe probe(harness);
  if (!probe.can(Capability::kSamples)) co_return;
  const auto bought = co_await probe.buy(1, harness.lasting_pod());
  CHECK(bought.has_value());
  if (!bought) co_return;
  const auto running = co_await probe.get_running(bought->ref);
  CHECK(running.has_value());
  co_await harness.timers().sleep_for(1s);
  const auto first = co_await probe.provider().samples(probe.soon());
  const provider::Sample* const before = find_sample(first, bought->ref);
  CHECK(before != nullptr);
  co_await harness.timers().sleep_for(1s);
  const auto second = co_await probe.provider().samples(probe.soon());
  const provider::Sample* const after = find_sample(second, bought->ref);
  CHECK(after != nullptr);
  if (before != nullptr && after != nullptr) {
    CHECK(before->container == "main");
    CHECK((before->cpu_ns && *before->cpu_ns > 0));
    CHECK((before->working_set && *before->working_set > 0));
    CHECK(before->at < after->at);
    CHECK((before->cpu_ns && after->cpu_ns && *before->cpu_ns <= *after->cpu_ns));
  }
  const bool gone = co_await probe.end(bought->ref);
  CHECK(gone);
  const auto left = co_await probe.provider().samples(probe.soon());
  CHECK(left.has_value());
  CHECK(find_sample(left, bought->ref) == nullptr);
}

}  // namespace spillway::test
