// Runs the honesty script on a server, real or modelled, and keeps what it said, as it said it.
//
// Owned by a test or a program; reactor thread only. Expects nothing: transcript.hpp makes two runs comparable.
#pragma once

#include <expected>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "test/support/api_model/requests.hpp"
#include "test/support/api_script/script.hpp"
#include "vk-provider/async/timer.hpp"

namespace spillway::test::api_script {

using api_model::Answer;

/// A server that the script runs on.
class Server {
 public:
  virtual ~Server() = default;
  virtual async::Timers& timers() = 0;
  virtual async::Task<Answer> exchange(kube::KubeRequest request) = 0;
  /// The stream, or the answer that refused it.
  virtual async::Task<std::expected<async::ByteStreamPtr, Answer>> open(kube::KubeRequest request) = 0;
  /// Makes the server forget its history, or gives it the time to do so.
  virtual async::Task<void> forget() = 0;
};

/// What one step said: answers or events, in order.
struct Said {
  Said() = default;
  std::string title;
  std::string line;
  int code = 0;                       // 0: no answer, but events
  std::vector<nlohmann::json> texts;  // JSON, or a string of what is none
};

/// kUnavailable if the server cannot be reached.
async::Task<std::vector<Said>> run(std::vector<Step> steps, Server& server);

}  // namespace spillway::test::api_script
