"""The node's kubelet API behind the real API server: who may call it, and what it tells."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator

import pytest

from test.bench.process import usage
from test.cluster import Cluster, binaries, matching, wait_for
from test.cluster.certificates import Authority
from test.cluster.gate import answer
from test.cluster.netns import NetworkNamespace

from .conftest import Worlds
from .kubelet import (
    CERTIFIED,
    Caller,
    allow,
    approve,
    background,
    kubectl,
    kubelet_port,
    token_of,
)
from .world import World, start


@pytest.fixture(scope="module")
def net() -> Iterator[NetworkNamespace]:
    with NetworkNamespace() as entered:
        yield entered


@pytest.fixture(scope="module")
def proxied(net: NetworkNamespace, short_tmp: pathlib.Path) -> Iterator[Cluster]:
    """A control plane that reaches nodes on an address that it is willing to proxy to."""
    cluster = Cluster().start(short_tmp / "proxied")
    yield cluster
    cluster.stop()


@pytest.fixture
def make_node(
    request: pytest.FixtureRequest, net: NetworkNamespace, proxied: Cluster, short_tmp: pathlib.Path
) -> Iterator[Worlds]:
    """make_node(kubelet={...}): a world on that address with the kubelet API on."""
    rights = proxied.spillway_kubeconfig()

    class Nodes(Worlds):
        def __call__(  # type: ignore[override]
            self, *, kubelet: dict | None = None, nodes: int = 1, log_level: str = "debug", **options
        ) -> World:
            profiles = [{"internalIP": net.address} for _ in range(nodes)]
            section = {"port": 0, **(kubelet or {})}
            daemon = {"kubelet": section, "log_level": log_level}
            return super().__call__("fake", profiles=profiles, daemon=daemon, **options)

    def no_engine():  # type: ignore[no-untyped-def]
        raise AssertionError("these worlds have no engine")

    worlds = Nodes(proxied, rights, short_tmp, no_engine)
    yield worlds
    worlds.end(request.session.testsfailed > 0, request.node.name)


@pytest.fixture
def world(make_node: Worlds) -> World:
    """A node whose certificate the API server believes."""
    made = make_node(kubelet=CERTIFIED)
    approve(made)
    return made


def running(world: World, name: str = "web", **options: object) -> str:
    uid = world.create_pod(name, **options)  # type: ignore[arg-type]
    world.wait_ready(name)
    return uid


def proxy(world: World, path: str, node: str = "", method: str = "GET") -> tuple[int, object]:
    return world.cluster.api(method, f"/api/v1/nodes/{node or world.node}/proxy{path}")


# The certificate


def test_a_certificate_is_asked_for_and_used_once_it_is_approved(make_node: Worlds) -> None:
    world = make_node(kubelet=CERTIFIED)
    assert world.daemon.metric("spillway_kubelet_certificate", source="self-signed") == 1
    running(world)
    refused = kubectl(world, "logs", "web")
    assert refused.code == 1
    assert "certificate signed by unknown authority" in refused.err
    name = approve(world)
    assert kubectl(world, "logs", "web").code == 0
    request = world.cluster.get(f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}")
    assert request["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
    assert request["spec"]["usages"] == ["digital signature", "server auth"]
    line = world.daemon.wait_logged("the kubelet API has a certificate", where=lambda e: e["source"] == "csr")
    assert line["subject"] == f"O=system:nodes, CN=system:node:{world.node}"
    ends = world.daemon.metric("spillway_kubelet_certificate_expires_seconds")
    assert time.time() + 360 * 86400 < ends < time.time() + 370 * 86400


def test_files_of_a_certificate_are_read_again_when_they_change(
    make_node: Worlds, proxied: Cluster, net: object, tmp_path: pathlib.Path
) -> None:
    def write(name: str) -> bytes:
        certificate, key = proxied.issue_serving_cert(name, [net.address])  # type: ignore[attr-defined]
        (tmp_path / "tls.crt").write_bytes(certificate.read_bytes())
        (tmp_path / "tls.key").write_bytes(key.read_bytes())
        return ssl.PEM_cert_to_DER_cert(certificate.read_text())

    def shown() -> bytes | None:
        with Caller(net.address, port, ca=proxied.ca).handshake() as tls:  # type: ignore[attr-defined]
            return tls.getpeercert(binary_form=True)

    first = write("serving-1")
    files = {"certFile": str(tmp_path / "tls.crt"), "keyFile": str(tmp_path / "tls.key")}
    world = make_node(kubelet={"certificate": {"source": "files", **files}})
    port = kubelet_port(world)
    assert shown() == first
    running(world)
    assert kubectl(world, "logs", "web").code == 0
    second = write("serving-2")
    wait_for(lambda: shown() == second, "the new certificate is shown", timeout=45)


# Who may call


def test_nobody_without_credentials_gets_anything(world: World, net: NetworkNamespace) -> None:
    caller = Caller(net.address, kubelet_port(world))
    for path in ("/pods", "/metrics/resource", "/healthz", "/nothing", "/containerLogs/a/b/c"):
        said = caller.ask(path)
        assert (said.status, said.text) == (401, "Unauthorized"), path
    assert caller.ask("/exec/a/b/c?command=id&output=1", "POST").status == 401


def test_a_certificate_of_another_ca_is_worth_nothing(
    world: World, net: NetworkNamespace, tmp_path: pathlib.Path
) -> None:
    foreign = Authority(tmp_path, "foreign-ca")
    pair = foreign.issue("admin", common_name="spillway-test-admin", organizations=["system:masters"])
    assert Caller(net.address, kubelet_port(world), certificate=pair).ask("/pods").status == 401
    pair = world.cluster.issue_client_cert(
        "kubelet-admin", common_name="someone", organizations=["system:masters"]
    )
    assert Caller(net.address, kubelet_port(world), certificate=pair).ask("/pods").status == 200
    pair = world.cluster.issue_client_cert("nobody", common_name="nobody-special")
    said = Caller(net.address, kubelet_port(world), certificate=pair).ask("/pods")
    assert said.status == 403
    assert said.text == (
        "Forbidden (user=nobody-special, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    )


def test_a_token_opens_what_its_account_may_do(world: World, net: NetworkNamespace) -> None:
    port = kubelet_port(world)
    token = token_of(world, "metrics", may=[("get", "metrics"), ("get", "pods")])
    caller = Caller(net.address, port, token=token)
    wait_for(lambda: caller.ask("/metrics/resource").status == 200, "the right is known", timeout=45)
    assert caller.ask("/metrics/resource").headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert caller.ask("/pods").status == 200
    refused = caller.ask("/stats/summary")
    assert refused.status == 403
    assert refused.text == (
        f"Forbidden (user=system:serviceaccount:{world.namespace}:metrics, verb=get, resource=nodes, "
        "subresource(s)=[stats])\n"
    )
    assert caller.ask("/exec/a/b/c?command=id&output=1", "POST").status == 403
    assert Caller(net.address, port, token="not-a-token").ask("/metrics/resource").status == 401
    assert "not-a-token" not in world.daemon.log.read_text()
    assert token not in world.daemon.log.read_text()


def test_what_the_api_server_said_is_not_asked_again_and_without_it_nobody_new_comes_in(
    make_node: Worlds, net: NetworkNamespace
) -> None:
    world = make_node()
    port = kubelet_port(world)
    known = Caller(net.address, port, token=token_of(world, "known", may=[("get", "metrics")]))
    other = Caller(net.address, port, token=token_of(world, "other", may=[("get", "metrics")]))
    wait_for(lambda: known.ask("/metrics").status == 200, "the right is known", timeout=45)

    def reviews() -> int:
        return len(world.api.requests(lambda s: "reviews" in s.resource))

    before = reviews()
    for _ in range(20):
        assert known.ask("/metrics").status == 200
    assert reviews() == before
    world.api.on(matching(where=lambda r: "reviews" in r.path), answer(503), times=None)
    assert known.ask("/metrics").status == 200
    refused = other.ask("/metrics")
    assert refused.status == 500
    assert refused.text == "Authentication error: the API server cannot be asked about the token\n"
    world.api.clear()
    assert other.ask("/metrics").status == 200


def test_anonymous_callers_come_in_only_if_configured_and_by_their_own_rights(
    make_node: Worlds, net: NetworkNamespace
) -> None:
    world = make_node(kubelet={"anonymous": True})
    caller = Caller(net.address, kubelet_port(world))
    said = caller.ask("/metrics/resource")
    assert said.status == 403
    assert said.text == (
        "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n"
    )
    world.daemon.wait_logged("are let in as system:anonymous")


def test_each_node_has_a_port_and_pods_of_its_own(make_node: Worlds, net: NetworkNamespace) -> None:
    world = make_node(kubelet=CERTIFIED, nodes=2)
    approve(world)
    ports = {node: kubelet_port(world, node) for node in world.nodes}
    assert len(set(ports.values())) == 2
    for index, node in enumerate(world.nodes):
        running(world, f"web-{index}", nodeName=node)
    for index, node in enumerate(world.nodes):
        status, pods = proxy(world, "/pods", node)
        assert status == 200
        assert [p["metadata"]["name"] for p in pods["items"]] == [f"web-{index}"]  # type: ignore[index]
        assert kubectl(world, "logs", f"web-{index}").code == 0
        other = world.cluster.api(
            "GET", f"/api/v1/nodes/{node}/proxy/containerLogs/{world.namespace}/web-{1 - index}/main"
        )
        assert other == (404, f'pod "web-{1 - index}" does not exist')


# What it tells


def test_every_route_answers_through_the_node_proxy(world: World) -> None:
    uid = running(world)
    status, pods = proxy(world, "/pods")
    assert (status, pods["kind"], pods["apiVersion"]) == (200, "PodList", "v1")  # type: ignore[index]
    assert [p["metadata"]["uid"] for p in pods["items"]] == [uid]  # type: ignore[index]
    for path in ("/runningpods/", "/runningpods"):
        status, alive = proxy(world, path)
        assert [p["metadata"]["uid"] for p in alive["items"]] == [uid]  # type: ignore[index]
    status, summary = proxy(world, "/stats/summary")
    assert summary["node"]["nodeName"] == world.node  # type: ignore[index]
    ref = summary["pods"][0]["podRef"]  # type: ignore[index]
    assert ref == {"name": "web", "namespace": world.namespace, "uid": uid}
    assert summary["pods"][0]["containers"][0]["cpu"]["usageCoreNanoSeconds"] > 0  # type: ignore[index]
    status, text = proxy(world, "/metrics/resource")
    labels = f'container="main",pod="web",namespace="{world.namespace}"'
    assert f"container_cpu_usage_seconds_total{{{labels}}} " in str(text)
    assert f'pod_memory_working_set_bytes{{namespace="{world.namespace}",pod="web"}} ' in str(text)
    assert "resource_scrape_error 0\n" in str(text)
    assert "spillway_pods" in str(proxy(world, "/metrics")[1])
    assert 'image="busybox:test"' in str(proxy(world, "/metrics/cadvisor")[1])
    assert "prober_probe_total" in str(proxy(world, "/metrics/probes")[1])
    for path in ("/healthz", "/healthz/ping", "/healthz/log", "/healthz/syncloop"):
        assert proxy(world, path) == (200, "ok")
    config = proxy(world, "/configz")[1]["kubeletconfig"]  # type: ignore[index]
    assert config["port"] == kubelet_port(world)
    assert config["maxPods"] == 250
    assert proxy(world, "/nothing")[0] == 404
    assert proxy(world, "/pods", method="POST")[0] == 405
    assert proxy(world, "/logs/")[0] == 501


def test_a_pod_leaves_runningpods_when_it_is_deleted(world: World) -> None:
    world.create_pod("slow", terminationGracePeriodSeconds=30)
    world.wait_ready("slow")
    world.delete_pod("slow")
    wait_for(
        lambda: proxy(world, "/runningpods/")[1]["items"] == [],  # type: ignore[index]
        "the pod has left /runningpods/",
        timeout=1.0,
        interval=0.05,
    )


def test_a_list_of_pods_that_the_api_server_refuses_is_an_error(world: World) -> None:
    running(world)
    world.api.on(matching(verb="list", resource="pods"), answer(503), times=None)
    status, text = proxy(world, "/pods")
    assert status == 503
    assert str(text).startswith("the API server cannot be asked for the pods: ")
    world.api.clear()


# TLS


def test_tls_is_of_the_version_that_is_asked_for(make_node: Worlds, net: NetworkNamespace) -> None:
    world = make_node(kubelet={"tlsMinVersion": "VersionTLS13"})
    caller = Caller(net.address, kubelet_port(world))
    with caller.handshake() as tls:
        assert tls.version() == "TLSv1.3"
    caller.context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        caller.handshake().close()


def test_a_cipher_suite_can_be_chosen(make_node: Worlds, net: NetworkNamespace) -> None:
    world = make_node(kubelet={"tlsCipherSuites": ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]})
    caller = Caller(net.address, kubelet_port(world))
    caller.context.maximum_version = ssl.TLSVersion.TLSv1_2
    with caller.handshake() as tls:
        assert tls.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"  # type: ignore[index]
    caller.context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        caller.handshake().close()


def test_a_taken_port_is_told_by_its_key(make_node: Worlds, net: NetworkNamespace) -> None:
    world = make_node(kubelet={"port": 0})
    taken = kubelet_port(world)
    second = world.add_daemon("second", kubelet={"port": taken})
    config = json.loads(json.dumps(second.config))
    config["installation"]["name"] = "spillway"
    config["kubeletApi"]["address"] = "0.0.0.0"
    second.write_config(config)
    code, _ = world.daemon.sigterm()
    assert code == 0
    with socket.create_server((net.address, taken)):
        second.start()
        assert second.wait_exit() == 2
    line = second.wait_logged("cannot start")
    assert line["error"].startswith(f"conflict: kubeletApi.address 0.0.0.0, kubeletApi.port {taken}: cannot listen on")
    world.daemon.restart()


# Streams that last


def test_five_hundred_idle_streams_cost_little_and_one_more_is_refused(
    make_node: Worlds, net: NetworkNamespace
) -> None:
    world = make_node(log_level="info")
    slow = {"fake.spillway.dev/log-lines": "1000000", "fake.spillway.dev/log-every": "1h"}
    world.create_pod("quiet", annotations=slow)
    world.wait_ready("quiet")
    token = token_of(world, "reader", may=[("get", "log"), ("get", "proxy")])
    caller = Caller(net.address, kubelet_port(world), token=token)
    path = f"/containerLogs/{world.namespace}/quiet/main?follow=true"
    caller.ask(f"/containerLogs/{world.namespace}/quiet/main?tailLines=1")
    before = usage(world.daemon.child.pid).rss
    with contextlib.ExitStack() as held:
        for _ in range(500):
            answer = held.enter_context(caller.stream(path))
            assert answer.status == 200
            assert answer.readline().startswith(f"{world.namespace}/quiet main run 1: ".encode())
        grown = usage(world.daemon.child.pid).rss - before
        assert grown < 500 * 64, f"{grown} KiB for 500 idle streams"
        refused = caller.ask(path)
        assert refused.status == 503, refused.text
    # Their places are free again once their clients have gone.
    wait_for(lambda: _opens(caller, path), "a stream can be opened again", timeout=30)


def _opens(caller: Caller, path: str) -> bool:
    with caller.stream(path) as answer:
        return answer.status == 200


def test_a_gigabyte_of_log_comes_whole_in_little_memory_beside_a_reader_that_waits(
    make_node: Worlds, net: NetworkNamespace
) -> None:
    lines, width = 1_100_000, 1000
    world = make_node.bare("fake", profiles=[{"internalIP": net.address}])
    # Without the socket and the proxy between the daemon and its cloud: they would be what is measured.
    world.backend.config = {"mode": "inProcess"}
    start(world, kubelet={"port": 0, **CERTIFIED}, log_level="info")
    approve(world)
    much = {"fake.spillway.dev/log-lines": f"{lines}", "fake.spillway.dev/log-width": f"{width}"}
    running(world, "much", annotations=much)
    token = token_of(world, "reader", may=[("get", "log"), ("get", "proxy")])
    caller = Caller(net.address, kubelet_port(world), token=token)

    def line(number: int) -> bytes:
        return f"{world.namespace}/much main run 1: line {number} of {lines}".encode()

    with (
        caller.stream(f"/containerLogs/{world.namespace}/much/main") as waiting,
        background(world, "logs", "much") as quick,
    ):
        assert waiting.readline().startswith(line(1))
        before = usage(world.daemon.child.pid).peak
        assert quick.stdout is not None
        for number, came in enumerate(quick.stdout, 1):
            assert came.startswith(line(number)) and len(came) == width + 1, came
        assert number == lines
        assert quick.wait(10) == 0
        grown = usage(world.daemon.child.pid).peak - before
        assert grown < 16 * 1024, f"{grown} KiB for a log of {lines * (width + 1)} bytes"
        assert waiting.readline().startswith(line(2))


def test_streams_end_with_the_api_server_and_the_daemon_goes_on(
    world: World, proxied: Cluster
) -> None:
    slow = {"fake.spillway.dev/log-lines": "1000000", "fake.spillway.dev/log-every": "100ms"}
    world.create_pod("first", annotations=slow)
    world.wait_ready("first")
    with (
        background(world, "logs", "-f", "first") as follower,
        background(world, "exec", "-i", "first", "--", "cat") as shell,
    ):
        for process, said in ((follower, b""), (shell, b"hello\n")):
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(said)
            process.stdin.flush()
            assert process.stdout.readline()
        proxied.restart_apiserver()
        assert follower.wait(30) is not None
        assert shell.wait(30) != 0
    wait_for(lambda: kubectl(world, "logs", "first", "--tail=1").code == 0, "logs again", timeout=30)


# The suite of a peer


def test_the_suite_of_virtual_kubelet_passes(make_node: Worlds, net: NetworkNamespace) -> None:
    """It asks a pod named like the node, at port 10250 and without credentials, for statistics."""
    world = make_node.bare("fake", profiles=[{"internalIP": net.address}])
    world.backend.config["podIP"] = net.address
    start(world, kubelet={"port": 10250, "anonymous": True, **CERTIFIED})
    approve(world)
    allow(world, ("system:anonymous", "User"), [("get", "stats"), ("get", "metrics")])
    running(world, world.node)
    command = [binaries.binary("virtual-kubelet-suite", "suite"), "-test.v"]
    command += ["-kubeconfig", world.cluster.kubeconfig]
    command += ["-namespace", world.namespace, "-node", world.node]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    tests = re.findall(r"^ *--- (PASS|FAIL|SKIP): Suite/(\S+)", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stdout
    assert [name for verdict, name in tests if verdict != "PASS"] == []
    assert len(tests) == 9, done.stdout
