// The sub-commands about placement: offers, why, replay-decisions.
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>
#include <utility>

#include "vk-provider/base/log.hpp"
#include "vk-provider/control/decision_replay.hpp"
#include "vk-provider/daemon/cli_commands.hpp"
#include "vk-provider/daemon/cli_market.hpp"
#include "vk-provider/daemon/cli_why.hpp"
#include "vk-provider/daemon/cluster_access.hpp"

namespace spillway::daemon {
namespace {

void print(std::FILE* stream, const std::string& text) { std::fwrite(text.data(), 1, text.size(), stream); }

int complain(const std::string& message, int code) {
  print(stderr, "spillway: " + message + "\n");
  return code;
}

/// HOST:PORT, or [ADDRESS]:PORT.
std::optional<net::Endpoint> endpoint_of(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  net::Endpoint out;
  out.scheme = net::Endpoint::Scheme::kHttp;
  out.host = host;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, out.port);
  if (read.ec != std::errc() || read.ptr != end || out.port == 0) return std::nullopt;
  return out;
}

/// Of a daemon of this configuration on this machine.
net::Endpoint endpoint_of(const AdminConfig& admin) {
  net::Endpoint out;
  out.scheme = net::Endpoint::Scheme::kHttp;
  const bool any = admin.address == "0.0.0.0" || admin.address == "::";
  out.host = any ? "127.0.0.1" : admin.address;
  out.port = admin.port;
  return out;
}

boost::asio::awaitable<void> why_into(Surroundings in, WhyOptions options, WhyReport* report) {
  *report = co_await find_why(std::move(in), std::move(options));
}

}  // namespace

int command_offers(const CliOptions& options, const provider::Registry& registry) {
  const auto config = load_or_print(options, registry);
  if (!config) return kExitBadInput;
  base::log::configure(base::log::Level::kWarn, base::log::Format::kText);
  const auto market = ask_market(*config, registry);
  if (!market) return complain(market.error().message, kExitBadInput);
  const OffersReport report = report_offers(**market, options.offers);
  for (const Market::Problem& p : report.unlisted) {
    complain("provider " + p.provider + " did not say what it sells: " + p.message, kExitFailed);
  }
  print(stdout, to_text(report, options.output));
  return report.exit_code;
}

int command_why(const CliOptions& options, const provider::Registry& registry) {
  WhyOptions wanted;
  wanted.admin = endpoint_of(AdminConfig());
  if (!options.config_file.empty()) {
    const auto config = load_or_print(options, registry);
    if (!config) return kExitBadInput;
    wanted.admin = endpoint_of(config->admin);
  }
  if (!options.admin.empty()) {
    const auto admin = endpoint_of(options.admin);
    if (!admin) return complain("--admin: no HOST:PORT: " + options.admin, kExitBadInput);
    wanted.admin = *admin;
  }
  base::log::configure(base::log::Level::kWarn, base::log::Format::kText);
  const auto access = find_cluster(options.kubeconfig, process_environment);
  if (!access) return complain(access.error().message, kExitBadInput);
  const size_t slash = options.pod.find('/');
  wanted.pod = slash == std::string::npos ? options.pod : options.pod.substr(slash + 1);
  wanted.ns = slash != std::string::npos ? options.pod.substr(0, slash) : options.ns.empty() ? access->ns : options.ns;
  auto session = CliSession::open(*access);
  if (!session) return complain(session.error().message, kExitBadInput);
  WhyReport report;
  (*session)->run(why_into((*session)->surroundings(), std::move(wanted), &report));
  if (!report.problem.empty()) complain(report.problem, kExitFailed);
  print(stdout, to_text(report, options.output));
  return report.exit_code;
}

int command_replay_decisions(const CliOptions& options) {
  control::DecisionReplay replay;
  for (const std::string& file : options.logs) {
    std::ifstream in(file);
    if (!in) return complain(file + ": cannot be read", kExitBadInput);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      const auto fed = replay.feed(line);
      if (fed) continue;
      // A daemon that was killed may leave half of its last line.
      if (in.eof() && fed.error().kind == base::ErrorKind::kInvalid) break;
      const bool differs = fed.error().kind == base::ErrorKind::kConflict;
      return complain(file + ":" + std::to_string(number) + ": " + fed.error().message,
                      differs ? kExitFailed : kExitBadInput);
    }
  }
  if (options.output == Output::kJson) {
    print(stdout, "{\"decisions\":" + std::to_string(replay.decisions()) + ",\"different\":0}\n");
  } else {
    print(stdout, std::to_string(replay.decisions()) + " decisions, each made again as it was\n");
  }
  return kExitDone;
}

}  // namespace spillway::daemon
