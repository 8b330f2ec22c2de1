#include "vk-provider/core/files.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "vk-provider/core/downward.hpp"

namespace spillway::core {
namespace {

using model::ConfigRef;
using model::VolumeItem;
using model::VolumeSource;

constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxPart = 255;
constexpr int kModeBits = 0777;
constexpr int kOwnedTokenMode = 0600;

/// The user as whom every container runs; empty if they differ, or if one leaves it to its image.
std::optional<std::int64_t> common_user(const model::PodSpec& pod) {
  std::optional<std::int64_t> common;
  for (const model::ContainerSpec* container : all_containers(pod)) {
    const auto user = container->security ? container->security->user : std::nullopt;
    if (!user || (common && *common != *user)) return std::nullopt;
    common = user;
  }
  return common;
}

/// Collects the files of one volume.
class VolumeFiles {
 public:
  VolumeFiles(const model::PodSpec& pod, const Surroundings& read, const model::VolumeSpec& volume,
              std::vector<Note>& notes)
      : pod_(pod), read_(read), volume_(volume), reader_(read, notes) {}

  base::Result<void> add(const VolumeSource& source) {
    switch (source.kind) {
      case VolumeSource::Kind::kConfigMap: return add_object(source, ConfigRef::Kind::kConfigMap);
      case VolumeSource::Kind::kSecret: return add_object(source, ConfigRef::Kind::kSecret);
      case VolumeSource::Kind::kDownwardApi: return add_downward(source);
      case VolumeSource::Kind::kToken: return add_token(source);
    }
    return {};
  }

  /// A path cannot be a file and a directory.
  base::Result<void> check() const {
    for (auto it = files_.begin(); it != files_.end(); ++it) {
      const auto inside = files_.lower_bound(it->first + "/");
      if (inside != files_.end() && inside->first.starts_with(it->first + "/")) {
        return base::fail(base::ErrorKind::kInvalid,
                          fmt::format("\"{}\" is to be a file, and a directory for \"{}\"", it->first, inside->first));
      }
    }
    return {};
  }

  void move_to(std::vector<model::ResolvedFile>& out) {
    for (auto& [path, file] : files_) out.push_back(std::move(file));
  }

  size_t bytes() const { return bytes_; }

 private:
  base::Result<void> put(std::string_view path, std::string_view content, std::optional<int> mode,
                         std::optional<std::int64_t> user = std::nullopt) {
    auto clean = clean_file_path(path);
    if (!clean) return base::fail(std::move(clean.error()));
    bytes_ += content.size();
    if (bytes_ > kFilesLimit) return {};  // it will be refused as a whole
    model::ResolvedFile& file = files_[*clean];
    file.volume = volume_.name;
    file.path = std::move(*clean);
    file.content = content;
    file.mode = mode.value_or(volume_.default_mode) & kModeBits;
    file.user = user;
    return {};
  }

  base::Result<void> add_object(const VolumeSource& source, ConfigRef::Kind kind) {
    const ConfigSource name(kind, source.name);
    const auto object = reader_.find(name, source.optional);
    if (!object) return base::fail(object.error());
    if (*object == nullptr) return {};
    const model::ConfigObject& found = **object;
    if (source.items.empty()) {
      for (const auto* values : {&found.data, &found.binary_data}) {
        for (const auto& [key, value] : *values) {
          if (auto done = put(key, value, std::nullopt); !done) return done;
        }
      }
      return {};
    }
    for (const VolumeItem& item : source.items) {
      const std::string* value = value_of(found, item.key);
      if (value != nullptr) {
        if (auto done = put(item.path, *value, item.mode); !done) return done;
        continue;
      }
      reader_.note_missing_key(name, item.key, source.optional);
      if (source.optional) continue;
      const bool secret = kind == ConfigRef::Kind::kSecret;
      return base::fail(base::ErrorKind::kNotFound,
                        fmt::format("references non-existent {} key: {} ({} \"{}\")", secret ? "secret" : "config",
                                    item.key, secret ? "secret" : "configmap", source.name));
    }
    return {};
  }

  static const std::string* value_of(const model::ConfigObject& object, const std::string& key) {
    for (const auto* values : {&object.data, &object.binary_data}) {
      const auto it = values->find(key);
      if (it != values->end()) return &it->second;
    }
    return nullptr;
  }

  base::Result<void> add_downward(const VolumeSource& source) {
    for (const VolumeItem& item : source.items) {
      auto value =
          item.resource ? resource_value(pod_, read_, *item.resource, {}) : field_value(pod_, read_, item.field);
      if (!value) return base::fail(std::move(value.error()));
      if (auto done = put(item.path, *value, item.mode); !done) return done;
    }
    return {};
  }

  /// Without a token the user keeps it at home: the pod's annotation state.spillway.dev/withheld says so.
  base::Result<void> add_token(const VolumeSource& source) {
    TokenWish wish;
    wish.audience = source.audience;
    wish.expiration = source.expiration;
    const auto it = read_.tokens.find(wish);
    if (it == read_.tokens.end()) return {};
    // Whoever else runs in the pod has no business with it, where it is known whose it is.
    const std::optional<std::int64_t> user = common_user(pod_);
    const bool has_owner = user || (pod_.extras && pod_.extras->fs_group);
    return put(source.path, it->second.token.reveal(), has_owner ? std::optional(kOwnedTokenMode) : std::nullopt, user);
  }

  const model::PodSpec& pod_;
  const Surroundings& read_;
  const model::VolumeSpec& volume_;
  ConfigReader reader_;
  std::map<std::string, model::ResolvedFile> files_;
  size_t bytes_ = 0;
};

std::unexpected<base::Error> mount_failed(const model::VolumeSpec& volume, const base::Error& why) {
  return base::fail(why.kind, fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", volume.name, why.message));
}

}  // namespace

base::Result<std::string> clean_file_path(std::string_view path) {
  const auto refuse = [&](std::string_view why) {
    return base::fail(base::ErrorKind::kInvalid, fmt::format("invalid path \"{}\": {}", path, why));
  };
  if (path.starts_with('/')) return refuse("must be a relative path");
  if (path.size() > kMaxPath) return refuse(fmt::format("must be at most {} characters long", kMaxPath));
  if (path.find('\0') != std::string_view::npos) return refuse("must not contain a zero byte");
  std::string out;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty() || part == ".") continue;
    // A kubelet keeps its own links under names that begin so.
    if (part == ".." || (out.empty() && part.starts_with(".."))) return refuse("must not begin with or contain '..'");
    if (part.size() > kMaxPart) return refuse(fmt::format("no part may be longer than {} characters", kMaxPart));
    if (!out.empty()) out += '/';
    out += part;
  }
  if (out.empty()) return refuse("must not be empty");
  return out;
}

base::Result<ResolvedFiles> resolve_files(const model::PodSpec& pod, const Surroundings& read,
                                          std::vector<Note>& notes) {
  ResolvedFiles out;
  size_t bytes = 0;
  for (const model::VolumeSpec* volume : mounted_volumes(pod)) {
    model::ResolvedVolume& resolved = out.volumes.emplace_back();
    resolved.name = volume->name;
    resolved.kind = volume->kind;
    resolved.size_limit = volume->size_limit;
    VolumeFiles files(pod, read, *volume, notes);
    for (const VolumeSource& source : volume->sources) {
      if (auto done = files.add(source); !done) return mount_failed(*volume, done.error());
    }
    if (auto done = files.check(); !done) return mount_failed(*volume, done.error());
    bytes += files.bytes();
    if (bytes > kFilesLimit) {
      const base::Error large(base::ErrorKind::kInvalid,
                              fmt::format("the files of the pod are larger than {} MiB", kFilesLimit >> 20U));
      return mount_failed(*volume, large);
    }
    files.move_to(out.files);
  }
  return out;
}

base::Result<std::vector<model::ResolvedFile>> token_files(const model::PodSpec& pod, const Surroundings& read) {
  std::vector<model::ResolvedFile> out;
  std::vector<Note> none;
  for (const model::VolumeSpec* volume : mounted_volumes(pod)) {
    VolumeFiles files(pod, read, *volume, none);
    for (const VolumeSource& source : volume->sources) {
      if (source.kind != VolumeSource::Kind::kToken) continue;
      if (auto done = files.add(source); !done) return mount_failed(*volume, done.error());
    }
    files.move_to(out);
  }
  return out;
}

}  // namespace spillway::core
