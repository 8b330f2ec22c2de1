#include "vk-provider/daemon/cli_offers.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "vk-provider/control/explain_codec.hpp"
#include "vk-provider/model/gpu_catalog.hpp"

namespace spillway::daemon {
namespace {

std::string gibibytes(std::int64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{}Gi", bytes / (std::int64_t{1} << 30U));
}

std::string gpus_text(const model::Offer& o) {
  return o.gpu_count == 0 ? "-" : fmt::format("{} x {}", o.gpu_count, o.gpu_model);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string table_text(const OffersReport& report) {
  Table table({"PROVIDER", "OFFER", "GPUS", "GPU MEMORY", "CPU", "MEMORY", "REGION", "TYPE", "TRUST", "$/H", "NOW"});
  for (const model::Offer& o : report.offers) {
    table.add({o.provider.str(), o.id.str(), gpus_text(o), gibibytes(o.gpu_memory),
               o.cpu_milli == 0 ? "-" : fmt::format("{:g}", static_cast<double>(o.cpu_milli) / 1000),
               gibibytes(o.memory), or_dash(o.region), std::string(to_string(o.capacity_type)),
               std::string(to_string(o.trust)), o.price_per_hour ? o.price_per_hour->to_dollars() : "-",
               o.available ? "yes" : "sold out"});
  }
  std::string text = table.to_text();
  if (report.flawed > 0) text += fmt::format("\n{} more cannot be what they say, and are left out\n", report.flawed);
  return text;
}

std::string json_text(const OffersReport& report) {
  kube::JsonWriter out;
  out.open_object().key("offers").open_array();
  for (const model::Offer& o : report.offers) {
    out.open_object();
    control::write_offer_fields(out, o);
    out.field_bool("available", o.available).close_object();
  }
  out.close_array().field_number("flawed", static_cast<std::int64_t>(report.flawed)).key("unlisted").open_array();
  for (const Market::Problem& p : report.unlisted) {
    out.open_object().field("provider", p.provider).field("problem", p.message).close_object();
  }
  return out.close_array().close_object().take() + "\n";
}

}  // namespace

OffersReport report_offers(const Market& market, const OffersFilter& filter) {
  OffersReport report;
  // Own machines may have GPUs that the catalogue does not know.
  std::vector<std::string_view> gpus{filter.gpu};
  for (const model::GpuModel* const gpu : model::find_gpus(filter.gpu)) gpus.push_back(gpu->name);
  for (const core::OfferBook::Entry& entry : market.book.entries(market.now.steady)) {
    const model::Offer& o = *entry.offer;
    if (!filter.gpu.empty() && std::ranges::find(gpus, std::string_view(o.gpu_model)) == gpus.end()) continue;
    if (!filter.region.empty() && o.region != filter.region) continue;
    if (filter.spot && o.capacity_type != model::CapacityType::kSpot) continue;
    report.offers.push_back(o);
  }
  std::ranges::sort(report.offers, {}, [](const model::Offer& o) {
    return std::tuple(!o.price_per_hour, o.price_per_hour, o.provider, o.id);
  });
  report.flawed = market.book.flawed().size();
  report.unlisted = market.unlisted;
  if (!report.unlisted.empty()) report.exit_code = kExitFailed;
  return report;
}

std::string to_text(const OffersReport& report, Output output) {
  return output == Output::kJson ? json_text(report) : table_text(report);
}

}  // namespace spillway::daemon
