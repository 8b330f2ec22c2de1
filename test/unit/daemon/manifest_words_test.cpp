// From a manifest to what a provider is told: commands, arguments and variables, word for word. The manifests are those
// of test/data/pods/words.yaml and its neighbours, which manifests_test.cpp judges.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "providers/docker/docker_provider.hpp"
#include "vk-provider/core/resolve.hpp"
#include "vk-provider/daemon/cli_explain.hpp"
#include "vk-provider/kube/pod_codec.hpp"

namespace daemon_ns = spillway::daemon;
using namespace spillway;
using Words = std::vector<std::string>;

namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(std::string(SPILLWAY_SOURCE_DIR) + "/test/data/pods/" + file);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The first container of a manifest's pod, as a provider would get it.
model::ResolvedContainer told(const std::string& file, const std::string& name) {
  const auto manifest = daemon_ns::read_manifest(text_of(file), file);
  REQUIRE(manifest);
  const auto pod = std::ranges::find(manifest->pods, name, [](const auto& p) { return p.object.name; });
  REQUIRE(pod != manifest->pods.end());
  const auto decoded = kube::decode_pod(pod->json, {});
  REQUIRE(decoded);
  core::Surroundings read;
  model::ConfigObject empty;
  for (const core::ConfigSource& source : core::references(*decoded->spec).config) read.config.emplace(source, empty);
  std::vector<core::Note> notes;
  auto resolved = core::resolve_pod(decoded->spec, read, {}, notes);
  if (!resolved) UNSCOPED_INFO(resolved.error().message);
  REQUIRE(resolved);
  return resolved->containers.at(0);
}

std::string variable(const model::ResolvedContainer& container, const std::string& name) {
  const auto it = std::ranges::find(container.env, name, [](const auto& v) { return v.first; });
  REQUIRE(it != container.env.end());
  return it->second;
}

}  // namespace

TEST_CASE("references in a command are expanded inside of words and alone, and a shell's dollar is not ours") {
  const auto leader = told("words.yaml", "leader-of-a-group");
  CHECK(leader.command == Words{"python3", "-m", "engine", "--meet", "g-0.g:20000", "--size", "2"});
  CHECK(leader.args.empty());
  CHECK(variable(leader, "TOKEN") == "$TOKEN");
  const auto pack = told("words.yaml", "dollars-of-a-shell");
  CHECK(pack.command.empty());
  CHECK(pack.args == Words{"--out=/out", "$(OUT)", "$(LATER)"});
  CHECK(variable(pack, "LIBS") == "${LIBS}:/x");
}

TEST_CASE("words are neither split, nor joined, nor read as anything but words") {
  const auto train = told("words.yaml", "words-of-a-trainer");
  CHECK(train.command == Words{"run", "++a.devices=4", "+a.betas=[0.9,0.98]", "~logger", "a.lr=1e-4",
                               "a.name='first try'", "path=/data/x"});
  CHECK(train.pull_policy == model::PullPolicy::kAlways);
  const auto llm = told("words.yaml", "one-word-and-many");
  CHECK(llm.command == Words{"launch"});
  CHECK(llm.args == Words{"start", "--processes", "1", "--cards", "all", "api.py", "--remote"});
  const auto ui = told("words.yaml", "line-in-a-variable");
  CHECK(ui.command.empty());
  CHECK(ui.args.empty());
  CHECK(variable(ui, "FLAGS") == "--serve --model demo/13B --title 'my ui'");
  CHECK(variable(ui, "ARCHS") == "7.5;8.6;8.9");
  CHECK(told("words.yaml", "download-first").args == Words{"cd /m; fetch a.bin ; fetch b.bin ; true"});
  CHECK(told("jobs.yaml", "sleeps").command == Words{"bash", "-c", "sleep infinity\n"});
  CHECK(variable(told("jobs.yaml", "eight-gpus"), "RATE") == "2e-4");
  CHECK(variable(told("servers.yaml", "optional-env-and-named-port"), "EMPTY").empty());
}

TEST_CASE("what is large or long about a pod stays with the pod") {
  std::string text = "kind: Pod\nmetadata:\n  name: " + std::string(253, 'n') +
                     "\n  labels: {l: " + std::string(63, 'v') + "}\n  annotations:\n    steps.example/list: \"" +
                     std::string(36 << 10, 's') + "\"\n";
  for (int i = 0; i < 40; ++i) text += "    note.example/n" + std::to_string(i) + ": \"" + std::to_string(i) + "\"\n";
  text += "spec:\n  containers: [{name: a, image: \"a:1\"}]\n";
  daemon_ns::ExplainBasis basis;
  basis.providers.resize(1);
  basis.providers[0].capabilities = providers::docker::capabilities();
  const auto report = daemon_ns::explain({{"pod.yaml", text}}, basis);
  CHECK(report.exit_code == daemon_ns::kExitDone);

  const auto manifest = daemon_ns::read_manifest(text, "pod.yaml");
  REQUIRE(manifest);
  const auto pod = kube::decode_pod(manifest->pods.at(0).json, {});
  REQUIRE(pod);
  CHECK(pod->spec->annotations.empty());
  CHECK(*core::hostname_of(*pod->spec) == std::string(63, 'n'));
}
