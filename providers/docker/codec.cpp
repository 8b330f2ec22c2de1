#include "providers/docker/codec.hpp"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "vk-provider/net/url.hpp"

namespace spillway::providers::docker {
namespace {

using nlohmann::json;

constexpr size_t kLongestMessage = 2000;

json parse(std::string_view text) { return json::parse(text, nullptr, /*allow_exceptions=*/false); }

const json* find(const json& node, const char* key) {
  if (!node.is_object()) return nullptr;
  const auto it = node.find(key);
  return it == node.end() || it->is_null() ? nullptr : &*it;
}

std::string text(const json& node, const char* key) {
  const json* const value = find(node, key);
  const auto* const s = value == nullptr ? nullptr : value->get_ptr<const std::string*>();
  return s == nullptr ? std::string() : *s;
}

std::int64_t number(const json& node, const char* key) {
  const json* const value = find(node, key);
  return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : 0;
}

bool flag(const json& node, const char* key) {
  const json* const value = find(node, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

Labels labels(const json& node) {
  Labels out;
  const json* const map = find(node, "Labels");
  if (map == nullptr || !map->is_object()) return out;
  for (const auto& item : map->items()) {
    const auto* const value = item.value().get_ptr<const std::string*>();
    // Labels of images travel along; only ours matter.
    if (value != nullptr && item.key().starts_with("spillway.dev/")) out.emplace(item.key(), *value);
  }
  return out;
}

std::optional<base::WallTime> time(const json& node, const char* key) {
  const auto t = base::from_rfc3339(text(node, key));
  // Year 1 is the engine's "never".
  if (!t || *t <= base::WallTime{}) return std::nullopt;
  return t;
}

/// `1.41` -> 41; 0 for anything else.
int minor_of(std::string_view version) {
  int minor = 0;
  if (!version.starts_with("1.")) return 0;
  version.remove_prefix(2);
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), minor);
  return error == std::errc{} && end == version.data() + version.size() ? minor : 0;
}

std::unexpected<base::Error> unreadable(std::string_view what) {
  return base::fail(base::ErrorKind::kUnavailable, "the engine's answer is no " + std::string(what));
}

std::vector<model::InstancePort> ports(const json& node) {
  std::vector<model::InstancePort> out;
  const json* const list = find(node, "Ports");
  if (list == nullptr || !list->is_array()) return out;
  for (const json& item : *list) {
    model::InstancePort port;
    port.container_port = static_cast<int>(number(item, "PrivatePort"));
    port.public_port = static_cast<int>(number(item, "PublicPort"));
    port.host = text(item, "IP");
    if (port.public_port != 0) out.push_back(std::move(port));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.container_port < b.container_port; });
  return out;
}

std::vector<MountPoint> mounts(const json& node) {
  std::vector<MountPoint> out;
  const json* const list = find(node, "Mounts");
  if (list == nullptr || !list->is_array()) return out;
  for (const json& item : *list) {
    MountPoint& mount = out.emplace_back();
    mount.place = text(item, "Destination");
    mount.volume = text(item, "Name");
    mount.source = text(item, "Source");
  }
  return out;
}

std::vector<SubPath> sub_paths(const json& host_config) {
  std::vector<SubPath> out;
  const json* const list = find(host_config, "Mounts");
  if (list == nullptr || !list->is_array()) return out;
  for (const json& item : *list) {
    const json* const options = find(item, "VolumeOptions");
    std::string path = options == nullptr ? std::string() : text(*options, "Subpath");
    if (path.empty()) continue;
    SubPath& part = out.emplace_back();
    part.volume = text(item, "Source");
    part.path = std::move(path);
  }
  return out;
}

/// Those of ours in a list of a disk usage; `size_of` tells bytes, or less than 0.
template <class SizeOf>
std::vector<DiskUse> disk_uses(const json& node, const char* key, SizeOf size_of) {
  std::vector<DiskUse> out;
  const json* const list = find(node, key);
  if (list == nullptr || !list->is_array()) return out;
  for (const json& item : *list) {
    DiskUse use;
    use.labels = labels(item);
    use.bytes = size_of(item);
    if (use.labels.contains(kLabelTag) && use.bytes >= 0) out.push_back(std::move(use));
  }
  return out;
}

}  // namespace

const std::string& label(const Labels& labels, std::string_view key) {
  static const std::string none;
  const auto it = labels.find(key);
  return it == labels.end() ? none : it->second;
}

base::Result<std::vector<ContainerEntry>> decode_list(std::string_view body) {
  const json node = parse(body);
  if (!node.is_array()) return unreadable("list of containers");
  std::vector<ContainerEntry> entries;
  entries.reserve(node.size());
  for (const json& item : node) {
    ContainerEntry entry;
    entry.id = text(item, "Id");
    const json* const names = find(item, "Names");
    if (names != nullptr && names->is_array() && !names->empty() && names->front().is_string()) {
      entry.name = names->front().get<std::string>();
      if (entry.name.starts_with('/')) entry.name.erase(0, 1);
    }
    entry.state = text(item, "State");
    entry.status = text(item, "Status");
    entry.image_id = text(item, "ImageID");
    entry.labels = labels(item);
    const std::int64_t created = number(item, "Created");
    if (created > 0) entry.created = base::WallTime(std::chrono::seconds(created));
    entry.ports = ports(item);
    // A listing with an entry that we cannot tell from another is not a listing.
    if (entry.id.empty()) return unreadable("list of containers: one has no Id");
    entries.push_back(std::move(entry));
  }
  return entries;
}

base::Result<ContainerFacts> decode_container(std::string_view body) {
  const json node = parse(body);
  ContainerFacts facts;
  facts.id = text(node, "Id");
  const json* const state = find(node, "State");
  if (facts.id.empty() || state == nullptr) return unreadable("description of a container");
  facts.state = text(*state, "Status");
  facts.error = text(*state, "Error");
  facts.exit_code = static_cast<int>(number(*state, "ExitCode"));
  facts.oom_killed = flag(*state, "OOMKilled");
  facts.started_at = time(*state, "StartedAt");
  facts.finished_at = time(*state, "FinishedAt");
  // The engine notes the start after it happened: what ends at once can have ended before it "started".
  if (facts.state == "exited" && facts.finished_at && facts.started_at > facts.finished_at) {
    facts.started_at = facts.finished_at;
  }
  facts.created = time(node, "Created");
  facts.image_id = text(node, "Image");
  if (const json* const config = find(node, "Config")) {
    facts.labels = labels(*config);
    facts.tty = flag(*config, "Tty");
  }
  facts.mounts = mounts(node);
  if (const json* const host_config = find(node, "HostConfig")) facts.sub_paths = sub_paths(*host_config);
  return facts;
}

base::Result<std::vector<VolumeEntry>> decode_volumes(std::string_view body) {
  const json node = parse(body);
  if (!node.is_object()) return unreadable("list of volumes");
  std::vector<VolumeEntry> volumes;
  const json* const list = find(node, "Volumes");
  if (list == nullptr) return volumes;  // an engine without any says null
  if (!list->is_array()) return unreadable("list of volumes");
  for (const json& item : *list) {
    VolumeEntry& volume = volumes.emplace_back();
    volume.name = text(item, "Name");
    volume.labels = labels(item);
    if (volume.name.empty()) return unreadable("list of volumes: one has no Name");
  }
  return volumes;
}

base::Result<DiskUsage> decode_disk_usage(std::string_view body) {
  const json node = parse(body);
  if (!node.is_object() || (find(node, "Containers") == nullptr && find(node, "Volumes") == nullptr)) {
    return unreadable("disk usage");
  }
  DiskUsage usage;
  usage.containers = disk_uses(node, "Containers", [](const json& item) { return number(item, "SizeRw"); });
  usage.volumes = disk_uses(node, "Volumes", [](const json& item) {
    const json* const data = find(item, "UsageData");
    return data == nullptr ? std::int64_t{-1} : number(*data, "Size");
  });
  return usage;
}

std::string decode_image_user(std::string_view body) {
  const json node = parse(body);
  const json* const config = find(node, "Config");
  return config == nullptr ? std::string() : text(*config, "User");
}

std::string join_frames(std::string_view framed) {
  constexpr size_t kHead = 8;
  std::string out;
  while (framed.size() >= kHead) {
    size_t size = 0;
    for (size_t i = 4; i < kHead; ++i) size = size * 256 + static_cast<unsigned char>(framed[i]);
    framed.remove_prefix(kHead);
    out += framed.substr(0, size);
    framed.remove_prefix(std::min(size, framed.size()));
  }
  return out;
}

base::Result<std::string> decode_created(std::string_view body) {
  std::string id = text(parse(body), "Id");
  if (id.empty()) return unreadable("answer to a create: it has no Id");
  return id;
}

base::Result<EngineVersion> decode_version(std::string_view body) {
  const json node = parse(body);
  EngineVersion version;
  version.architecture = text(node, "Arch");
  version.newest = minor_of(text(node, "ApiVersion"));
  version.oldest = minor_of(text(node, "MinAPIVersion"));
  if (version.architecture.empty() || version.newest == 0) {
    return unreadable("answer to a version: it has no Arch or no ApiVersion");
  }
  return version;
}

std::string decode_message(std::string_view body) {
  std::string message = text(parse(body), "message");
  if (message.empty()) message = body;
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
  if (message.size() > kLongestMessage) message = message.substr(0, kLongestMessage) + "...";
  return message.empty() ? "it gave no reason" : message;
}

std::optional<std::string> decode_pull_error(std::string_view line) {
  const json node = parse(line);
  if (const json* const detail = find(node, "errorDetail")) {
    std::string message = text(*detail, "message");
    if (!message.empty()) return message;
  }
  std::string message = text(node, "error");
  if (message.empty()) return std::nullopt;
  return message;
}

std::string encode_label_filter(std::string_view label) {
  const json filter = {{"label", json::array({std::string(label)})}};
  return "filters=" + net::encode_query_value(filter.dump());
}

}  // namespace spillway::providers::docker
