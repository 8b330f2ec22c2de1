#include "vk-provider/daemon/config_provider_codec.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "vk-provider/daemon/config_values.hpp"

namespace spillway::daemon {
namespace {

using nlohmann::json;

constexpr int kMaxValues = 100'000;
constexpr int kMaxDepth = 32;  // an alias that contains itself ends here
constexpr std::streamsize kMaxSecret = 64 * 1024;

/// One provider's `config:` on its way to JSON.
class Converter {
 public:
  Converter(Reader& reader, const ConfigSources& sources, const std::vector<std::string>& secret_keys)
      : reader_(reader), sources_(sources), secret_keys_(secret_keys) {}

  /// `below` is the path below config with indices left out: `hosts[].password`.
  json convert(const At& at, const std::string& below, int depth) {
    if (depth > kMaxDepth || values_ == kMaxValues) {
      if (!too_much_) reader_.fault(at, "found too many levels or values (an alias in itself?); allowed: fewer");
      too_much_ = true;
      return nullptr;
    }
    ++values_;
    if (std::ranges::find(secret_keys_, below) != secret_keys_.end()) return secret(at);
    if (!at.present) return nullptr;
    if (at.node.IsMap()) return mapping(at, below, depth);
    if (at.node.IsSequence()) {
      json out = json::array();
      for (const At& entry : reader_.list(at, "a list")) out.push_back(convert(entry, below + "[]", depth + 1));
      return out;
    }
    return scalar(at.node);
  }

  /// Takes the secrets out of a message that a provider wrote.
  std::string redacted(std::string message) const {
    for (const std::string& value : secrets_) {
      for (std::size_t i = message.find(value); i != std::string::npos; i = message.find(value, i)) {
        message.replace(i, value.size(), "<secret>");
        i += std::string_view("<secret>").size();
      }
    }
    return message;
  }

 private:
  json mapping(const At& at, const std::string& below, int depth) {
    json out = json::object();
    for (const auto& [key, value] : reader_.entries(at, "a mapping")) {
      std::string path = below;
      if (!path.empty()) path += '.';
      path += key;
      out[key] = convert(value, path, depth + 1);
    }
    return out;
  }

  /// A plain scalar that JSON knows as a number or a truth is one; everything else is text.
  static json scalar(const YAML::Node& node) {
    if (node.Tag() == "?") {
      json value = json::parse(node.Scalar(), nullptr, false);
      if (value.is_number() || value.is_boolean()) return value;
    }
    return node.Scalar();
  }

  json secret(const At& at) {
    static constexpr std::string_view kAllowed = "{fromFile: path} or {fromEnv: NAME}, for it is a secret";
    if (!at.present) return nullptr;
    if (!at.node.IsMap()) {
      // The value may be the secret itself: it is not shown.
      reader_.fault(at, "found a value; allowed: " + std::string(kAllowed));
      return nullptr;
    }
    std::string file;
    std::string variable;
    Section section(reader_, at);
    section.text("fromFile", file, "the path of a file");
    section.text("fromEnv", variable, "the name of an environment variable");
    section.finish();
    if (file.empty() == variable.empty()) {
      reader_.fault(at, std::string(file.empty() ? "found neither fromFile nor fromEnv" : "found both") +
                            "; allowed: " + std::string(kAllowed));
      return nullptr;
    }
    return file.empty() ? from_environment(at, variable) : from_file(at, file);
  }

  json from_environment(const At& at, const std::string& variable) {
    const auto value = sources_.environment ? sources_.environment(variable) : std::nullopt;
    if (!value || value->empty()) {
      reader_.fault(at, "found no environment variable " + variable + " with a value; allowed: one that is set");
      return nullptr;
    }
    secrets_.push_back(*value);
    return *value;
  }

  json from_file(const At& at, const std::string& file) {
    // Beside the configuration, so that it does not matter from where the daemon is started.
    const auto path = std::filesystem::path(reader_.file()).parent_path() / file;
    std::ifstream stream(path, std::ios::binary);
    std::string value(static_cast<std::size_t>(kMaxSecret), '\0');
    stream.read(value.data(), kMaxSecret);
    value.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
    while (value.ends_with('\n') || value.ends_with('\r')) value.pop_back();
    if (value.empty()) {
      reader_.fault(at,
                    "found no readable text in the file " + path.string() + "; allowed: a file that holds the secret");
      return nullptr;
    }
    secrets_.push_back(value);
    return value;
  }

  Reader& reader_;
  const ConfigSources& sources_;
  const std::vector<std::string>& secret_keys_;
  std::vector<std::string> secrets_;
  int values_ = 0;
  bool too_much_ = false;
};

/// The deepest place on the way to `path` that the file has. The rest of the path is kept in At::path.
At locate(Reader& reader, const At& config, const std::string& path) {
  std::string rest = path;
  auto here = std::make_unique<At>(config);
  const auto step_to = [&](const At& next, std::size_t used) {
    here = std::make_unique<At>(next);
    rest.erase(0, used);
    if (rest.starts_with('.')) rest.erase(0, 1);
  };
  for (bool moved = true; moved && !rest.empty();) {
    moved = false;
    if (here->present && here->node.IsMap()) {
      for (const auto& [key, value] : reader.entries(*here, "")) {
        const std::string_view after = std::string_view(rest).substr(std::min(key.size(), rest.size()));
        const bool whole = after.empty() || after.front() == '.' || after.front() == '[';
        if (key.empty() || !rest.starts_with(key) || !whole) continue;
        step_to(value, key.size());
        moved = true;
        break;
      }
    } else if (here->present && here->node.IsSequence() && rest.starts_with('[')) {
      const std::size_t close = rest.find(']');
      for (const At& entry : reader.list(*here, "")) {
        if (close == std::string::npos || entry.path != here->path + rest.substr(0, close + 1)) continue;
        step_to(entry, close + 1);
        moved = true;
        break;
      }
    }
  }
  At out(*here);
  if (!rest.empty()) out.path += (rest.starts_with('[') ? "" : ".") + rest;
  return out;
}

void read_config(Reader& reader, const At& at, const provider::ProviderType& type, const ConfigSources& sources,
                 ProviderConfig& out) {
  Converter converter(reader, sources, type.secret_keys);
  json config = json::object();
  if (at.present && !at.node.IsMap()) {
    reader.fault(at, "found " + describe(at.node) + "; allowed: a mapping");
    return;
  }
  if (at.present) config = converter.convert(at, "", 0);
  // The document was read without a fault here, so that walking it again to find a line reports nothing twice.
  Reader silent(reader.file(), nullptr);
  for (const provider::ConfigFault& fault : type.validate(config)) {
    reader.fault(locate(silent, at, fault.path), converter.redacted(fault.message));
  }
  out.config = std::make_shared<const json>(std::move(config));
}

ProviderConfig read_provider(Reader& reader, const At& at, const ConfigSources& sources) {
  ProviderConfig out;
  Section section(reader, at);
  std::string name;
  const At name_at = section.require("name", "a name of your choice for this provider");
  if (reader.text(name_at, name) && !is_dns_label(name)) {
    reader.fault(name_at, "found " + describe(name_at.node) +
                              "; allowed: at most 63 of a-z, 0-9 and '-', a letter or digit at both ends");
  }
  out.name = base::ProviderName(name);

  std::vector<std::string> types;
  for (const auto& [type, entry] : *sources.providers) types.push_back(type);
  const At type_at = section.require("type", "one of " + join(types));
  const At config_at = section.get("config");
  if (reader.text(type_at, out.type, join(types))) {
    const auto type = sources.providers->find(out.type);
    if (type == sources.providers->end()) {
      const std::string_view near = nearest(out.type, types);
      reader.fault(type_at, "found " + describe(type_at.node) + "; allowed: " + join(types) +
                                (near.empty() ? "" : " (the nearest is " + std::string(near) + ")"));
    } else {
      read_config(reader, config_at, type->second, sources, out);
    }
  }
  section.finish();
  return out;
}

}  // namespace

std::vector<ProviderConfig> read_providers(Reader& reader, const At& providers, const ConfigSources& sources) {
  std::vector<ProviderConfig> out;
  for (const At& at : reader.list(providers, "a list of providers")) {
    ProviderConfig entry = read_provider(reader, at, sources);
    if (!entry.name.empty() && std::ranges::find(out, entry.name, &ProviderConfig::name) != out.end()) {
      reader.fault(at, "found the name \"" + entry.name.str() +
                           "\" a second time; allowed: a name of its own for each provider");
    }
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace spillway::daemon
