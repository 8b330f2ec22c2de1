// Volumes, files, names and termination messages: what is asked of an engine, and that nothing is left behind.
#include "test/unit/providers/docker/docker_rig.hpp"

using namespace std::chrono_literals;
using namespace spillway;
using namespace spillway::test;
using base::ErrorKind;
using model::ContainerState;
using model::InstanceState;
using nlohmann::json;
using provider::ContainerAction;
using Kind = model::VolumeSpec::Kind;

namespace {

model::ResolvedVolume volume(const std::string& name, Kind kind) {
  model::ResolvedVolume out;
  out.name = name;
  out.kind = kind;
  return out;
}

model::ResolvedMount mount(const std::string& name, const std::string& path, const std::string& sub_path = "") {
  model::ResolvedMount out;
  out.volume = name;
  out.path = path;
  out.sub_path = sub_path;
  return out;
}

model::ResolvedFile file(const std::string& name, const std::string& path, const std::string& content,
                         int mode = 0644) {
  model::ResolvedFile out;
  out.volume = name;
  out.path = path;
  out.content = content;
  out.mode = mode;
  return out;
}

template <class Change>
void change_extras(model::ResolvedPod& pod, Change change) {
  auto spec = std::make_shared<model::PodSpec>(*pod.spec);
  model::PodExtras extras = spec->extras ? *spec->extras : model::PodExtras();
  change(extras);
  spec->extras = extras;
  pod.spec = std::move(spec);
}

/// One volume of each kind, and a termination message.
model::ResolvedPod pod_with_volumes() {
  model::ResolvedPod pod = DockerRig::pod(model::RestartPolicy::kOnFailure);
  pod.volumes = {volume("cfg", Kind::kFiles), volume("data", Kind::kScratch), volume("shm", Kind::kMemory)};
  pod.volumes[2].size_limit = 1 << 20;
  pod.files = {file("cfg", "a.conf", "one"), file("cfg", "deep/er/key", std::string("\0\xff", 2), 0400)};
  model::ResolvedContainer& main = pod.containers[0];
  main.mounts = {mount("cfg", "/etc/cfg"), mount("cfg", "/etc/a.conf", "a.conf"), mount("data", "/data"),
                 mount("shm", "/dev/shm")};
  main.termination_message_path = "/dev/termination-log";
  return pod;
}

std::string volume_of(DockerRig& rig, const std::string& name) {
  for (const auto& [id, v] : rig.engine().volumes) {
    if (v.labels.value("spillway.dev/volume", "") == name) return id;
  }
  return "";
}

}  // namespace

TEST_CASE("docker volumes: files and scratch space lie with the keeper, memory with the sandbox") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_with_volumes()));
  rig.settle();
  CHECK(rig.state("spw-a") == InstanceState::kRunning);
  REQUIRE(rig.engine().volumes.size() == 4);
  const auto& keeper = rig.engine().container("spw-a.volumes");
  CHECK(keeper.state == "created");
  CHECK(keeper.body["HostConfig"]["NetworkMode"] == "none");
  for (const auto& [id, v] : rig.engine().volumes) CHECK(v.labels.value("spillway.dev/tag", "") == "spw-a");
  const auto& memory = rig.engine().volumes.at(volume_of(rig, "shm"));
  CHECK(memory.owner == rig.engine().container("spw-a").id);
  CHECK(memory.options == json({{"type", "tmpfs"}, {"device", "tmpfs"}, {"o", "mode=0777,size=1048576"}}));
  CHECK(rig.engine().volumes.at(volume_of(rig, "data")).owner == keeper.id);

  const json mounts = rig.engine().container("spw-a-main").body["HostConfig"]["Mounts"];
  const json no_copy = {{"NoCopy", true}};
  REQUIRE(mounts.size() == 5);
  CHECK(mounts[0] == json({{"Type", "volume"},
                           {"Source", volume_of(rig, "cfg")},
                           {"Target", "/etc/cfg"},
                           {"ReadOnly", true},
                           {"VolumeOptions", no_copy}}));
  CHECK(mounts[1] == json({{"Type", "bind"},
                           {"Source", "/engine/volumes/" + volume_of(rig, "cfg") + "/_data/a.conf"},
                           {"Target", "/etc/a.conf"},
                           {"ReadOnly", true}}));
  CHECK(mounts[2] == json({{"Type", "volume"},
                           {"Source", volume_of(rig, "data")},
                           {"Target", "/data"},
                           {"ReadOnly", false},
                           {"VolumeOptions", no_copy}}));
  CHECK(mounts[3]["Source"] == volume_of(rig, "shm"));
  CHECK(mounts[4]["Source"].get<std::string>().ends_with("/_data/main"));
  CHECK(mounts[4]["Target"] == "/dev/termination-log");
}

TEST_CASE("docker volumes: files have their bytes and modes, and an fsGroup's owner and bits") {
  DockerRig rig;
  model::ResolvedPod pod = pod_with_volumes();
  const auto at = [&](const std::string& path) { return rig.engine().files.at("spw-a.volumes:" + path); };
  SECTION("none") {
    REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
    rig.settle();
    CHECK(at("/volumes/cfg/").mode == 0755);
    CHECK(at("/volumes/cfg/a.conf").content == "one");
    CHECK(at("/volumes/cfg/a.conf").mode == 0644);
    CHECK(at("/volumes/cfg/deep/").mode == 0755);
    CHECK(at("/volumes/cfg/deep/er/").type == '5');
    CHECK(at("/volumes/cfg/deep/er/key").content == std::string("\0\xff", 2));
    CHECK(at("/volumes/cfg/deep/er/key").mode == 0400);
    CHECK(at("/volumes/data/").mode == 0777);
    CHECK(at("/messages/main").mode == 0666);
  }
  SECTION("of a group") {
    change_extras(pod, [](model::PodExtras& extras) { extras.fs_group = 2000; });
    pod.files.push_back(file("cfg", "token", "t", 0600));
    pod.files.back().user = 1000;
    REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
    rig.settle();
    CHECK(at("/volumes/cfg/token").mode == 0640);
    CHECK(at("/volumes/cfg/token").uid == 1000);
    CHECK(at("/volumes/cfg/token").gid == 2000);
    CHECK(at("/volumes/cfg/a.conf").uid == 0);
    CHECK(at("/volumes/cfg/").mode == 02755);
    CHECK(at("/volumes/cfg/").gid == 2000);
    CHECK(at("/volumes/cfg/deep/er/key").mode == 0440);
    CHECK(at("/volumes/cfg/deep/er/key").gid == 2000);
    CHECK(at("/volumes/data/").mode == 02777);
    CHECK(rig.engine().volumes.at(volume_of(rig, "shm")).options["o"] == "mode=02777,gid=2000,size=1048576");
    CHECK(rig.engine().container("spw-a-main").body["HostConfig"]["GroupAdd"] == json({"2000"}));
  }
}

TEST_CASE("docker volumes: files of a running instance are replaced, also by a later process") {
  DockerRig rig;
  model::ResolvedPod pod = pod_with_volumes();
  change_extras(pod, [](model::PodExtras& extras) { extras.fs_group = 2000; });
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  rig.restart_daemon();
  const auto put = [&](const std::string& tag, const model::ResolvedFile& f) {
    return rig.reactor.run(rig.provider().put_files(DockerRig::ref(tag), {f}, rig.soon()));
  };
  REQUIRE(put("spw-a", file("cfg", "token", "new", 0600)));
  const auto& token = rig.engine().files.at("spw-a.volumes:/volumes/cfg/token");
  CHECK(token.content == "new");
  CHECK(token.mode == 0640);
  CHECK(token.gid == 2000);
  CHECK(put("spw-a", file("nope", "token", "new")).error().kind == ErrorKind::kInvalid);
  CHECK(put("spw-a", file("cfg", "../data/x", "new")).error().kind == ErrorKind::kInvalid);
  CHECK(put("spw-b", file("cfg", "token", "new")).error().kind == ErrorKind::kNotFound);
}

TEST_CASE("docker volumes: a pod without any has no keeper") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a")));
  rig.settle();
  CHECK(rig.engine().size() == 2);
  CHECK(rig.engine().volumes.empty());
}

TEST_CASE("docker volumes: a part of a shared volume is mounted, and made if nobody has made it before the start") {
  DockerRig rig;
  rig.engine().newest_api = 45;
  model::ResolvedPod pod = DockerRig::pod_with_init(model::RestartPolicy::kNever);
  pod.volumes = {volume("data", Kind::kScratch)};
  pod.containers[0].mounts = {mount("data", "/work", "a/b")};
  pod.containers[2].mounts = {mount("data", "/etc/app.conf", "app.conf"), mount("data", "/out", "a/c")};
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  CHECK(rig.engine().container("spw-a-setup").state == "running");
  const json mounts = rig.engine().container("spw-a-setup").body["HostConfig"]["Mounts"];
  CHECK(mounts[0] == json({{"Type", "volume"},
                           {"Source", volume_of(rig, "data")},
                           {"Target", "/work"},
                           {"ReadOnly", false},
                           {"VolumeOptions", {{"NoCopy", true}, {"Subpath", "a/b"}}}}));
  auto& files = rig.engine().files;
  CHECK(files.at("spw-a.volumes:/volumes/data/a/b/").mode == 0777);
  CHECK_FALSE(files.contains("spw-a.volumes:/volumes/data/a/c/"));
  // The init container writes a file, and takes a folder's rights away.
  files["spw-a.volumes:/volumes/data/app.conf"].content = "made by setup";
  files.at("spw-a.volumes:/volumes/data/a/").mode = 0700;
  rig.engine().exit("spw-a-setup", 0);
  rig.restart_daemon();
  REQUIRE(rig.control("spw-a", ContainerAction::kStart, "main"));
  CHECK(rig.engine().container("spw-a-main").state == "running");
  CHECK(files.at("spw-a.volumes:/volumes/data/app.conf").content == "made by setup");
  CHECK(files.at("spw-a.volumes:/volumes/data/a/").mode == 0700);
  CHECK(files.at("spw-a.volumes:/volumes/data/a/c/").mode == 0777);
}

TEST_CASE("docker volumes: a pod above its limits on disk space is told to go, in a kubelet's words") {
  DockerRig rig;
  model::ResolvedPod pod = pod_with_volumes();
  pod.volumes[1].size_limit = 1 << 20;
  pod.containers[0].resources.ephemeral_limit = 1 << 21;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  const json volume_labels = rig.engine().volumes.at(volume_of(rig, "data")).labels;
  CHECK(volume_labels["spillway.dev/size-limit"] == "1048576");
  const json container_labels = rig.engine().container("spw-a-main").body["Labels"];
  CHECK(container_labels["spillway.dev/disk-limit"] == "2097152");
  const auto usage = [&](std::int64_t in_volume, std::int64_t in_container) {
    return json{{"Volumes", {{{"Labels", volume_labels}, {"UsageData", {{"Size", in_volume}}}}}},
                {"Containers", {{{"Labels", container_labels}, {"SizeRw", in_container}}}}};
  };
  const auto evicted = [&] {
    REQUIRE(rig.list());
    rig.settle();
    return rig.list()->instances.at(0).evicted.str();
  };
  rig.engine().disk_usage = usage(1 << 20, 0);
  CHECK(evicted().empty());
  CHECK(rig.engine().count("GET /v1.41/system/df") == 1);
  SECTION("it is measured once a minute") {
    rig.engine().disk_usage = usage((1 << 20) + 1, 0);
    rig.pass(59s);
    CHECK(evicted().empty());
    rig.pass(2s);
    CHECK(evicted() == "Usage of EmptyDir volume \"data\" exceeds the limit \"1Mi\".");
    CHECK(rig.engine().count("GET /v1.41/system/df") == 2);
  }
  SECTION("what the engine cannot tell is asked for again") {
    rig.engine().disk_usage = json();
    rig.pass(61s);
    CHECK(evicted().empty());
    rig.engine().disk_usage = usage(0, (1 << 21) + 1);
    rig.pass(61s);
    CHECK(evicted() == "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi.");
  }
}

TEST_CASE("docker volumes: without a limit nobody measures") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_with_volumes()));
  rig.settle();
  REQUIRE(rig.list());
  rig.pass(5min);
  REQUIRE(rig.list());
  rig.settle();
  CHECK(rig.engine().count("/system/df") == 0);
}

TEST_CASE("docker volumes: what an engine cannot do is refused by field before anything is made") {
  DockerRig rig;
  model::ResolvedPod pod = DockerRig::pod_with_init();
  pod.volumes = {volume("data", Kind::kScratch), volume("cfg", Kind::kFiles)};
  std::string path;
  ErrorKind kind = ErrorKind::kUnsupported;
  SECTION("a part of a shared volume") {
    pod.containers[2].mounts = {mount("data", "/a"), mount("data", "/b", "sub")};
    path = "spec.containers[0].volumeMounts[1].subPath";
  }
  SECTION("a part of memory") {
    rig.engine().newest_api = 45;
    pod.volumes[0].kind = Kind::kMemory;
    pod.containers[2].mounts = {mount("data", "/b", "sub")};
    path = "spec.containers[0].volumeMounts[0].subPath";
  }
  SECTION("of an init container") {
    pod.containers[1].mounts = {mount("data", "/b", "sub")};
    path = "spec.initContainers[1].volumeMounts[0].subPath";
  }
  SECTION("a part that leads out of its volume") {
    pod.containers[2].mounts = {mount("cfg", "/b", "a/../../../etc")};
    path = "spec.containers[0].volumeMounts[0].subPath";
    kind = ErrorKind::kInvalid;
  }
  SECTION("a volume that is not there") {
    pod.containers[2].mounts = {mount("other", "/b")};
    path = "spec.containers[0].volumeMounts[0].name";
    kind = ErrorKind::kInvalid;
  }
  SECTION("name servers beside the machine's") {
    change_extras(pod, [](model::PodExtras& extras) {
      model::DnsConfig dns;
      dns.nameservers = {"192.0.2.1"};
      extras.dns = dns;
    });
    path = "spec.dnsConfig.nameservers";
  }
  const auto refused = rig.create(DockerRig::placement("spw-a"), pod);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == kind);
  CHECK(says(refused.error().message, path));
  CHECK(rig.engine().size() == 0);
}

TEST_CASE("docker volumes: a process that dies between any two steps leaves nothing that the next does not find") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-z")));  // loads the image of the sandbox
  rig.settle();
  rig.engine().requests.clear();
  REQUIRE(rig.create(DockerRig::placement("spw-y"), pod_with_volumes()));
  rig.settle();
  const size_t steps = rig.engine().requests.size();
  REQUIRE(rig.terminate("spw-y"));
  rig.settle();
  const bool carry_on = GENERATE(true, false);
  for (size_t last = 1; last <= steps; ++last) {
    INFO("died after request " << last << " of " << steps << ", carried on: " << carry_on);
    size_t seen = 0;
    rig.engine().before = [&](const net::HttpRequest&) -> std::optional<DockerEngineModel::Response> {
      if (++seen <= last) return std::nullopt;
      return base::fail(ErrorKind::kUnavailable, "dead");
    };
    static_cast<void>(rig.create(DockerRig::placement("spw-a"), pod_with_volumes()));
    rig.settle();
    rig.restart_daemon();
    rig.engine().before = nullptr;
    if (carry_on) {
      REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_with_volumes()));
      rig.settle();
      CHECK(rig.state("spw-a") == InstanceState::kRunning);
      CHECK(rig.engine().files.at("spw-a.volumes:/volumes/cfg/a.conf").content == "one");
      CHECK(rig.engine().volumes.size() == 4);
    }
    static_cast<void>(rig.terminate("spw-a"));
    rig.settle();
    CHECK(rig.engine().volumes.empty());
    CHECK(rig.engine().size() == 2);  // of spw-z
    CHECK(rig.get("spw-a").error().kind == ErrorKind::kNotFound);
    rig.engine().files.clear();
  }
}

TEST_CASE("docker volumes: an instance of which only volumes are left is found and ended") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_with_volumes()));
  rig.settle();
  for (const char* const name : {"spw-a", "spw-a.volumes", "spw-a-main"}) rig.engine().remove(name);
  const auto owned = rig.list();
  REQUIRE(owned);
  REQUIRE(owned->instances.size() == 1);
  CHECK(owned->instances[0].tag.str() == "spw-a");
  CHECK(owned->instances[0].state == InstanceState::kFailed);
  CHECK(rig.get("spw-a")->state == InstanceState::kFailed);
  REQUIRE(rig.terminate("spw-a"));
  rig.settle();
  CHECK(rig.engine().volumes.empty());
  CHECK(rig.list()->instances.empty());
  CHECK(rig.terminate("spw-a").error().kind == ErrorKind::kNotFound);
}

TEST_CASE("docker volumes: a listing without the containers is not believed while their volumes stand") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_with_volumes()));
  rig.settle();
  REQUIRE(rig.list()->instances.at(0).state == InstanceState::kRunning);
  rig.engine().before = [](const net::HttpRequest& request) -> std::optional<DockerEngineModel::Response> {
    const bool of_all = request.target.contains("/containers/json") && !request.target.contains("spw-a");
    if (!of_all) return std::nullopt;
    return DockerEngineModel::answer(200, nlohmann::json::array());
  };
  const auto owned = rig.list();
  REQUIRE(owned);
  REQUIRE(owned->instances.size() == 1);
  CHECK(owned->instances[0].state == InstanceState::kRunning);
}

TEST_CASE("docker volumes: the termination message is that of the last run") {
  DockerRig rig;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod_with_volumes()));
  rig.settle();
  auto& message = rig.engine().files.at("spw-a.volumes:/messages/main").content;
  message = std::string(5000, 'x') + "end";
  rig.engine().exit("spw-a-main", 3);
  const auto ended = rig.get("spw-a");
  REQUIRE(ended);
  CHECK(ended->containers[0].termination_message.size() == 4096);
  CHECK(ended->containers[0].termination_message.str().ends_with("xend"));
  REQUIRE(rig.control("spw-a", ContainerAction::kStart));
  CHECK(rig.get("spw-a")->containers[0].termination_message.empty());
  CHECK(rig.engine().files.at("spw-a.volumes:/messages/main").content.empty());
  rig.engine().exit("spw-a-main", 3);
  CHECK(rig.get("spw-a")->containers[0].termination_message.empty());
}

TEST_CASE("docker volumes: without a message the end of the log stands for it, after a failure") {
  DockerRig rig;
  model::ResolvedPod pod = pod_with_volumes();
  pod.containers[0].termination_message_from_logs = true;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  const std::string line = std::string(3000, 'y') + "panic\n";
  const std::string head{
      '\2', 0, 0, 0, 0, 0, static_cast<char>(line.size() >> 8), static_cast<char>(line.size() & 255)};
  rig.engine().logs["spw-a-main"] = head + line;
  const int code = GENERATE(0, 1);
  rig.engine().exit("spw-a-main", code);
  const std::string message = rig.get("spw-a")->containers[0].termination_message;
  CHECK(message.size() == (code == 0 ? 0 : 2048));
  CHECK(message.ends_with(code == 0 ? "" : "ypanic\n"));
  CHECK(rig.engine().count("tail=80") == static_cast<size_t>(code));
}

TEST_CASE("docker volumes: a container that must not be root is not made") {
  DockerRig rig;
  model::ResolvedPod pod = DockerRig::pod();
  model::Security security;
  security.non_root = true;
  pod.containers[0].security = security;
  rig.engine().image_users["busybox:test"] = GENERATE(as<std::string>(), "", "1000");
  const bool may = !rig.engine().image_users["busybox:test"].empty();
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  const auto instance = rig.get("spw-a");
  REQUIRE(instance);
  CHECK(instance->state == (may ? InstanceState::kRunning : InstanceState::kFailed));
  CHECK(rig.engine().has("spw-a-main") == may);
  if (!may) {
    CHECK(instance->containers[0].reason == "CreateContainerConfigError");
    CHECK(says(instance->containers[0].message, "container has runAsNonRoot and image will run as root (pod: \""));
  }
}

TEST_CASE("docker volumes: names, processes, signals and terminals") {
  DockerRig rig;
  model::ResolvedPod pod = DockerRig::pod();
  pod.hostname = "web-7";
  change_extras(pod, [](model::PodExtras& extras) {
    model::HostAlias alias;
    alias.ip = "192.0.2.7";
    alias.hostnames = {"db", "db.local"};
    extras.host_aliases = {alias};
    model::DnsConfig dns;
    dns.alone = true;
    dns.nameservers = {"192.0.2.1"};
    dns.searches = {"team.local"};
    dns.options = {"ndots:2"};
    extras.dns = dns;
    extras.share_processes = true;
  });
  model::ResolvedContainer& main = pod.containers[0];
  main.stop_signal = "SIGUSR1";
  main.stdin_open = main.stdin_once = main.tty = true;
  REQUIRE(rig.create(DockerRig::placement("spw-a"), pod));
  rig.settle();
  const auto& sandbox = rig.engine().container("spw-a");
  CHECK(sandbox.body["Hostname"] == "web-7");
  CHECK(sandbox.body["HostConfig"]["ExtraHosts"] == json({"db:192.0.2.7", "db.local:192.0.2.7"}));
  CHECK(sandbox.body["HostConfig"]["Dns"] == json({"192.0.2.1"}));
  CHECK(sandbox.body["HostConfig"]["DnsSearch"] == json({"team.local"}));
  CHECK(sandbox.body["HostConfig"]["DnsOptions"] == json({"ndots:2"}));
  const json body = rig.engine().container("spw-a-main").body;
  CHECK(body["HostConfig"]["PidMode"] == "container:" + sandbox.id);
  CHECK(body["StopSignal"] == "SIGUSR1");
  CHECK(body["OpenStdin"] == true);
  CHECK(body["StdinOnce"] == true);
  CHECK(body["Tty"] == true);
}
