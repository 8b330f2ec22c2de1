// What the configured providers sell now, asked by a sub-command itself.
//
// Made once per command; main's thread. What a running daemon has learnt of the offers is not known here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "vk-provider/core/offer_book.hpp"
#include "vk-provider/daemon/cli_session.hpp"

namespace spillway::daemon {

struct Market {
  Market() = default;
  struct Problem {
    std::string provider;
    std::string message;
  };
  core::OfferBook book;
  std::vector<Problem> unlisted;  // providers that did not say what they sell
  base::Now now{};
};

/// Asks one provider after the other.
boost::asio::awaitable<void> list_market(Surroundings in, Market* out);

/// Makes the providers, asks them, and lets them go. kInvalid if one cannot be made.
base::Result<std::unique_ptr<Market>> ask_market(const Config& config, const provider::Registry& registry);

}  // namespace spillway::daemon
