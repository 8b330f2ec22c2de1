// A KubeApi that says what a test wrote down, in that order, in virtual time.
//
//   ScriptedKubeApi api(reactor.timers);
//   api.answer(R"({"items":[]})");
//   auto watch = api.open_watch();        // the next watch() gets this stream
//   watch->push("{...}\n");               // now or later
//   api.refuse_watch(base::Error(...));   // the one after that is refused
//
// What is not written down fails with kUnavailable, so that a loop under test is seen to back off, not to spin.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vk-provider/async/timer.hpp"
#include "vk-provider/kube/kube_api.hpp"

namespace spillway::test {

/// The server's end of one watch. Shared by the test and the stream that the client holds.
class ScriptedWatch {
 public:
  explicit ScriptedWatch(async::Timers& timers) : waiter_(timers.make_waiter()) {}

  void push(std::string bytes);
  /// One event line.
  void push_event(const std::string& type, const std::string& object);
  void close();
  void break_off();
  /// The client has let go of its end.
  bool released() const { return released_; }

 private:
  friend class ScriptedStream;

  std::unique_ptr<async::Waiter> waiter_;
  std::deque<std::string> chunks_;
  bool closed_ = false;
  bool broken_ = false;
  bool released_ = false;
};

class ScriptedKubeApi final : public kube::KubeApi {
 public:
  explicit ScriptedKubeApi(async::Timers& timers) : timers_(timers) {}

  void answer(std::string body, int status = 200);
  void fail(base::Error error);
  /// Never answered: kDeadline for a GET and kUnknownOutcome for a write, when the deadline comes.
  void stay_silent();
  /// Asked before the script, if set; an empty optional leaves the request to the script.
  std::function<std::optional<base::Result<kube::KubeResponse>>(const kube::KubeRequest&)> handler;

  std::shared_ptr<ScriptedWatch> open_watch();
  void refuse_watch(base::Error error);

  async::Task<kube::KubeResponse> send(kube::KubeRequest request, base::Deadline deadline) override;
  async::Task<async::ByteStreamPtr> watch(kube::KubeRequest request, base::Deadline deadline) override;

  /// Everything that was asked, in order; a watch like any other request.
  std::vector<kube::KubeRequest> requests;
  /// When each of them was asked.
  std::vector<base::TimePoint> times;

 private:
  void note(const kube::KubeRequest& request);

  async::Timers& timers_;
  std::deque<std::optional<base::Result<kube::KubeResponse>>> answers_;
  std::deque<base::Result<std::shared_ptr<ScriptedWatch>>> watches_;
};

}  // namespace spillway::test
