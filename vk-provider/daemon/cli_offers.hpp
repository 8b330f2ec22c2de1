// `spillway offers`: what the configured providers sell now, the cheapest first.
//
// Pure but for cli_market, which asks. Offers that cannot be what they say are counted, not shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vk-provider/daemon/cli_market.hpp"
#include "vk-provider/daemon/cli_output.hpp"

namespace spillway::daemon {

struct OffersFilter {
  OffersFilter() = default;
  std::string gpu;  // any name of a model, or of several; empty: all
  std::string region;
  bool spot = false;  // spot only
};

struct OffersReport {
  OffersReport() = default;
  std::vector<model::Offer> offers;
  size_t flawed = 0;
  std::vector<Market::Problem> unlisted;
  int exit_code = kExitDone;
};

/// kExitFailed if a provider did not answer.
OffersReport report_offers(const Market& market, const OffersFilter& filter);
std::string to_text(const OffersReport& report, Output output);

}  // namespace spillway::daemon
