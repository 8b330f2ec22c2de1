#include "vk-provider/kube/status_codec.hpp"

#include <nlohmann/json.hpp>

namespace spillway::kube {

DecodedStatus decode_status(std::string_view json) {
  DecodedStatus out;
  const nlohmann::json root = nlohmann::json::parse(json, nullptr, false);
  if (!root.is_object()) return out;
  const auto kind = root.find("kind");
  if (kind == root.end() || *kind != "Status") return out;
  const auto message = root.find("message");
  if (message != root.end() && message->is_string()) out.message = message->get<std::string>();
  const auto details = root.find("details");
  if (details == root.end() || !details->is_object()) return out;
  const auto seconds = details->find("retryAfterSeconds");
  // A day is more than any server means.
  if (seconds == details->end() || !seconds->is_number_integer()) return out;
  const auto value = seconds->get<std::int64_t>();
  if (value > 0 && value <= 86400) out.retry_after = std::chrono::seconds(value);
  return out;
}

}  // namespace spillway::kube
