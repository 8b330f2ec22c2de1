#include "vk-provider/daemon/config_spend.hpp"

#include <algorithm>

namespace spillway::daemon {
namespace {

constexpr base::Duration kLeastRetention = std::chrono::hours(24 * 32);
constexpr base::Duration kMostRetention = std::chrono::hours(24 * 365);
constexpr std::string_view kAllowed = "dollars above 0 such as 2.50, of at most 6 decimals";

void read_cap(Section& section, std::string_view key, std::optional<base::Money>& out) {
  const At at = section.get(key);
  std::string text;
  if (!section.reader().text(at, text, kAllowed)) return;
  out = base::Money::from_dollars(text);
  // A cap of nothing would hold everything up for ever: whoever wants that leaves the provider or the node out.
  if (out && out->micros() > 0) return;
  out.reset();
  section.reader().fault(at, "found " + describe(at.node) + "; allowed: " + std::string(kAllowed));
}

core::SpendCaps read_caps(Reader& reader, const At& at) {
  core::SpendCaps out;
  Section section(reader, at);
  read_cap(section, "perHour", out.per_hour);
  read_cap(section, "perDay", out.per_day);
  read_cap(section, "perMonth", out.per_month);
  section.finish();
  return out;
}

/// Calls take(name, caps) for each entry whose name is one of `known`; an empty list knows every name.
template <class F>
void read_each(Reader& reader, const At& at, const std::vector<std::string>& known, F take) {
  for (const auto& [name, value] : reader.entries(at, "a mapping of name to caps")) {
    if (!known.empty() && std::ranges::find(known, name) == known.end()) {
      reader.fault(value, "found the name \"" + name + "\"; allowed: " + join(known));
      continue;
    }
    take(name, read_caps(reader, value));
  }
}

}  // namespace

core::SpendPolicy read_spend(Reader& reader, const At& at, const Config& read, base::Duration& retention) {
  core::SpendPolicy out;
  std::vector<std::string> nodes;
  for (const model::NodeProfile& node : read.nodes) nodes.push_back(node.name);
  std::vector<std::string> providers;
  for (const ProviderConfig& provider : read.providers) providers.push_back(provider.name.str());
  Section section(reader, at);
  out.installation = read_caps(reader, section.get("installation"));
  out.each_namespace = read_caps(reader, section.get("eachNamespace"));
  read_each(reader, section.get("namespaces"), {},
            [&](const std::string& name, const core::SpendCaps& caps) { out.namespaces[name] = caps; });
  read_each(reader, section.get("providers"), providers, [&](const std::string& name, const core::SpendCaps& caps) {
    out.providers[base::ProviderName(name)] = caps;
  });
  read_each(reader, section.get("nodes"), nodes,
            [&](const std::string& name, const core::SpendCaps& caps) { out.nodes[name] = caps; });
  // The caps of a month are remembered by it.
  section.duration("ledgerRetention", kLeastRetention, kMostRetention, retention);
  section.finish();
  return out;
}

void require_caps(Reader& reader, const At& providers, const Config& read, const ConfigSources& sources) {
  if (!providers.present || !providers.node.IsSequence()) return;
  const std::vector<At> entries = reader.list(providers, "a list of providers");
  for (size_t i = 0; i < read.providers.size() && i < entries.size(); ++i) {
    const ProviderConfig& provider = read.providers[i];
    const auto type = sources.providers->find(provider.type);
    if (type == sources.providers->end() || !type->second.costs_money) continue;
    if (core::is_capped(read.spend, provider.name)) continue;
    reader.fault(entries[i], "found no cap on what provider \"" + provider.name.str() +
                                 "\" may cost; allowed: with spend.installation.perHour or spend.providers." +
                                 provider.name.str() + ".perHour");
  }
}

}  // namespace spillway::daemon
