#include "vk-provider/api/remote_status_codec.hpp"

#include <cstdint>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

namespace spillway::api {
namespace {

using base::ErrorKind;
using nlohmann::json;

constexpr int kInternalError = 500;
// What a client can read: it takes the code for one byte.
constexpr int kLargestCode = 255;
// Of an object that has not ended: one has some thirty.
constexpr std::size_t kLargestSize = 1024;

std::string in_words(const CommandEnd& end) {
  if (!end.failure.empty()) return "error executing command in container: " + end.failure;
  return "command terminated with non-zero exit code: exit code " + std::to_string(end.exit_code);
}

std::optional<int> dimension(const json& size, const char* name) {
  const auto found = size.find(name);
  if (found == size.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  if (value > std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
  return static_cast<int>(value);
}

std::string_view reason_of(int status) {
  constexpr int kFirstServerError = 500;
  switch (status) {
    case 400: return "BadRequest";
    case 403: return "Forbidden";
    case 404: return "NotFound";
    case 409: return "Conflict";
    case 503: return "ServiceUnavailable";
    default: return status >= kFirstServerError ? "InternalError" : "";
  }
}

}  // namespace

std::string encode_refusal(int status, const std::string& message) {
  json said = {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"status", "Failure"}};
  said["message"] = message;
  if (const std::string_view reason = reason_of(status); !reason.empty()) said["reason"] = reason;
  said["code"] = status;
  return said.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string encode_end(const CommandEnd& end, bool as_text) {
  const bool success = end.failure.empty() && end.exit_code == 0;
  if (as_text) return success ? "" : in_words(end);
  json status = {{"metadata", json::object()}, {"status", success ? "Success" : "Failure"}};
  if (success) return status.dump();
  status["message"] = in_words(end);
  if (end.failure.empty() && end.exit_code > 0 && end.exit_code <= kLargestCode) {
    status["reason"] = "NonZeroExitCode";
    const json cause = {{"reason", "ExitCode"}, {"message", std::to_string(end.exit_code)}};
    status["details"]["causes"] = json::array({cause});
  } else {
    status["reason"] = "InternalError";
    status["message"] = "Internal error occurred: " + in_words(end);
    status["code"] = kInternalError;
  }
  return status.dump(-1, ' ', false, json::error_handler_t::replace);
}

base::Result<std::vector<provider::TerminalSize>> SizeDecoder::feed(std::string_view bytes) {
  std::vector<provider::TerminalSize> sizes;
  rest_ += bytes;
  for (std::size_t end = 0; (end = rest_.find('}')) != std::string::npos; rest_.erase(0, end + 1)) {
    const json object = json::parse(std::string_view(rest_).substr(0, end + 1), nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) return base::fail(ErrorKind::kInvalid, "a size of the terminal is not JSON");
    const std::optional<int> width = dimension(object, "Width");
    const std::optional<int> height = dimension(object, "Height");
    if (!width || !height) return base::fail(ErrorKind::kInvalid, "a size of the terminal lacks Width or Height");
    provider::TerminalSize size;
    size.columns = *width;
    size.rows = *height;
    sizes.push_back(size);
  }
  if (rest_.size() > kLargestSize) return base::fail(ErrorKind::kInvalid, "a size of the terminal has no end");
  return sizes;
}

}  // namespace spillway::api
