#include "vk-provider/kube/prometheus_client.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "vk-provider/kube/json_scan.hpp"
#include "vk-provider/net/url.hpp"

namespace spillway::kube {
namespace {

constexpr int kFirstError = 300;
constexpr std::size_t kMaxAnswer = 4 * 1024 * 1024;

struct Result {
  std::string type;
  std::string_view value;
};

std::expected<Result, NoData> result_of(std::string_view body) {
  std::string_view data;
  std::string status;
  JsonObject members(body);
  while (members.next()) {
    if (members.key() == "status") status = json_string_or_empty(members.value());
    if (members.key() == "data") data = members.value();
  }
  if (members.failed() || !json_is_object(body)) return std::unexpected("unreadable");
  if (status != "success") return std::unexpected("failed");
  Result out;
  out.type = json_string_or_empty(json_member(data, "resultType"));
  out.value = json_member(data, "result");
  return out;
}

/// `[1700000000.1, "5"]`. No value for what is none; NaN and infinities are numbers.
std::optional<double> sample(std::string_view pair) {
  JsonArray list(pair);
  if (!list.next() || !list.next()) return std::nullopt;
  const auto text = json_string(list.value());
  if (!text) return std::nullopt;
  // Prometheus writes NaN, +Inf and -Inf; from_chars knows no sign before a number.
  std::string_view digits = *text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::expected<double, NoData> decode_prometheus_number(std::string_view body) {
  const auto result = result_of(body);
  if (!result) return std::unexpected(result.error());
  std::string_view pair = result->value;
  if (result->type == "vector") {
    JsonArray elements(result->value);
    if (!elements.next()) return std::unexpected(elements.failed() ? "unreadable" : "empty");
    pair = json_member(elements.value(), "value");
    if (elements.next()) return std::unexpected("many");
  } else if (result->type != "scalar") {
    return std::unexpected("unreadable");
  }
  const auto number = sample(pair);
  if (!number) return std::unexpected("unreadable");
  if (!std::isfinite(*number)) return std::unexpected("nan");
  if (*number < 0) return std::unexpected("negative");
  return *number;
}

std::expected<std::map<std::string, std::int64_t>, NoData> decode_prometheus_counts(std::string_view body,
                                                                                    std::string_view label) {
  const auto result = result_of(body);
  if (!result) return std::unexpected(result.error());
  if (result->type != "vector") return std::unexpected("unreadable");
  constexpr double kMost = 1e6;
  std::map<std::string, std::int64_t> out;
  JsonArray elements(result->value);
  while (elements.next()) {
    const std::string name = json_string_or_empty(json_member(json_member(elements.value(), "metric"), label));
    const auto number = sample(json_member(elements.value(), "value"));
    if (!number) return std::unexpected("unreadable");
    if (name.empty() || !std::isfinite(*number) || *number <= 0) continue;
    // Several exporters may speak of one node: the worst counts.
    std::int64_t& gpus = out[name];
    gpus = std::max(gpus, static_cast<std::int64_t>(std::ceil(std::min(*number, kMost))));
  }
  if (elements.failed()) return std::unexpected("unreadable");
  return out;
}

boost::asio::awaitable<std::expected<std::string, NoData>> PrometheusClient::query(std::string expression,
                                                                                   base::Deadline deadline) {
  net::HttpRequest request;
  request.target = prefix_ + "/api/v1/query?query=" + net::encode_query_value(expression);
  request.headers.emplace_back("Accept", "application/json");
  request.bearer = token_;
  request.max_response = kMaxAnswer;
  auto answer = co_await http_.send(std::move(request), deadline);
  if (!answer) co_return std::unexpected(NoData("connection"));
  if (answer->status >= kFirstError) co_return std::unexpected(NoData("http"));
  co_return std::move(answer->body);
}

}  // namespace spillway::kube
