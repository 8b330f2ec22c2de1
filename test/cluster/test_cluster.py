"""Proves what other tests rely on: clusters, engines and gates start, work, and leave nothing."""

from __future__ import annotations

import http.client
import json
import pathlib
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from test.cluster import gate as gates
from test.cluster import processes, suites
from test.cluster.cluster import REPOSITORY, Cluster
from test.cluster.dockerd import Engine, UnixConnection
from test.cluster.gate import Gate, matching
from test.cluster.http1 import Request, parse_request

START_LIMIT = 15.0


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if processes.start_time(pid) is not None]


def descendants(pid: int) -> list[int]:
    """All processes below one, by their parents' ids."""
    children: dict[int, list[int]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


# The control plane


def test_a_cluster_starts_in_time_and_leaves_nothing(tmp_path: pathlib.Path) -> None:
    begin = time.monotonic()
    cluster = Cluster().start(tmp_path / "c")
    spent = time.monotonic() - begin
    pids = list(cluster.pids.values())
    assert len(alive(pids)) == 4
    assert json.loads(cluster.kubectl("version", "-o", "json"))["serverVersion"]["minor"] == "36"
    cluster.stop()
    assert alive(pids) == []
    assert not (tmp_path / "c").exists()
    assert spent < START_LIMIT


def test_two_clusters_stand_side_by_side(
    cluster: Cluster, new_cluster: Callable[..., Cluster]
) -> None:
    other = new_cluster()
    for one, name in ((cluster, "mine"), (other, "theirs")):
        body = {"metadata": {"name": name}, "data": {"of": name}}
        assert one.api("POST", "/api/v1/namespaces/default/configmaps", body)[0] == 201
    assert cluster.api("GET", "/api/v1/namespaces/default/configmaps/theirs")[0] == 404
    assert other.get("/api/v1/namespaces/default/configmaps/theirs")["data"] == {"of": "theirs"}
    cluster.api("DELETE", "/api/v1/namespaces/default/configmaps/mine")


def test_the_api_server_restarts_on_its_port_and_keeps_objects(
    new_cluster: Callable[..., Cluster],
) -> None:
    cluster = new_cluster()
    server, pid = cluster.server, cluster.apiserver.pid

    def create(name: str) -> int:
        path = "/api/v1/namespaces/default/configmaps"
        return cluster.api("POST", path, {"metadata": {"name": name}})[0]

    # A thread of its own keeps a connection that ends while it does nothing.
    with ThreadPoolExecutor(max_workers=1) as other:
        assert other.submit(create, "kept").result() == 201
        cluster.restart_apiserver()
        assert other.submit(create, "another").result() == 201
    assert cluster.server == server
    assert cluster.apiserver.pid != pid
    assert cluster.get("/api/v1/namespaces/default/configmaps/kept")["metadata"]["name"] == "kept"


def test_a_pod_is_bound_by_the_real_scheduler(cluster: Cluster, namespace: str) -> None:
    node = {
        "metadata": {"name": namespace},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    assert cluster.api("POST", "/api/v1/nodes", node)[0] == 201
    status = json.dumps({"status": node["status"]}).encode()
    merge = "application/merge-patch+json"
    cluster.api("PATCH", f"/api/v1/nodes/{namespace}/status", status, content_type=merge)
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "tolerations": [{"operator": "Exists"}],
            "nodeSelector": {"kubernetes.io/hostname": namespace},
            "containers": [{"name": "c", "image": "busybox:test"}],
        },
    }
    label = json.dumps({"metadata": {"labels": {"kubernetes.io/hostname": namespace}}}).encode()
    cluster.api("PATCH", f"/api/v1/nodes/{namespace}", label, content_type=merge)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    assert cluster.api("POST", pods, pod)[0] == 201
    processes.wait_for(
        lambda: cluster.get(f"{pods}/p")["spec"].get("nodeName") == namespace, "the pod is bound"
    )
    cluster.api("DELETE", f"{pods}/p?gracePeriodSeconds=0")
    cluster.api("DELETE", f"/api/v1/nodes/{namespace}")


def test_the_daemon_gets_the_rights_of_config_deploy_and_no_more(cluster: Cluster) -> None:
    kubeconfig = cluster.spillway_kubeconfig()

    def may(*question: str) -> bool:
        flags = ("--kubeconfig", str(kubeconfig))
        return cluster.kubectl(*flags, "auth", "can-i", *question, check=False).strip() == "yes"

    assert may("patch", "pods", "--subresource=status", "--all-namespaces")
    assert not may("patch", "pods", "--all-namespaces")
    assert not may("create", "pods", "--all-namespaces")


# Dead parents

OWNER = """
import pathlib, sys, time
from test.cluster import Cluster, Engine
cluster = Cluster().start(sys.argv[1] + "/c")
engine = Engine().start(sys.argv[1] + "/e")
engine.import_busybox_image()
engine.docker("run", "-d", "busybox:test", "sleep", "1000")
pathlib.Path(sys.argv[1], "ready").touch()
time.sleep(1000)
"""


def test_nothing_outlives_a_killed_test_run(short_tmp: pathlib.Path) -> None:
    work = short_tmp / "orphans"
    work.mkdir()
    command = [sys.executable, "-c", OWNER, str(work)]
    with subprocess.Popen(command, cwd=REPOSITORY) as owner:
        processes.wait_for(
            lambda: owner.poll() is not None or (work / "ready").exists(), "the owner is ready"
        )
        assert owner.poll() is None
        pids = descendants(owner.pid)
        # Four of the control plane; unshare, dockerd, containerd, a shim and the container.
        assert len(pids) >= 9
        bridges = [k.bridge for k in processes.records() if k.owner_pid == owner.pid and k.bridge]
        assert len(bridges) == 1
        owner.send_signal(signal.SIGKILL)
    processes.wait_for(lambda: not alive(pids), "no process is left", timeout=10)

    processes.reap()
    # Other runs on this machine may have theirs.
    assert not [k for k in processes.records() if work in k.directory.parents or k.directory == work]
    assert not (work / "c").exists() and not (work / "e").exists()
    assert not pathlib.Path("/sys/class/net", bridges[0]).exists()
    assert "orphans" not in pathlib.Path("/proc/mounts").read_text()


def test_only_a_process_with_the_recorded_start_time_is_ended() -> None:
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        stranger = processes.Child("stranger", bystander.pid, 12345)
        stranger.terminate()
        assert bystander.poll() is None
        processes.Child("same", bystander.pid, processes.start_time(bystander.pid)).terminate()
        assert bystander.wait(10) == -signal.SIGTERM


def test_a_program_that_fails_at_once_is_told_with_its_log(tmp_path: pathlib.Path) -> None:
    with pytest.raises(processes.ProcessError, match="no-such-flag"):
        Cluster(extra_args={"kube-apiserver": ["--no-such-flag"]}).start(tmp_path / "c")
    assert not (tmp_path / "c").exists()


# Container engines


def test_an_engine_runs_a_container_and_publishes_a_port(engine: Engine) -> None:
    port = processes.free_port()
    script = "echo hello >/www/index.html; exec httpd -f -h /www"
    publish = f"127.0.0.1:{port}:80"
    engine.docker("run", "-d", "--name", "web", "-p", publish, "busybox:test", "sh", "-c", script)

    def answer() -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as response:
                return response.read().decode()
        except (OSError, http.client.HTTPException):
            return None

    assert processes.wait_for(answer, "the container answers", timeout=10) == "hello\n"
    assert engine.docker("exec", "web", "seq", "3").split() == ["1", "2", "3"]
    engine.docker("rm", "-f", "web")
    assert engine.leftovers() == {"containers": [], "volumes": [], "networks": []}


def test_engines_side_by_side_leave_nothing(tmp_path_factory: Any) -> None:
    work = pathlib.Path(tmp_path_factory.mktemp("e", numbered=True))
    begin = time.monotonic()
    one = Engine().start(work / "1")
    assert time.monotonic() - begin < 5
    two = Engine().start(work / "2")
    assert not one.network.overlaps(two.network)
    for engine in (one, two):
        engine.import_busybox_image("busybox:test")
        engine.docker("run", "-d", "--name", "same", "busybox:test", "sleep", "1000")
    ours = [k for k in processes.records() if k.directory.parent == work]
    pids = [pid for k in ours for child in k.children for pid in descendants(child.pid)]
    assert len(pids) >= 8
    one.kill()
    one.start_again()
    assert [c["State"] for c in one.containers()] == ["exited"]
    assert [c["State"] for c in two.containers()] == ["running"]
    one.stop()
    two.stop()
    processes.wait_for(lambda: not alive(pids), "no process is left", timeout=5)
    assert not (work / "1").exists() and not (work / "2").exists()
    for keeper in ours:
        assert not pathlib.Path("/sys/class/net", keeper.bridge).exists()
        assert not list(pathlib.Path("/sys/fs/cgroup").glob(f"*/{keeper.cgroup.strip('/')}"))


# Gates


class Client:
    """A client of a gate in front of a cluster, as a daemon would be: one token, HTTP/1.1."""

    def __init__(self, cluster: Cluster, url: str, token: str) -> None:
        self._context = ssl.create_default_context(cafile=str(cluster.ca))
        self._address = url.removeprefix("https://")
        self._token = token

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, context=self._context, timeout=10)

    def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> http.client.HTTPResponse:
        connection = self.connect()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> Iterator[str]:
    """A token with all rights."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "gate-test"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    }
    cluster.apply(binding)
    yield cluster.kubectl("create", "token", "default").strip()
    cluster.kubectl("delete", "clusterrolebinding", "gate-test")


@pytest.fixture
def line(cluster: Cluster, token: str, gate: Callable[..., Gate]) -> tuple[Gate, Client]:
    """A gate in front of the cluster and a client of it."""
    made = gate(cluster)
    return made, Client(cluster, made.url, token)


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"k": "v" * 3000}}


def test_a_gate_passes_through_and_counts(
    line: tuple[Gate, Client], namespace: str, cluster: Cluster
) -> None:
    gate, client = line
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert client.send("POST", path, config_map("a")).status == 201
    through = json.loads(client.send("GET", f"{path}/a").read())
    assert through == cluster.get(f"{path}/a")
    assert client.send("GET", f"{path}/absent").status == 404
    base = "/api/v1/namespaces/{namespace}/configmaps"
    assert gate.counts() == {
        ("create", base, 201): 1,
        ("get", f"{base}/{{name}}", 200): 1,
        ("get", f"{base}/{{name}}", 404): 1,
    }
    assert gate.count(verb="get", resource="configmaps") == 2
    gate.reset()
    assert gate.count() == 0


def test_a_gate_calls_before_forwarding_and_before_the_answer(
    line: tuple[Gate, Client], namespace: str, cluster: Cluster
) -> None:
    gate, client = line
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    seen: list[tuple[str, int]] = []

    def look(exchange: gates.Exchange) -> None:
        name = exchange.request.json()["metadata"]["name"]
        seen.append((name, cluster.api("GET", f"{path}/{name}")[0]))

    gate.on(matching(verb="create", body='"first"'), gates.before(look))
    later = gate.on(matching(verb="create", path=f"/api/*/{namespace}/*"), gates.after(look), nth=2)
    for name in ("first", "second", "third"):
        assert client.send("POST", path, config_map(name)).status == 201
    assert seen == [("first", 404), ("second", 200)]
    assert later.wait(1).response.status == 201
    assert later.wait(1).response.json()["metadata"]["name"] == "second"


def test_a_gate_answers_drops_and_delays(
    line: tuple[Gate, Client], namespace: str, cluster: Cluster
) -> None:
    gate, client = line
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    create = matching(verb="create", resource="configmaps")

    gate.on(create, gates.answer(429, retry_after=7))
    busy = client.send("POST", path, config_map("busy"))
    assert (busy.status, busy.headers["Retry-After"]) == (429, "7")
    assert json.loads(busy.read())["reason"] == "TooManyRequests"

    gate.on(create, gates.drop_before())
    with pytest.raises((OSError, http.client.HTTPException)):
        client.send("POST", path, config_map("before"))
    gate.on(create, gates.drop_after())
    with pytest.raises((OSError, http.client.HTTPException)):
        client.send("POST", path, config_map("after"))
    statuses = [cluster.api("GET", f"{path}/{name}")[0] for name in ("busy", "before", "after")]
    assert statuses == [404, 404, 200]

    for action in (gates.delay(0.3), gates.delay_answer(0.3)):
        gate.on(matching(verb="get"), action)
        begin = time.monotonic()
        assert client.send("GET", f"{path}/after").status == 200
        assert time.monotonic() - begin >= 0.3


def open_watch(client: Client, path: str, since: str | None = None) -> http.client.HTTPResponse:
    """A watch from now on, or from a resourceVersion. Without bookmarks: each line is an event."""
    if since is None:
        since = json.loads(client.send("GET", path).read())["metadata"]["resourceVersion"]
    watch = client.send("GET", f"{path}?watch=true&resourceVersion={since}")
    assert watch.status == 200
    return watch


def test_a_gate_cuts_ends_and_silences_watches(
    line: tuple[Gate, Client], namespace: str
) -> None:
    gate, client = line
    path = f"/api/v1/namespaces/{namespace}/secrets"
    watches = matching(verb="watch", resource="secrets")

    whole = open_watch(client, path)
    client.send("POST", path, {"metadata": {"name": "one"}})
    event = json.loads(whole.readline())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "one")

    cut = gate.on(watches, gates.cut_mid_line())
    client.send("POST", path, {"metadata": {"name": "two"}})
    with pytest.raises(http.client.IncompleteRead) as torn:
        whole.read()
    assert torn.value.partial.startswith(b'{"type":"ADDED"')
    assert not torn.value.partial.endswith(b"\n")
    assert cut.fired == 1

    ended = open_watch(client, path)
    gate.on(watches, gates.end_with(gates.GONE_EVENT))
    client.send("POST", path, {"metadata": {"name": "lost"}})
    assert json.loads(ended.read().splitlines()[-1])["object"]["code"] == 410
    gate.on(watches, gates.watch_gone())
    assert json.loads(client.send("GET", f"{path}?watch=1").read())["object"]["code"] == 410

    version = json.loads(client.send("GET", path).read())["metadata"]["resourceVersion"]
    dead = open_watch(client, path, version)
    silence = gate.on(watches, gates.silent())
    client.send("POST", path, {"metadata": {"name": "three"}})
    silence.wait(5)
    dead.fp.raw._sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        dead.readline()
    # The rule is used up: a new watch hears everything.
    fresh = open_watch(client, path, version)
    assert json.loads(fresh.readline())["object"]["metadata"]["name"] == "three"


def test_a_gate_blocks_and_lets_through_again(line: tuple[Gate, Client], namespace: str) -> None:
    gate, client = line
    path = f"/api/v1/namespaces/{namespace}/secrets"
    watch = open_watch(client, path)
    gate.block()
    with pytest.raises((OSError, http.client.HTTPException)):
        if watch.read() == b"":
            raise ConnectionResetError
    with pytest.raises(ConnectionRefusedError):
        client.send("GET", path)
    gate.unblock()
    assert client.send("GET", path).status == 200


def test_a_client_that_dies_at_a_placed_point(
    line: tuple[Gate, Client], namespace: str, cluster: Cluster, token: str
) -> None:
    gate, _ = line
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    command = ["curl", "--silent", "--cacert", str(cluster.ca)]
    command += ["--header", f"Authorization: Bearer {token}"]
    command += ["--json", json.dumps(config_map("last")), gate.url + path]
    started = threading.Event()
    client: list[subprocess.Popen[bytes]] = []

    def end(_: gates.Exchange) -> None:
        started.wait(10)
        client[0].kill()
        client[0].wait(10)

    rule = gate.on(matching(verb="create", resource="configmaps"), gates.after(end))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        client.append(process)
        started.set()
        rule.wait(10)
        assert process.stdout.read() == b""
        assert process.wait(10) == -signal.SIGKILL
    assert cluster.api("GET", f"{path}/last")[0] == 200


def test_many_requests_pass_a_gate_quickly(line: tuple[Gate, Client], namespace: str) -> None:
    gate, client = line
    connection = client.connect()
    headers = {"Authorization": f"Bearer {client._token}"}
    begin = time.monotonic()
    for _ in range(300):
        connection.request("GET", f"/api/v1/namespaces/{namespace}", headers=headers)
        assert connection.getresponse().read()
    spent = time.monotonic() - begin
    assert gate.count(verb="get", status=200) == 300
    assert spent < 6, f"{spent / 300 * 1000:.1f} ms per request"


def test_a_gate_in_front_of_an_engine(engine: Engine, gate: Callable[..., Gate]) -> None:
    line = gate(engine)
    docker = ["docker", "--host", line.url]

    def run(*arguments: str) -> str:
        done = subprocess.run([*docker, *arguments], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    # Attached, so that the hijacked stream passes in both directions.
    assert run("run", "--name", "a1", "busybox:test", "echo", "through") == "through"
    run("run", "-d", "--name", "a2", "busybox:test", "sleep", "1000")
    echo = subprocess.run(
        [*docker, "exec", "-i", "a2", "cat"], input=b"up and down", capture_output=True, timeout=30
    )
    assert echo.stdout == b"up and down"
    assert line.count(resource="/v1.41/containers/{id}/start", status=204) == 2

    line.on(matching(path="*/containers/json"), gates.answer(500, {"message": "engine is ill"}))
    sick = subprocess.run([*docker, "ps"], capture_output=True, text=True, timeout=30)
    assert "engine is ill" in sick.stderr
    line.block()
    with pytest.raises((ConnectionRefusedError, FileNotFoundError)):
        UnixConnection(line.socket).connect()
    line.unblock()
    run("rm", "-f", "a1", "a2")
    assert engine.containers() == []


@pytest.mark.parametrize(
    ("method", "target", "verb", "resource", "template_"),
    [
        ("GET", "/api/v1/pods?watch=true", "watch", "pods", "/api/v1/pods"),
        (
            "PATCH",
            "/api/v1/namespaces/a/pods/b/status",
            "patch",
            "pods/status",
            "/api/v1/namespaces/{namespace}/pods/{name}/status",
        ),
        ("GET", "/api/v1/namespaces/a", "get", "namespaces", "/api/v1/namespaces/{name}"),
        (
            "DELETE",
            "/apis/coordination.k8s.io/v1/namespaces/x/leases?limit=1",
            "deletecollection",
            "leases",
            "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
        ),
        (
            "POST",
            "/v1.41/containers/spw-abc/start",
            "post",
            "/v1.41/containers/{id}/start",
            None,
        ),
        ("GET", "/v1.41/images/a/b/json", "get", "/v1.41/images/{name}/json", None),
        ("GET", "/v1.41/containers/json", "get", "/v1.41/containers/json", None),
        ("GET", "/readyz", "get", "/readyz", None),
    ],
)
def test_requests_are_named(
    method: str, target: str, verb: str, resource: str, template_: str | None
) -> None:
    request: Request = parse_request(f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    wanted = (verb, resource, template_ or resource)
    assert (request.verb, request.resource, request.template) == wanted


# Counting


@pytest.mark.parametrize(
    ("text", "passed", "failed"),
    [
        ("All tests passed (9 assertions in 4 test cases)\n", 4, 0),
        ("All tests passed (1 assertion in 1 test case)\n", 1, 0),
        ("test cases:  7 |  5 passed | 2 failed\nassertions: 9 | 7 passed | 2 failed\n", 5, 2),
        ("test cases: 1 | 1 failed\nassertions: 1 | 1 failed\n", 0, 1),
        ("test cases: 3 | 2 passed | 1 failed as expected\n", 3, 0),
    ],
)
def test_catch_summaries_are_read(text: str, passed: int, failed: int) -> None:
    assert suites.parse_catch(text) == suites.Outcome(passed, failed)


def test_what_did_not_report_is_a_failure(tmp_path: pathlib.Path) -> None:
    assert suites.parse_catch("No tests ran\n") is None
    assert suites.parse_junit(tmp_path / "absent.xml") is None
    (tmp_path / "torn.xml").write_text("<testsuites><testsuite tests='3'")
    assert suites.parse_junit(tmp_path / "torn.xml") is None

    crashed = suites.run(["sh", "-c", "echo 'All tests passed'; exit 3"], 10)
    outcome = suites.judged(suites.Outcome(passed=1), crashed)
    assert (outcome.passed, outcome.failed, outcome.note) == (1, 1, "exit code 3")

    hung = suites.run(["sh", "-c", "sleep 1000 & sleep 1000"], 0.2)
    assert suites.judged(suites.Outcome(), hung).failed == 1
    assert "hung" in hung.note


def test_junit_reports_are_counted(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "r.xml"
    report.write_text(
        "<testsuites><testsuite tests='9' failures='2' errors='1' skipped='1'/></testsuites>"
    )
    assert suites.parse_junit(report) == suites.Outcome(passed=5, failed=3)
