// What every provider must do, as cases that run on any of them.
//
//   class MyHarness final : public ProviderHarness { ... };
//   TEST_CASE("my provider: conformance") {
//     for (const ConformanceCase& c : conformance_cases()) {
//       DYNAMIC_SECTION(c.name) { MyHarness harness; c.run(harness); }
//     }
//   }
//
// A case asserts with Catch2. It waits through the harness's timers only, so that it takes no time on a virtual
// reactor, and as long as the cloud needs on a real one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::test {

/// A pod of one container `main` that writes this log, on both outputs, and ends.
struct TalkingPod {
  TalkingPod() = default;
  model::ResolvedPod pod;
  std::string log;
  std::function<void()> write;  // set if somebody has to write it in the container's place, once it has ended
};

/// A pod of one container `main` that runs until it is stopped and sends back what is sent to its port.
struct EchoingPod {
  EchoingPod() = default;
  model::ResolvedPod pod;
  int port = 0;
};

/// A fresh provider over a fresh cloud, and what only its author can know. Every tag of a case begins with `spw-conf-`.
class ProviderHarness {
 public:
  virtual ~ProviderHarness() = default;
  virtual provider::Provider& provider() = 0;
  virtual async::Timers& timers() = 0;
  /// Runs it to its end on the harness's reactor.
  virtual void run(boost::asio::awaitable<void> task) = 0;

  /// A pod of one container called `main` that runs until it is stopped.
  virtual model::ResolvedPod lasting_pod() = 0;
  /// One that ends by itself, at once, with this exit code. Asked for only with capability exit_code.
  virtual model::ResolvedPod ending_pod(int exit_code) = 0;

  /// Empty: the case is left out, as are those of capabilities that the provider does not have.
  virtual std::optional<TalkingPod> talking_pod() { return std::nullopt; }
  virtual std::optional<EchoingPod> echoing_pod() { return std::nullopt; }
  /// False: an exec would reach nothing that knows echo, cat and sh.
  virtual bool runs_processes() { return true; }

  /// Makes the cloud answer the next calls later than any deadline. False: it cannot, and the case is left out.
  virtual bool stall() { return false; }
  /// Makes an instance under this foreign tag, by no call of the provider. Empty: it cannot.
  virtual std::optional<std::string> add_foreign(const std::string& /*tag*/) { return std::nullopt; }
  /// How long the provider may take until an order shows.
  virtual base::Duration patience() { return std::chrono::seconds(30); }
};

struct ConformanceCase {
  std::string_view name;
  void (*run)(ProviderHarness& harness);
};

std::span<const ConformanceCase> conformance_cases();

/// A pod of one container `main`; annotations are the provider's own orders.
model::ResolvedPod make_conformance_pod(std::string image, std::map<std::string, std::string> annotations = {});

}  // namespace spillway::test
