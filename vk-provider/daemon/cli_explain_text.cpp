// How cli_explain shows its report.
#include <fmt/format.h>

#include "vk-provider/control/explain_codec.hpp"
#include "vk-provider/core/explain_text.hpp"
#include "vk-provider/daemon/cli_explain.hpp"
#include "vk-provider/kube/json_writer.hpp"

namespace spillway::daemon {
namespace {

constexpr std::int64_t kGibibyte = 1LL << 30;
constexpr std::int64_t kMebibyte = 1LL << 20;

std::string title_of(const ManifestObject& object, const std::string& path) {
  std::string text = fmt::format("{}:{}: {}", object.file, object.line, object.kind);
  if (!object.name.empty()) text += " " + (object.ns.empty() ? "" : object.ns + "/") + object.name;
  if (!path.empty()) text += " (" + path + ")";
  return text;
}

std::string memory_text(std::int64_t bytes) {
  if (bytes % kGibibyte == 0) return fmt::format("{}Gi", bytes / kGibibyte);
  if (bytes % kMebibyte == 0) return fmt::format("{}Mi", bytes / kMebibyte);
  return fmt::format("{} bytes", bytes);
}

std::string cpu_text(std::int64_t milli) {
  return milli % 1000 == 0 ? fmt::format("{} CPU", milli / 1000) : fmt::format("{}m CPU", milli);
}

/// `2 nvidia.com/gpu, 8 CPU, 32Gi`; empty if it asks for nothing.
std::string sizes_text(const core::Requirements& needs) {
  std::vector<std::string> parts;
  if (needs.gpu_count > 0) parts.push_back(fmt::format("{} {}", needs.gpu_count, needs.gpu_resource));
  if (needs.cpu_milli > 0) parts.push_back(cpu_text(needs.cpu_milli));
  if (needs.memory > 0) parts.push_back(memory_text(needs.memory));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string provider_text(const core::Verdict::OfProvider& provider, bool faults) {
  if (provider.lacks.empty()) return fmt::format("  provider {}: can{}\n", provider.name, faults ? " do the rest" : "");
  std::string text = fmt::format("  provider {}: cannot\n", provider.name);
  for (const core::Lack& lack : provider.lacks) {
    text += fmt::format("    {}: {}\n", fmt::join(lack.paths, ", "), lack.why);
  }
  return text;
}

std::string dry_run_text(const ExplainedPod::DryRun& run) {
  const core::Explanation& all = run.all;
  std::string text =
      fmt::format("  on node {}: {}\n", run.node, core::explain_counts(all.rejected, all.offers, run.shape));
  if (all.decision.best) {
    text += fmt::format("  buys now: {}\n", core::describe_choice(*all.decision.best, {}));
  } else {
    text += "  buys nothing now\n";
  }
  for (const core::Candidate& next : all.next) {
    text += fmt::format("    next, lost by {}: {}\n", to_string(next.lost_by), core::describe_choice(next, {}));
  }
  for (const core::NearMiss& miss : all.near) {
    text += fmt::format("    would change it: {}\n", describe(miss, run.shape, run.now));
  }
  return text;
}

std::string pod_text(const ExplainedPod& pod) {
  std::string text =
      title_of(pod.object, pod.path) + (pod.reason.empty() ? ": runs\n" : ": refused, " + pod.reason + "\n");
  const std::string sizes = sizes_text(pod.needs);
  if (!sizes.empty()) text += "  asks for " + sizes + "\n";
  for (const core::Fault& fault : pod.verdict.faults) text += fmt::format("  {}: {}\n", fault.path, fault.why);
  for (const auto& provider : pod.verdict.providers) text += provider_text(provider, !pod.verdict.faults.empty());
  if (pod.dry_run) text += dry_run_text(*pod.dry_run);
  return text;
}

std::string table_text(const ExplainReport& report) {
  std::string text;
  size_t refused = 0;
  for (const ExplainedPod& pod : report.pods) {
    text += pod_text(pod) + "\n";
    if (!pod.reason.empty()) ++refused;
  }
  for (const ManifestObject& object : report.others) text += title_of(object, "") + ": has no pod\n";
  if (!report.others.empty()) text += "\n";
  for (const Market::Problem& p : report.unlisted) {
    text += fmt::format("provider {} did not say what it sells: {}\n", p.provider, p.message);
  }
  return text + fmt::format("{} of {} can run\n", report.pods.size() - refused, report.pods.size());
}

void write_object(kube::JsonWriter& w, const ManifestObject& object) {
  w.field("file", object.file).field_number("line", object.line).field("kind", object.kind);
  w.field_if("namespace", object.ns).field("name", object.name);
}

void write_provider(kube::JsonWriter& w, const core::Verdict::OfProvider& provider) {
  w.open_object().field("name", provider.name).field_bool("able", provider.lacks.empty());
  w.key("lacks").open_array();
  for (const core::Lack& lack : provider.lacks) {
    w.open_object().field("capability", to_string(lack.capability)).field("why", lack.why).key("paths").open_array();
    for (const std::string& path : lack.paths) w.string(path);
    w.close_array().close_object();
  }
  w.close_array().close_object();
}

void write_pod(kube::JsonWriter& w, const ExplainedPod& pod) {
  w.open_object();
  write_object(w, pod.object);
  w.field_if("template", pod.path);
  w.field_bool("runs", pod.reason.empty()).field_if("reason", pod.reason).field_if("message", pod.message);
  w.field_number("gpus", pod.needs.gpu_count).field_if("gpuResource", pod.needs.gpu_resource);
  w.field_number("cpuMilli", pod.needs.cpu_milli).field_number("memoryBytes", pod.needs.memory);
  w.key("faults").open_array();
  for (const core::Fault& fault : pod.verdict.faults) {
    w.open_object().field("path", fault.path).field("why", fault.why).close_object();
  }
  w.close_array().key("providers").open_array();
  for (const auto& provider : pod.verdict.providers) write_provider(w, provider);
  w.close_array();
  if (pod.dry_run) {
    w.field("node", pod.dry_run->node).key("placement");
    control::write_explanation(w, pod.dry_run->all, pod.dry_run->shape, pod.dry_run->now);
  }
  w.close_object();
}

std::string json_text(const ExplainReport& report) {
  kube::JsonWriter w;
  w.open_object().key("pods").open_array();
  for (const ExplainedPod& pod : report.pods) write_pod(w, pod);
  w.close_array().key("others").open_array();
  for (const ManifestObject& object : report.others) {
    w.open_object();
    write_object(w, object);
    w.close_object();
  }
  w.close_array().key("unlisted").open_array();
  for (const Market::Problem& p : report.unlisted) {
    w.open_object().field("provider", p.provider).field("problem", p.message).close_object();
  }
  return w.close_array().close_object().take() + "\n";
}

}  // namespace

std::string to_text(const ExplainReport& report, Output output) {
  return output == Output::kJson ? json_text(report) : table_text(report);
}

}  // namespace spillway::daemon
