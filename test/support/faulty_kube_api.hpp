// A KubeApi between a daemon and the API server (or a model of it) that makes go wrong what its owner decides.
//
//   class Dice final : public ApiFaults { ... };
//   FaultyKubeApi api(model, dice, reactor.timers);
//
// Owned by a test or the simulator, outlived by what it stands before; reactor thread only. Decides nothing itself and
// keeps the promises of kube_api.hpp: whoever asks cannot tell it from a bad day of the network or the server.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test {

/// What goes wrong with one request (or with the opening of a watch). Nothing, as it stands.
struct RequestFault {
  RequestFault() = default;

  /// An answer of the server in the place of its own.
  struct Refusal {
    Refusal() = default;
    Refusal(int c, std::string why) : code(c), reason(std::move(why)) {}
    int code = 500;      // 403, 409, 410, 422, 429, 500, 503, 504
    std::string reason;  // of the Status: TooManyRequests, Conflict, Forbidden ...
    std::string message = "injected";
    std::optional<std::chrono::seconds> retry_after;
  };
  enum class Loss : std::uint8_t {
    kNone,
    kConnect,  // nothing was sent: kUnavailable, whatever the request
    kRequest,  // sent, and never seen by the server
    kAnswer,   // carried out, and the answer never seen by the client
    kLate,     // as kRequest for the client; the server has it after `before` all the same, and carries it out then
  };

  base::Duration before{0};  // until the server has the request
  base::Duration after{0};   // until the client has the answer
  Loss loss = Loss::kNone;
  /// How a loss shows: at once as a broken connection, or as silence until the deadline.
  bool silent = false;
  std::optional<Refusal> refusal;
  /// The refusal comes although the request was carried out: a 500 or 504 of a server that lost its own store's answer.
  bool refused_too_late = false;
};

/// What goes wrong with bytes that came through a watch. Nothing, as it stands.
struct WatchFault {
  enum class Kind : std::uint8_t {
    kNone,
    kClose,    // the server ends the watch instead
    kBreak,    // the connection breaks, after `keep` of these bytes: in the midst of a line
    kSilence,  // neither these nor any later ones come, and nothing says so
    kExpired,  // an ERROR event 410 comes instead, and the watch ends
  };
  Kind kind = Kind::kNone;
  base::Duration lag{0};  // how much later they come
  size_t keep = 0;
};

/// Owned by the test; asked once for each request and each piece of a watch, in the order in which they happen.
class ApiFaults {
 public:
  virtual ~ApiFaults() = default;
  virtual RequestFault on_request(const kube::KubeRequest& /*request*/) { return {}; }
  /// `opened` is the request that opened the watch; bytes are whole lines.
  virtual WatchFault on_watch_bytes(const kube::KubeRequest& /*opened*/, std::string_view /*bytes*/) { return {}; }
};

class FaultyKubeApi final : public kube::KubeApi {
 public:
  FaultyKubeApi(kube::KubeApi& inner, ApiFaults& faults, async::Timers& timers)
      : inner_(inner), faults_(faults), timers_(timers), carrier_(timers.make_waiter()) {}

  /// A request that takes longer than its deadline ends there: kDeadline for a GET, kUnknownOutcome for a write that
  /// was or may have been carried out.
  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override;

  /// Carries late requests to the server, until it is cancelled. Run by the owner beside the daemons: what one of them
  /// sent arrives although it was killed meanwhile. Without it they never arrive.
  async::Loop carry();

 private:
  struct Late {
    base::TimePoint due;
    kube::KubeRequest request;
  };

  /// Lets time pass; false if the deadline comes first.
  async::Task<bool> wait(base::Duration how_long, base::Deadline deadline);
  async::Task<void> lose(RequestFault fault, net::Method method, base::Deadline deadline);

  kube::KubeApi& inner_;
  ApiFaults& faults_;
  async::Timers& timers_;
  std::vector<Late> late_;
  std::unique_ptr<async::Waiter> carrier_;
};

}  // namespace spillway::test
