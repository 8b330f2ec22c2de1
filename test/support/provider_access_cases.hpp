// Cases of the conformance suite about what goes on inside of instances. Private to provider_conformance.cpp.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "test/support/provider_conformance.hpp"

namespace spillway::test {

boost::asio::awaitable<void> logs_case(ProviderHarness& harness);
boost::asio::awaitable<void> exec_case(ProviderHarness& harness);
boost::asio::awaitable<void> dial_case(ProviderHarness& harness);
boost::asio::awaitable<void> samples_case(ProviderHarness& harness);

}  // namespace spillway::test
