// Environments, words and mounts of containers, as a kubelet makes them.
#include "vk-provider/core/environment.hpp"

#include <catch2/catch.hpp>

#include "test/support/reference_builder.hpp"

using namespace spillway;
using namespace spillway::core;
using test::config;
using test::config_ref;
using test::field;
using test::literal;
using test::missing;
using test::secret;
using Kind = model::ConfigRef::Kind;
using Pairs = std::vector<std::pair<std::string, std::string>>;

namespace {

/// A pod with one container, and what is known around it.
struct Case {
  model::PodSpec pod = test::a_pod();
  Surroundings read;
  std::vector<Note> notes;

  model::ContainerSpec& main() { return pod.containers.edit()[0]; }
  base::Result<model::ResolvedContainer> resolve() {
    notes.clear();
    const auto services = service_variables(read.services);
    return resolve_container({pod, read, services}, pod.containers[0], notes);
  }
  std::string value(const std::string& name) {
    const auto container = resolve();
    REQUIRE(container);
    for (const auto& [key, value] : container->env) {
      if (key == name) return value;
    }
    return "(not set)";
  }
};

}  // namespace

TEST_CASE("$(VAR) is expanded as a kubelet does") {
  const auto lookup = [](std::string_view name) -> std::optional<std::string> {
    if (name == "A") return "1";
    if (name == "EMPTY") return "";
    return std::nullopt;
  };
  const std::pair<const char*, const char*> rows[] = {{"$(A)", "1"},     {"x$(A)y$(A)", "x1y1"},
                                                      {"$$(A)", "$(A)"}, {"$$$(A)", "$1"},
                                                      {"$(B)", "$(B)"},  {"$(EMPTY)", ""},
                                                      {"$(A", "$(A"},    {"$A", "$A"},
                                                      {"$", "$"},        {"a$", "a$"},
                                                      {"$$", "$"},       {"$((A))", "$((A))"},
                                                      {"$(A)$(", "1$("}, {"\n\"'ü$(A)", "\n\"'ü1"}};
  for (const auto& [text, expected] : rows) {
    CAPTURE(text);
    CHECK(expand(text, lookup) == expected);
  }
}

TEST_CASE("envFrom comes first, env wins, later values see earlier ones") {
  Case c;
  model::ConfigRef all = config_ref(Kind::kConfigMap, "settings", "");
  all.prefix = "P_";
  c.main().env_from = {all};
  c.main().env = {literal("P_A", "over $(P_A)"), test::from("TOKEN", config_ref(Kind::kSecret, "keys", "token")),
                  literal("URL", "http://$(TOKEN)@$(P_B)/$(MISSING)")};
  c.main().command = {"run", "$(URL)", "$$(URL)"};
  c.main().args = {"--token=$(TOKEN)", "$TOKEN", "${TOKEN}"};
  c.read.config = {{config("settings"), test::holding({{"A", "a"}, {"B", "b"}})},
                   {secret("keys"), test::holding({{"token", "s3"}})}};
  const auto container = c.resolve();
  REQUIRE(container);
  CHECK(container->env == Pairs{{"P_A", "over a"}, {"P_B", "b"}, {"TOKEN", "s3"}, {"URL", "http://s3@b/$(MISSING)"}});
  CHECK(container->command == std::vector<std::string>{"run", "http://s3@b/$(MISSING)", "$(URL)"});
  CHECK(container->args == std::vector<std::string>{"--token=s3", "$TOKEN", "${TOKEN}"});
  CHECK(c.notes.empty());
}

TEST_CASE("values arrive byte for byte") {
  Case c;
  const std::string odd = "\xC3\xA4\n\t\"'\\ $(X) $$ \xFF\xFE \x01";
  c.main().env_from = {config_ref(Kind::kSecret, "keys", "")};
  c.main().env = {test::from("ONE", config_ref(Kind::kSecret, "keys", "odd"))};
  c.read.config = {
      {secret("keys"), test::holding({{"odd", odd}, {"EMPTY", ""}, {"LARGE", std::string(1 << 20, 'x')}})}};
  CHECK(c.value("odd") == odd);
  CHECK(c.value("ONE") == odd);
  CHECK(c.value("EMPTY").empty());
  CHECK(c.value("LARGE").size() == 1 << 20);
}

TEST_CASE("a mandatory object or key that is missing is named; an optional one is left out") {
  struct Row {
    Kind kind;
    const char* key;  // empty: envFrom
    bool optional;
    bool exists;
    const char* reason;
    const char* note;
    const char* error;
  };
  const Row rows[] = {
      {Kind::kConfigMap, "", true, false, "OptionalConfigMapNotFound", "configmap \"x\" not found", ""},
      {Kind::kSecret, "", true, false, "OptionalSecretNotFound", "secret \"x\" not found", ""},
      {Kind::kConfigMap, "k", true, false, "OptionalConfigMapNotFound", "configmap \"x\" not found", ""},
      {Kind::kSecret, "k", true, false, "OptionalSecretNotFound", "secret \"x\" not found", ""},
      {Kind::kConfigMap, "k", true, true, "OptionalConfigMapKeyNotFound", "key \"k\" does not exist in configmap \"x\"",
       ""},
      {Kind::kSecret, "k", true, true, "OptionalSecretKeyNotFound", "key \"k\" does not exist in secret \"x\"", ""},
      {Kind::kConfigMap, "", false, false, "MandatoryConfigMapNotFound", "configmap \"x\" not found",
       "configmap \"x\" not found"},
      {Kind::kSecret, "", false, false, "MandatorySecretNotFound", "secret \"x\" not found", "secret \"x\" not found"},
      {Kind::kConfigMap, "k", false, true, "MandatoryConfigMapKeyNotFound",
       "key \"k\" does not exist in configmap \"x\"", "couldn't find key k in ConfigMap team-a/x"},
      {Kind::kSecret, "k", false, true, "MandatorySecretKeyNotFound", "key \"k\" does not exist in secret \"x\"",
       "couldn't find key k in Secret team-a/x"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.reason, row.key);
    Case c;
    const model::ConfigRef ref = config_ref(row.kind, "x", row.key, row.optional);
    if (*row.key == '\0') {
      c.main().env_from = {ref};
    } else {
      c.main().env = {test::from("V", ref)};
    }
    c.read.config.emplace(ConfigSource(row.kind, "x"), row.exists ? test::holding({{"other", "1"}}) : missing("x"));
    const auto container = c.resolve();
    CHECK(c.notes == std::vector{Note(row.reason, row.note)});
    CHECK(container.has_value() == row.optional);
    if (container) CHECK(container->env.empty());
    if (!container) CHECK(container.error().message == row.error);
  }
}

TEST_CASE("what could not be read stops a pod even where it is optional") {
  for (const bool optional : {false, true}) {
    Case c;
    c.main().env = {test::from("V", config_ref(Kind::kSecret, "x", "k", optional))};
    c.read.config.emplace(secret("x"), base::fail(base::ErrorKind::kPermission, "secrets \"x\" is forbidden"));
    const auto container = c.resolve();
    REQUIRE_FALSE(container);
    CHECK(container.error().kind == base::ErrorKind::kPermission);
    CHECK(container.error().message == "failed to read secret \"x\": secrets \"x\" is forbidden");
    REQUIRE(c.notes.size() == 1);
    CHECK(c.notes[0].reason == (optional ? "FailedToReadOptionalSecret" : "FailedToReadMandatorySecret"));
  }
}

TEST_CASE("binaryData is not for environments, and keys that are no names are told") {
  Case c;
  model::ConfigRef all = config_ref(Kind::kConfigMap, "settings", "");
  all.prefix = "x.";
  c.main().env_from = {all};
  model::ConfigObject object = *test::holding({{"a.b-c", "1"}, {"p=q", "2"}, {"\xC3\xA4", "3"}});
  object.binary_data = {{"BIN", "4"}};
  c.read.config.emplace(config("settings"), object);
  const auto container = c.resolve();
  REQUIRE(container);
  CHECK(container->env == Pairs{{"x.a.b-c", "1"}});
  CHECK(c.notes == std::vector{Note("InvalidEnvironmentVariableNames",
                                    "Keys [x.p=q, x.\xC3\xA4] from the EnvFrom configMap team-a/settings were skipped "
                                    "since they are considered invalid environment variable names.")});
}

TEST_CASE("a later source of envFrom wins, and env wins over both") {
  Case c;
  c.main().env_from = {config_ref(Kind::kConfigMap, "one", ""), config_ref(Kind::kSecret, "two", "")};
  c.main().env = {literal("C", "env")};
  c.read.config = {{config("one"), test::holding({{"A", "1"}, {"B", "1"}, {"C", "1"}})},
                   {secret("two"), test::holding({{"B", "2"}, {"C", "2"}})}};
  CHECK(c.value("A") == "1");
  CHECK(c.value("B") == "2");
  CHECK(c.value("C") == "env");
}

TEST_CASE("fields and resources of the pod, and what refers to them") {
  Case c;
  c.pod.service_account = "trainer";
  c.read.node_ip = "192.0.2.10";
  c.read.metadata.labels = {{"apps.kubernetes.io/pod-index", "3"}};
  c.main().resources.memory_limit = (1LL << 30) + 1;
  model::EnvVar memory;
  memory.name = "MEMORY";
  memory.resource = model::ResourceRef();
  memory.resource->resource = "limits.memory";
  memory.resource->divisor = "1Mi";
  c.main().env = {field("NAME", "metadata.name"),
                  field("NS", "metadata.namespace"),
                  field("UID", "metadata.uid"),
                  field("NODE", "spec.nodeName"),
                  field("SA", "spec.serviceAccountName"),
                  field("HOST", "status.hostIP"),
                  field("RANK", "metadata.labels['apps.kubernetes.io/pod-index']"),
                  field("NONE", "metadata.annotations['nobody/set']"),
                  memory,
                  literal("ALL", "$(NAME)-$(RANK)-$(MEMORY)")};
  const auto container = c.resolve();
  REQUIRE(container);
  CHECK(container->env == Pairs{{"NAME", "web-0"},
                                {"NS", "team-a"},
                                {"UID", test::kUid},
                                {"NODE", "burst"},
                                {"SA", "trainer"},
                                {"HOST", "192.0.2.10"},
                                {"RANK", "3"},
                                {"NONE", ""},
                                {"MEMORY", "1025"},
                                {"ALL", "web-0-3-1025"}});
  c.main().env = {field("X", "status.phase")};
  CHECK(c.resolve().error().message == "unsupported fieldPath: status.phase");
}

TEST_CASE("variables of services come last, are seen by references, and never win") {
  Case c;
  model::Service service;
  service.name = "my-db";
  service.cluster_ip = "10.0.0.7";
  service.ports.emplace_back().port = 5432;
  c.read.services = {service};
  c.main().env = {literal("MY_DB_PORT", "mine"), literal("URL", "db://$(MY_DB_SERVICE_HOST):$(MY_DB_SERVICE_PORT)")};
  const auto container = c.resolve();
  REQUIRE(container);
  CHECK(container->env == Pairs{{"MY_DB_PORT", "mine"},
                                {"URL", "db://10.0.0.7:5432"},
                                {"MY_DB_PORT_5432_TCP", "tcp://10.0.0.7:5432"},
                                {"MY_DB_PORT_5432_TCP_ADDR", "10.0.0.7"},
                                {"MY_DB_PORT_5432_TCP_PORT", "5432"},
                                {"MY_DB_PORT_5432_TCP_PROTO", "tcp"},
                                {"MY_DB_SERVICE_HOST", "10.0.0.7"},
                                {"MY_DB_SERVICE_PORT", "5432"}});
}

TEST_CASE("references that double and double end at the limit, not with the memory") {
  Case c;
  c.main().env = {literal("V0", "0123456789abcdef")};
  for (int i = 1; i < 60; ++i) {
    const std::string before = "$(V" + std::to_string(i - 1) + ")";
    c.main().env.push_back(literal("V" + std::to_string(i), before + before));
  }
  CHECK(c.resolve().error().message == "the environment of container main is larger than 8 MiB");
  c.main().env.resize(16);
  c.main().args.assign(40, "$(V15)");
  CHECK(c.resolve().error().message == "command and args are larger than 8 MiB");
}

TEST_CASE("a mount's subPathExpr is expanded from the container's environment") {
  Case c;
  model::VolumeSpec files;
  files.kind = model::VolumeSpec::Kind::kFiles;
  files.name = "cfg";
  c.pod.extras = model::PodExtras();
  c.pod.extras->volumes.edit() = {files};
  model::VolumeMount logs = test::mount("scratch", "/logs");
  logs.sub_path = "$(POD)/out";
  logs.sub_path_is_expression = true;
  model::VolumeMount cfg = test::mount("cfg", "/etc/cfg");
  cfg.sub_path = "$(POD)";
  c.main().mounts = {logs, cfg};
  c.main().env = {field("POD", "metadata.name")};
  auto container = c.resolve();
  REQUIRE(container);
  REQUIRE(container->mounts.size() == 2);
  CHECK(container->mounts[0].sub_path == "web-0/out");
  CHECK_FALSE(container->mounts[0].read_only);
  CHECK(container->mounts[1].sub_path == "$(POD)");
  CHECK(container->mounts[1].read_only);

  const auto error_with = [&](const char* value) {
    c.main().env = {literal("POD", value)};
    return c.resolve().error().message;
  };
  CHECK(error_with("/etc") == "error SubPath `/etc/out` must not be an absolute path");
  CHECK(error_with("..") == "unable to provision SubPath `../out`: must not contain '..'");
  CHECK(error_with("a/../..") == "unable to provision SubPath `a/../../out`: must not contain '..'");
  c.main().env = {};
  CHECK(c.resolve().error().message == "missing value for \"POD\" in subPathExpr of volume mount /logs");
}
