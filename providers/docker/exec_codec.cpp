#include "providers/docker/exec_codec.hpp"

#include <nlohmann/json.hpp>

namespace spillway::providers::docker {

using nlohmann::json;

base::Result<std::string> encode_exec(const provider::ExecOptions& options) {
  json body = json::object();
  body["AttachStdin"] = options.stdin_open;
  body["AttachStdout"] = true;
  body["AttachStderr"] = true;
  body["Tty"] = options.tty;
  body["Cmd"] = options.command;
  try {
    return body.dump();
  } catch (const json::exception&) {
    return base::fail(base::ErrorKind::kInvalid, "the command is not UTF-8, and cannot be given to a container");
  }
}

std::string encode_exec_start(bool tty) { return json{{"Detach", false}, {"Tty", tty}}.dump(); }

base::Result<ExecState> decode_exec(std::string_view body) {
  const json node = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!node.is_object() || !node.contains("Running") || !node["Running"].is_boolean()) {
    return base::fail(base::ErrorKind::kUnavailable, "the engine's answer is no description of an exec");
  }
  ExecState state;
  state.running = node["Running"].get<bool>();
  const auto code = node.find("ExitCode");
  if (code != node.end() && code->is_number_integer()) state.exit_code = code->get<int>();
  return state;
}

}  // namespace spillway::providers::docker
