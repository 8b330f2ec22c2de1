// Instant queries to a Prometheus server: the numbers that a cluster's own monitoring has.
//
// Owned by control/gate_prober, uses an HttpClient that outlives it; reactor thread only. Repeats nothing, keeps
// nothing. What is no data is an Error text of a closed set (kNoData below), fit for a metric's label: never a number.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "vk-provider/async/task.hpp"
#include "vk-provider/base/clock.hpp"
#include "vk-provider/base/secret.hpp"
#include "vk-provider/net/http.hpp"

namespace spillway::kube {

/// Why an answer is no data: connection (or no answer in time), http (a status of 400 or more), unreadable, failed
/// (status is not success), empty, many (more than one element), nan (or infinite), negative.
using NoData = std::string;

/// A scalar, or a vector of one element: finite and not negative.
std::expected<double, NoData> decode_prometheus_number(std::string_view body);
/// One element per value of a label, each a finite number above 0, rounded up; elements without the label are left
/// out. An empty vector is an answer: nothing is wrong anywhere.
std::expected<std::map<std::string, std::int64_t>, NoData> decode_prometheus_counts(std::string_view body,
                                                                                    std::string_view label);

class PrometheusClient {
 public:
  /// `prefix` is the path before /api/v1. `token` may be empty.
  PrometheusClient(net::HttpClient& http, std::string prefix, base::Secret token)
      : http_(http), prefix_(std::move(prefix)), token_(std::move(token)) {}

  /// The body of a 2xx answer; NoData otherwise.
  boost::asio::awaitable<std::expected<std::string, NoData>> query(std::string expression, base::Deadline deadline);

 private:
  net::HttpClient& http_;
  std::string prefix_;
  base::Secret token_;
};

}  // namespace spillway::kube
