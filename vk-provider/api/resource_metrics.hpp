// Answers of /metrics/resource, /metrics/cadvisor and /metrics/probes in the Prometheus text format. Pure.
//
// Written straight into the text: metrics-server asks each fifteen seconds, of thousands of pods. Labels are the names
// of Kubernetes objects, which need no escapes; metrics-server looks for them in the bytes and knows none.
#pragma once

#include <string>

#include "vk-provider/api/measures.hpp"
#include "vk-provider/core/probe_view.hpp"

namespace spillway::api {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

/// Pods of which something is not known yet are left out: a part of a pod would be taken for all of it. `failing`: some
/// provider could not be asked.
std::string to_resource_metrics(const NodeMeasure& node, bool failing);

/// What of cAdvisor's metrics is known of containers elsewhere.
std::string to_cadvisor_metrics(const NodeMeasure& node);

std::string to_probe_metrics(const core::ProbeView& probes, const std::string& node);

}  // namespace spillway::api
