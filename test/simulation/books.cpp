#include "test/simulation/books.hpp"

#include <algorithm>
#include <utility>

#include "vk-provider/control/ledger_codec.hpp"

namespace spillway::simulation {
namespace {

kube::ConfigMap config_map(const test::api_model::Object& object) {
  kube::ConfigMap out;
  const nlohmann::json whole = object.whole();
  out.name = object.name();
  out.labels = whole["metadata"].value("labels", out.labels);
  out.data = whole.value("data", out.data);
  return out;
}

std::string check_line(const Facts& facts, const CloudSite& site, const providers::fake::InvoiceLine& line,
                       const LedgerRows& ledger, const std::set<std::string>& harmed) {
  const std::string who = site.name + " bills " + line.amount.to_dollars() + " for " + line.instance;
  const core::LedgerKey key{{base::ProviderName(site.name), base::InstanceId(line.instance)},
                            base::InstanceTag(line.tag.str())};
  const auto entry = ledger.find(key);
  if (entry == ledger.end()) {
    const std::set<std::string>& knew = facts.who_knew(site.index, line.instance);
    const bool lost = std::ranges::includes(harmed, knew);
    return lost ? std::string() : who + ", and the ledger does not know it";
  }
  if (!entry->second.gone) return who + ", and its entry is open";
  const base::Money noted = core::cost_of(entry->second, entry->second.until);
  return noted >= line.amount ? std::string() : who + ", and the ledger says " + noted.to_dollars();
}

}  // namespace

base::Result<LedgerRows> read_ledger(const test::ApiServerModel& api) {
  std::vector<kube::ConfigMap> shards;
  for (const auto& [key, object] : api.all("configmaps")) {
    kube::ConfigMap map = config_map(*object);
    if (map.labels.contains(std::string(control::kLabelLedger))) shards.push_back(std::move(map));
  }
  return control::decode_shards(std::move(shards));
}

std::string misbilled(const Facts& facts, CloudSite& site, const LedgerRows& ledger,
                      const std::set<std::string>& harmed, base::TimePoint now) {
  std::set<std::string> foreign;
  for (const auto& entry : site.cloud.audit(now).instances) {
    if (entry.foreign) foreign.insert(entry.id);
  }
  for (const auto& line : site.cloud.invoice(now)) {
    if (foreign.contains(line.instance)) continue;
    if (std::string wrong = check_line(facts, site, line, ledger, harmed); !wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace spillway::simulation
