#include "vk-provider/api/resource_metrics.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

namespace spillway::api {
namespace {

constexpr std::uint64_t kNano = 1'000'000'000;
constexpr size_t kBytesPerPod = 1024;

/// Appends families of metrics to one text.
class MetricsText {
 public:
  explicit MetricsText(size_t expected) { out_.reserve(expected); }

  void family(std::string_view name, std::string_view type, std::string_view help) {
    out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  }
  MetricsText& name(std::string_view text) {
    out_ += text;
    first_ = true;
    return *this;
  }
  MetricsText& label(std::string_view key, std::string_view value) {
    out_ += first_ ? '{' : ',';
    first_ = false;
    out_.append(key).append("=\"").append(value).append("\"");
    return *this;
  }
  /// Ends the line. A sample that was measured carries its time.
  void number(std::uint64_t value) {
    end([&] { append(value); });
  }
  void number(std::uint64_t value, base::WallTime at) {
    end([&] { append(value); }, at);
  }
  void seconds(std::uint64_t nanoseconds) {
    end([&] { append_seconds(nanoseconds); });
  }
  void seconds(std::uint64_t nanoseconds, base::WallTime at) {
    end([&] { append_seconds(nanoseconds); }, at);
  }

  std::string take() { return std::move(out_); }

 private:
  template <class WriteValue>
  void end(WriteValue write_value) {
    out_ += first_ ? " " : "} ";
    write_value();
    out_ += '\n';
  }
  template <class WriteValue>
  void end(WriteValue write_value, base::WallTime at) {
    out_ += first_ ? " " : "} ";
    write_value();
    out_ += ' ';
    append(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count()));
    out_ += '\n';
  }
  void append(std::uint64_t value) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
  }
  /// Exact, without the zeros at the end.
  void append_seconds(std::uint64_t nanoseconds) {
    append(nanoseconds / kNano);
    std::uint64_t rest = nanoseconds % kNano;
    if (rest == 0) return;
    std::array<char, 9> digits{};
    for (auto it = digits.rbegin(); it != digits.rend(); ++it, rest /= 10) *it = static_cast<char>('0' + rest % 10);
    out_ += '.';
    out_ += std::string_view(digits.data(), digits.size()).substr(0, significant(digits));
  }
  static size_t significant(const std::array<char, 9>& digits) {
    size_t size = digits.size();
    while (size > 0 && digits.at(size - 1) == '0') --size;
    return size;
  }

  std::string out_;
  bool first_ = true;
};

std::uint64_t nanoseconds_of(base::WallTime t) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count());
}

void label_pod(MetricsText& out, const PodMeasure& pod) {
  out.label("namespace", pod.record->key().ns).label("pod", pod.record->key().name);
}

void label_container(MetricsText& out, const PodMeasure& pod, const ContainerMeasure& c) {
  out.label("container", c.spec->name).label("pod", pod.record->key().name).label("namespace", pod.record->key().ns);
}

template <class Write>
void each_container(const NodeMeasure& node, Write write) {
  for (const PodMeasure& pod : node.pods) {
    if (!pod.complete()) continue;
    for (const ContainerMeasure& c : pod.containers) write(pod, c);
  }
}

void write_node(MetricsText& out, const NodeMeasure& node) {
  if (node.use.cpu_ns) {
    out.family("node_cpu_usage_seconds_total", "counter", "CPU time that the pods of the node used, in core-seconds");
    out.name("node_cpu_usage_seconds_total").seconds(*node.use.cpu_ns, node.use.at);
  }
  if (node.use.working_set) {
    out.family("node_memory_working_set_bytes", "gauge", "working set of the pods of the node");
    out.name("node_memory_working_set_bytes").number(*node.use.working_set, node.use.at);
  }
}

void write_containers(MetricsText& out, const NodeMeasure& node) {
  out.family("container_cpu_usage_seconds_total", "counter", "CPU time that the container used, in core-seconds");
  each_container(node, [&](const PodMeasure& pod, const ContainerMeasure& c) {
    label_container(out.name("container_cpu_usage_seconds_total"), pod, c);
    out.seconds(*c.use.cpu_ns, c.use.at);
  });
  out.family("container_memory_working_set_bytes", "gauge", "working set of the container");
  each_container(node, [&](const PodMeasure& pod, const ContainerMeasure& c) {
    label_container(out.name("container_memory_working_set_bytes"), pod, c);
    out.number(*c.use.working_set, c.use.at);
  });
  out.family("container_start_time_seconds", "gauge", "when the container was started, in seconds since 1970");
  each_container(node, [&](const PodMeasure& pod, const ContainerMeasure& c) {
    if (!c.record->claim.started_at) return;
    label_container(out.name("container_start_time_seconds"), pod, c);
    out.seconds(nanoseconds_of(*c.record->claim.started_at));
  });
}

void write_pods(MetricsText& out, const NodeMeasure& node) {
  out.family("pod_cpu_usage_seconds_total", "counter", "CPU time that the pod used, in core-seconds");
  for (const PodMeasure& pod : node.pods) {
    if (!pod.complete()) continue;
    label_pod(out.name("pod_cpu_usage_seconds_total"), pod);
    out.seconds(*pod.use.cpu_ns, pod.use.at);
  }
  out.family("pod_memory_working_set_bytes", "gauge", "working set of the pod");
  for (const PodMeasure& pod : node.pods) {
    if (!pod.complete()) continue;
    label_pod(out.name("pod_memory_working_set_bytes"), pod);
    out.number(*pod.use.working_set, pod.use.at);
  }
}

/// For what is no name of an object: an image is written by the pod's author, an id by a provider.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void label_cadvisor(MetricsText& out, const PodMeasure& pod, const ContainerMeasure& c) {
  out.label("container", c.spec->name).label("image", escaped(c.spec->image));
  out.label("name", escaped(c.record->claim.container_id));
  label_pod(out, pod);
}

std::string_view word(core::ProbeKind kind) {
  switch (kind) {
    case core::ProbeKind::kStartup: return "Startup";
    case core::ProbeKind::kReadiness: return "Readiness";
    case core::ProbeKind::kLiveness: break;
  }
  return "Liveness";
}

}  // namespace

std::string to_resource_metrics(const NodeMeasure& node, bool failing) {
  MetricsText out(kBytesPerPod * (node.pods.size() + 1));
  write_containers(out, node);
  write_node(out, node);
  write_pods(out, node);
  out.family("resource_scrape_error", "gauge", "1 if a provider could not be asked what its containers use");
  out.name("resource_scrape_error").number(failing ? 1 : 0);
  return out.take();
}

std::string to_cadvisor_metrics(const NodeMeasure& node) {
  MetricsText out(kBytesPerPod * (node.pods.size() + 1));
  const auto each = [&](auto write) {
    for (const PodMeasure& pod : node.pods) {
      for (const ContainerMeasure& c : pod.containers) write(pod, c);
    }
  };
  out.family("container_cpu_usage_seconds_total", "counter", "CPU time that the container used, in core-seconds");
  each([&](const PodMeasure& pod, const ContainerMeasure& c) {
    if (!c.use.cpu_ns) return;
    label_cadvisor(out.name("container_cpu_usage_seconds_total"), pod, c);
    out.label("cpu", "total").seconds(*c.use.cpu_ns, c.use.at);
  });
  out.family("container_memory_working_set_bytes", "gauge", "working set of the container");
  each([&](const PodMeasure& pod, const ContainerMeasure& c) {
    if (!c.use.working_set) return;
    label_cadvisor(out.name("container_memory_working_set_bytes"), pod, c);
    out.number(*c.use.working_set, c.use.at);
  });
  out.family("container_start_time_seconds", "gauge", "when the container was started, in seconds since 1970");
  each([&](const PodMeasure& pod, const ContainerMeasure& c) {
    if (!c.record->claim.started_at) return;
    label_cadvisor(out.name("container_start_time_seconds"), pod, c);
    out.seconds(nanoseconds_of(*c.record->claim.started_at));
  });
  return out.take();
}

std::string to_probe_metrics(const core::ProbeView& probes, const std::string& node) {
  MetricsText out(kBytesPerPod);
  out.family("prober_probe_total", "counter", "runs of the probes of the containers that run, by their result");
  probes.each_probe(node, [&](const core::ProbeCount& count) {
    const std::array<std::pair<std::string_view, std::uint32_t>, 3> results{
        {{"successful", count.successful}, {"failed", count.failed}, {"unknown", count.unknown}}};
    for (const auto& [result, times] : results) {
      if (times == 0) continue;
      out.name("prober_probe_total").label("container", count.container).label("namespace", count.pod->ns);
      out.label("pod", count.pod->name).label("pod_uid", count.pod->uid.str());
      out.label("probe_type", word(count.kind)).label("result", result).number(times);
    }
  });
  return out.take();
}

}  // namespace spillway::api
