// Files of volumes, byte for byte, and what cannot become one.
#include "vk-provider/core/files.hpp"

#include <catch2/catch.hpp>

#include "test/support/reference_builder.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::core;
using test::add_files;
using test::config;
using test::item;
using test::secret;
using test::volume_source;
using Source = model::VolumeSource::Kind;

namespace {

struct Case {
  model::PodSpec pod = test::a_pod();
  Surroundings read;
  std::vector<Note> notes;

  base::Result<ResolvedFiles> resolve() {
    notes.clear();
    return resolve_files(pod, read, notes);
  }
  /// path -> content of all files.
  std::map<std::string, std::string> contents() {
    const auto files = resolve();
    REQUIRE(files);
    std::map<std::string, std::string> out;
    for (const model::ResolvedFile& file : files->files) out[file.path] = file.content;
    return out;
  }
};

using Contents = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("a ConfigMap's data and binaryData are files under their keys, byte for byte") {
  Case c;
  add_files(c.pod, "cfg").sources = {volume_source(Source::kConfigMap, "settings")};
  model::ConfigObject object;
  object.data = {{"a.conf", "x = \"$(Y)\"\n\xC3\xA4"}, {"empty", ""}, {"large", std::string(1 << 20, 'x')}};
  object.binary_data = {{"bin", std::string("\x00\xFF\xFE\n", 4)}};
  c.read.config.emplace(config("settings"), object);
  const auto files = c.resolve();
  REQUIRE(files);
  REQUIRE(files->volumes.size() == 1);
  CHECK(files->volumes[0].name == "cfg");
  CHECK(files->volumes[0].kind == model::VolumeSpec::Kind::kFiles);
  REQUIRE(files->files.size() == 4);
  for (const model::ResolvedFile& file : files->files) {
    CHECK(file.volume == "cfg");
    CHECK(file.mode == 0644);
  }
  CHECK(c.contents() == Contents{{"a.conf", object.data["a.conf"]},
                                 {"empty", ""},
                                 {"large", object.data["large"]},
                                 {"bin", object.binary_data["bin"]}});
}

TEST_CASE("items choose keys, paths and modes") {
  Case c;
  model::VolumeSpec& volume = add_files(c.pod, "keys");
  volume.default_mode = 0400;
  volume.sources = {volume_source(Source::kSecret, "tls")};
  volume.sources[0].items = {item("tls.key", "private/./key"), item("tls.crt", "crt")};
  volume.sources[0].items[1].mode = 0444;
  c.read.config = {{secret("tls"), test::holding({{"tls.key", "K"}, {"tls.crt", "C"}, {"other", "O"}})}};
  const auto files = c.resolve();
  REQUIRE(files);
  REQUIRE(files->files.size() == 2);
  CHECK(files->files[0].path == "crt");
  CHECK(files->files[0].mode == 0444);
  CHECK(files->files[1].path == "private/key");
  CHECK(files->files[1].content == "K");
  CHECK(files->files[1].mode == 0400);
}

TEST_CASE("what is missing is named as a kubelet does, with the notes of Virtual Kubelet") {
  struct Row {
    Source kind;
    bool with_key, optional;
    const char* reason;
    const char* error;
  };
  const Row rows[] = {
      {Source::kConfigMap, false, true, "OptionalConfigMapNotFound", ""},
      {Source::kSecret, false, true, "OptionalSecretNotFound", ""},
      {Source::kConfigMap, true, true, "OptionalConfigMapKeyNotFound", ""},
      {Source::kSecret, true, true, "OptionalSecretKeyNotFound", ""},
      {Source::kConfigMap, false, false, "MandatoryConfigMapNotFound", "configmap \"x\" not found"},
      {Source::kSecret, false, false, "MandatorySecretNotFound", "secret \"x\" not found"},
      {Source::kConfigMap, true, false, "MandatoryConfigMapKeyNotFound",
       "references non-existent config key: k (configmap \"x\")"},
      {Source::kSecret, true, false, "MandatorySecretKeyNotFound",
       "references non-existent secret key: k (secret \"x\")"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.reason);
    Case c;
    model::VolumeSource source = volume_source(row.kind, "x");
    source.optional = row.optional;
    source.items = {item("k", "k"), item("there", "there")};
    add_files(c.pod, "v").sources = {source};
    c.read.config.emplace(row.kind == Source::kSecret ? secret("x") : config("x"),
                          row.with_key ? test::holding({{"there", "1"}}) : test::missing("x"));
    const auto files = c.resolve();
    REQUIRE(c.notes.size() == 1);
    CHECK(c.notes[0].reason == row.reason);
    CHECK(files.has_value() == row.optional);
    if (files) CHECK(files->volumes.size() == 1);  // an empty volume is a volume
    if (files) CHECK(files->files.size() == (row.with_key ? 1 : 0));
    if (!files) CHECK(files.error().message == "MountVolume.SetUp failed for volume \"v\" : " + std::string(row.error));
  }
}

TEST_CASE("the downward API in files") {
  Case c;
  model::VolumeSource source = volume_source(Source::kDownwardApi);
  source.items = {item("", "labels"), item("", "name"), item("", "memory")};
  source.items[0].field = "metadata.labels";
  source.items[1].field = "metadata.name";
  source.items[2].resource = model::ResourceRef();
  source.items[2].resource->container = "main";
  source.items[2].resource->resource = "limits.memory";
  source.items[2].resource->divisor = "1Mi";
  add_files(c.pod, "info").sources = {source};
  c.pod.containers.edit()[0].resources.memory_limit = 1 << 30;
  c.read.metadata.labels = {{"b", "2"}, {"a", "\"1\""}};
  CHECK(c.contents() == Contents{{"labels", "a=\"\\\"1\\\"\"\nb=\"2\""}, {"name", "web-0"}, {"memory", "1024"}});
}

TEST_CASE("of two sources that write one path the later wins; a file cannot be a directory") {
  Case c;
  model::VolumeSpec& volume = add_files(c.pod, "all");
  volume.sources = {volume_source(Source::kConfigMap, "one"), volume_source(Source::kSecret, "two")};
  c.read.config = {{config("one"), test::holding({{"a", "1"}, {"b", "1"}})},
                   {secret("two"), test::holding({{"b", "2"}})}};
  CHECK(c.contents() == Contents{{"a", "1"}, {"b", "2"}});

  volume.sources[1].items = {item("b", "a/b")};
  // A key between the two in the order of bytes hides nothing.
  volume.sources[0].items = {item("a", "a"), item("b", "a.b")};
  CHECK(c.resolve().error().message ==
        "MountVolume.SetUp failed for volume \"all\" : \"a\" is to be a file, and a directory for \"a/b\"");
}

TEST_CASE("a path leads nowhere else") {
  CHECK(clean_file_path("a") == "a");
  CHECK(clean_file_path("./a//b/./c/") == "a/b/c");
  CHECK(clean_file_path("a/..b") == "a/..b");
  CHECK(clean_file_path(std::string(255, 'a')) == std::string(255, 'a'));
  for (const std::string& path :
       {std::string(), std::string("."), std::string("/"), std::string("/etc/passwd"), std::string(".."),
        std::string("../x"), std::string("a/../../x"), std::string("a/.."), std::string("..data"),
        std::string("a\0b", 3), std::string(256, 'a'), std::string(5000, '/')}) {
    CAPTURE(path);
    CHECK(clean_file_path(path).error().kind == base::ErrorKind::kInvalid);
  }
  Case c;
  add_files(c.pod, "v").sources = {volume_source(Source::kConfigMap, "x")};
  c.read.config = {{config("x"), test::holding({{"../../etc/passwd", "root"}})}};
  CHECK(c.resolve().error().message.find("must not begin with or contain '..'") != std::string::npos);
}

TEST_CASE("a volume that no container mounts is neither read nor made") {
  Case c;
  add_files(c.pod, "used").sources = {volume_source(Source::kSecret, "x")};
  add_files(c.pod, "idle").sources = {volume_source(Source::kSecret, "y")};
  c.pod.containers.edit()[0].mounts.pop_back();
  model::VolumeSpec scratch;
  scratch.name = "scratch";
  scratch.size_limit = 1 << 20;
  c.pod.extras->volumes.edit().push_back(scratch);
  c.pod.containers.edit()[0].mounts.push_back(test::mount("scratch", "/scratch"));
  CHECK(references(c.pod).config == std::vector{secret("x")});
  c.read.config = {{secret("x"), test::holding({{"k", "v"}})}};
  const auto files = c.resolve();
  REQUIRE(files);
  REQUIRE(files->volumes.size() == 2);
  CHECK(files->volumes[1].name == "scratch");
  CHECK(files->volumes[1].kind == model::VolumeSpec::Kind::kScratch);
  CHECK(files->volumes[1].size_limit == 1 << 20);
}

TEST_CASE("a token is a file only where it may leave the cluster") {
  Case c;
  model::VolumeSource token = volume_source(Source::kToken);
  token.path = "token";
  token.audience = "vault";
  token.expiration = 600s;
  add_files(c.pod, "sa").sources = {token};
  CHECK(references(c.pod).tokens.empty());
  CHECK(c.contents().empty());

  c.pod.annotations["spillway.dev/send-service-account-token"] = "true";
  TokenWish wish;
  wish.audience = "vault";
  wish.expiration = 600s;
  CHECK(references(c.pod).tokens == std::vector{wish});
  c.read.tokens[wish].token = base::Secret("ey.J.x");
  CHECK(c.contents() == Contents{{"token", "ey.J.x"}});
}

TEST_CASE("a token belongs to the user of all containers, or to the pod's group, and to nobody else") {
  Case c;
  model::VolumeSource token = volume_source(Source::kToken);
  token.path = "token";
  add_files(c.pod, "sa").sources = {token, volume_source(Source::kConfigMap, "ca")};
  c.pod.annotations["spillway.dev/send-service-account-token"] = "true";
  c.read.tokens[TokenWish()].token = base::Secret("ey.J.x");
  c.read.config = {{config("ca"), test::holding({{"ca.crt", "x"}})}};
  const auto run_as = [&](model::ContainerSpec& container, std::optional<std::int64_t> user) {
    model::Security security;
    security.user = user;
    security.read_only_root = true;
    container.security = security;
  };
  struct Rights {
    int mode = 0;
    std::optional<std::int64_t> user;
    bool operator==(const Rights&) const = default;
  };
  const auto rights = [&](const std::string& path) {
    const auto files = c.resolve();
    REQUIRE(files);
    const auto it = std::ranges::find(files->files, path, &model::ResolvedFile::path);
    REQUIRE(it != files->files.end());
    return Rights{it->mode, it->user};
  };
  CHECK(rights("token") == Rights{0644, {}});
  run_as(c.pod.containers.edit()[0], 1000);
  CHECK(rights("token") == Rights{0600, 1000});
  CHECK(rights("ca.crt") == Rights{0644, {}});
  REQUIRE(token_files(c.pod, c.read));
  CHECK(token_files(c.pod, c.read)->at(0).user == 1000);
  // An init container of another user, and one whose user is its image's.
  model::ContainerSpec init = c.pod.containers[0];
  c.pod.extras->init_containers.edit() = {init};
  CHECK(rights("token") == Rights{0600, 1000});
  run_as(c.pod.extras->init_containers.edit()[0], 0);
  CHECK(rights("token") == Rights{0644, {}});
  run_as(c.pod.extras->init_containers.edit()[0], {});
  CHECK(rights("token") == Rights{0644, {}});
  // Its bits for the group are the provider's, as those of all files.
  c.pod.extras->fs_group = 2000;
  CHECK(rights("token") == Rights{0600, {}});
}

TEST_CASE("one object mounted again and again is bounded") {
  Case c;
  for (int i = 0; i < 70; ++i) {
    add_files(c.pod, "v" + std::to_string(i)).sources = {volume_source(Source::kConfigMap, "x")};
  }
  c.read.config = {{config("x"), test::holding({{"large", std::string(1 << 20, 'x')}})}};
  CHECK(c.resolve().error().message ==
        "MountVolume.SetUp failed for volume \"v64\" : the files of the pod are larger than 64 MiB");
}
