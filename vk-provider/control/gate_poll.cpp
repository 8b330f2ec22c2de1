// The gates' questions to Prometheus.
#include <cmath>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/gate_parts.hpp"

namespace spillway::control {

async::Loop GateController::poll(Gate& gate) {
  const base::Duration interval = gate.settings.poll.interval;
  for (;;) {
    // The next question comes an interval after this one, however long the answer takes.
    const base::TimePoint begun = d_.timers->now();
    if (!gate.settings.free_query.empty()) {
      const core::GatePoll answer = co_await ask_free(gate);
      const base::TimePoint now = d_.timers->now();
      if (answer) {
        gate.polled_at = now;
      } else {
        gate.metrics
            .counter("spillway_gate_bad_polls_total", "Answers of Prometheus that were no data.",
                     {{"gate", gate.settings.name}, {"reason", answer.error()}})
            .add();
        base::log::debug("no data", {{"gate", gate.settings.name}, {"why", answer.error()}});
      }
      gate.policy.on_poll(answer, now);
      note_change();
    }
    if (!gate.settings.unhealthy_query.empty()) co_await ask_sick(gate);
    co_await d_.timers->sleep_until(begun + interval);
  }
}

boost::asio::awaitable<core::GatePoll> GateController::ask_free(const Gate& gate) {
  const GateSettings& s = gate.settings;
  const base::Deadline deadline = d_.timers->now() + s.poll.timeout;
  if (!s.freshness_query.empty()) {
    const auto body = co_await d_.prometheus->query(s.freshness_query, deadline);
    if (!body) co_return std::unexpected(body.error());
    const auto age = kube::decode_prometheus_number(*body);
    // A sample from the future (a clock that runs ahead) is as good as one from now.
    if (!age && age.error() != "negative") co_return std::unexpected(age.error());
    if (age && *age > std::chrono::duration<double>(s.poll.max_sample_age).count()) co_return std::unexpected("stale");
  }
  const auto body = co_await d_.prometheus->query(s.free_query, deadline);
  if (!body) co_return std::unexpected(body.error());
  co_return kube::decode_prometheus_number(*body);
}

boost::asio::awaitable<void> GateController::ask_sick(Gate& gate) {
  const GateSettings& s = gate.settings;
  const auto body = co_await d_.prometheus->query(s.unhealthy_query, d_.timers->now() + s.poll.timeout);
  std::expected<std::map<std::string, std::int64_t>, kube::NoData> sick = std::unexpected(kube::NoData());
  sick = body ? kube::decode_prometheus_counts(*body, s.unhealthy_label) : std::unexpected(body.error());
  // Without data nobody is sick: an exporter that is away must not take home away.
  if (gate.book.set_sick(sick ? std::move(*sick) : std::map<std::string, std::int64_t>())) note_change();
  if (sick.has_value() != gate.told_sick_missing) co_return;
  gate.told_sick_missing = !sick.has_value();
  for (const auto& writer : gate.writers) {
    if (sick) {
      writer->tell(false, "GateHealthDataRestored", "told the health of GPUs by Prometheus again");
    } else {
      writer->tell(true, "GateHealthDataMissing",
                   "not told the health of GPUs (" + sick.error() + "); all of them count as healthy");
    }
  }
}

}  // namespace spillway::control
