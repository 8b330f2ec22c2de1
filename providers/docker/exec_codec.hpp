// The Docker Engine's JSON about processes that join a container.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vk-provider/base/error.hpp"
#include "vk-provider/provider/provider.hpp"

namespace spillway::providers::docker {

/// What an exec's process has come to: empty until it has ended, or was found not to be startable (126, 127).
struct ExecState {
  ExecState() = default;
  bool running = false;
  std::optional<int> exit_code;

  bool ended() const { return !running && exit_code.has_value(); }
};

/// Body of POST /containers/{id}/exec. kInvalid if the command is not UTF-8: JSON cannot carry it.
base::Result<std::string> encode_exec(const provider::ExecOptions& options);
/// Body of POST /exec/{id}/start.
std::string encode_exec_start(bool tty);
/// Answer of GET /exec/{id}/json.
base::Result<ExecState> decode_exec(std::string_view body);

}  // namespace spillway::providers::docker
