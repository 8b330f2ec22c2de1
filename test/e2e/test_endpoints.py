"""Traffic follows the pods: EndpointSlices of our own lead to the published ports of rented pods."""

from __future__ import annotations

import collections
import concurrent.futures
import json
import pathlib
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from test.cluster import Cluster, Engine, wait_for
from test.cluster.kube_proxy import KubeProxy
from test.cluster.netns import NetworkNamespace

from .backends import DockerBackend
from .conftest import Worlds
from .home import patch
from .world import ADDRESSES, World, start

MANAGER = "endpointslice.kubernetes.io/managed-by"
#: Serves its name, also for a while after it was told to end, and is ready once it says so.
WEB = """
rm -f /tmp/ready; mkdir -p /www; hostname >/www/index.html
httpd -f -h /www -p 8080 & trap 'sleep 4; exit 0' TERM
sleep 1; touch /tmp/ready; sleep 1000000 & wait
"""


@pytest.fixture(scope="module")
def net() -> Iterator[NetworkNamespace]:
    with NetworkNamespace() as entered:
        yield entered


@pytest.fixture(scope="module")
def inside(
    net: NetworkNamespace, short_tmp: pathlib.Path
) -> Iterator[tuple[Cluster, Engine]]:
    """A control plane and an engine on an address that endpoints may have."""
    cluster = Cluster().start(short_tmp / "inside")
    engine = Engine().start(short_tmp / "inside-engine")
    engine.import_busybox_image("busybox:test")
    yield cluster, engine
    engine.stop()
    cluster.stop()


@pytest.fixture
def make_inside(
    request: pytest.FixtureRequest,
    net: NetworkNamespace,
    inside: tuple[Cluster, Engine],
    short_tmp: pathlib.Path,
) -> Iterator[Worlds]:
    cluster, engine = inside
    rights = cluster.spillway_kubeconfig(parts=("endpoints",))
    failed_before = request.session.testsfailed

    class Inside(Worlds):
        def __call__(self, **options: Any) -> World:  # type: ignore[override]
            host = {"publishAddress": net.address}
            world = self.bare("docker", host=host)
            return start(world, endpoints={"mode": "direct"}, **options)

    worlds = Inside(cluster, rights, short_tmp, lambda: engine)
    yield worlds
    worlds.end(request.session.testsfailed > failed_before, request.node.name)


def slices_path(world: World, name: str = "") -> str:
    path = f"/apis/discovery.k8s.io/v1/namespaces/{world.namespace}/endpointslices"
    return f"{path}/{name}" if name else path


def our_slices(world: World) -> list[dict[str, Any]]:
    found = world.cluster.get(slices_path(world) + f"?labelSelector={MANAGER}=spillway.dev")
    return found["items"]


def endpoints(world: World) -> dict[str, dict[str, Any]]:
    """Our endpoints by the names of their pods."""
    found = {}
    for item in our_slices(world):
        for endpoint in item["endpoints"] or ():
            found[endpoint["targetRef"]["name"]] = {**endpoint, "slice": item}
    return found


def conditions(world: World, pod: str) -> dict[str, bool]:
    return endpoints(world).get(pod, {}).get("conditions", {})


def wait_ready(world: World, pod: str, ready: bool = True, timeout: float = 20) -> None:
    wait_for(
        lambda: conditions(world, pod).get("ready") is ready,
        f"the endpoint of {pod} is {'' if ready else 'not '}ready",
        timeout=timeout,
        interval=0.05,
    )


def wait_without(world: World, pod: str, timeout: float = 20) -> None:
    what = f"{pod} has no endpoint"
    wait_for(lambda: pod not in endpoints(world), what, timeout=timeout, interval=0.05)


def add_service(world: World, name: str = "web", port: int | str = "web") -> dict[str, Any]:
    body = {
        "metadata": {"name": name},
        "spec": {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": port}],
        },
    }
    path = f"/api/v1/namespaces/{world.namespace}/services"
    status, answer = world.cluster.api("POST", path, body)
    assert status == 201, answer
    return answer


def add_web(world: World, name: str, **options: Any) -> str:
    container = {
        "command": ["sh", "-c", WEB],
        "ports": [{"name": "web", "containerPort": 8080}],
        "readinessProbe": {
            "exec": {"command": ["test", "-f", "/tmp/ready"]},
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
    }
    return world.create_pod(
        name,
        labels={"app": "web"},
        annotations={"spillway.dev/public-ports": "8080"},
        container=container,
        **{"terminationGracePeriodSeconds": 8, **options},
    )


def run_in(world: World, uid: str, *command: str) -> None:
    backend = world.backend
    assert isinstance(backend, DockerBackend)
    backend.engine.docker("exec", backend.container_of(uid)["Id"], *command)


def slice_writes(world: World) -> int:
    verbs = ("create", "patch", "update", "delete")
    seen = world.api.requests(lambda s: s.resource == "endpointslices" and s.verb in verbs)
    return len(seen)


def test_endpoints_follow_the_life_of_a_pod(make_inside: Worlds, net: NetworkNamespace) -> None:
    world = make_inside()
    service = add_service(world)
    uid = add_web(world, "one")
    add_web(world, "two", terminationGracePeriodSeconds=0)
    world.wait_ready("one", "two", timeout=60)
    wait_ready(world, "one")
    wait_ready(world, "two")
    pod = world.pod("one")
    assert pod is not None and "podIP" not in pod["status"]
    address = json.loads(pod["metadata"]["annotations"][ADDRESSES])["8080"]
    endpoint = endpoints(world)["one"]
    item = endpoint.pop("slice")
    assert endpoint == {
        "addresses": [net.address],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": world.node,
        "targetRef": {"kind": "Pod", "namespace": world.namespace, "name": "one", "uid": uid},
    }
    assert address == f"{net.address}:{item['ports'][0]['port']}"
    assert [(p["name"], p["protocol"]) for p in item["ports"]] == [("http", "TCP")]
    assert item["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    assert item["metadata"]["ownerReferences"][0]["uid"] == service["metadata"]["uid"]
    # Nothing is written while nothing changes.
    before = slice_writes(world)
    time.sleep(4)
    assert slice_writes(world) == before <= 4  # one to make each, one when it is ready
    # The probe's word, within its period.
    run_in(world, uid, "rm", "/tmp/ready")
    begin = time.monotonic()
    wait_ready(world, "one", False)
    print(f"unready after {time.monotonic() - begin:.2f} s of a period of 1 s")
    assert time.monotonic() - begin < 4  # of a shared machine
    assert conditions(world, "two")["ready"]
    run_in(world, uid, "touch", "/tmp/ready")
    wait_ready(world, "one")
    # A container that dies.
    assert isinstance(world.backend, DockerBackend)
    world.backend.engine.docker("kill", world.backend.container_of(uid)["Id"])
    wait_ready(world, "one", False)
    wait_ready(world, "one", timeout=60)
    # A pod that goes drains.
    world.delete_pod("one")
    wait_for(
        lambda: conditions(world, "one") == {"ready": False, "serving": True, "terminating": True},
        "the pod drains",
        interval=0.05,
    )
    wait_without(world, "one")
    assert conditions(world, "two")["ready"]
    status, _ = world.cluster.api("DELETE", f"/api/v1/namespaces/{world.namespace}/services/web")
    assert status == 200
    wait_for(lambda: not our_slices(world), "no slice is left")
    wait_for(lambda: world.daemon.metric("spillway_endpoint_slices") == 0, "the metric says so")


def test_a_lost_instance_leaves_at_once(make_inside: Worlds) -> None:
    world = make_inside()
    add_service(world)
    add_web(world, "one", restartPolicy="Never")
    wait_ready(world, "one", timeout=60)
    for tag in world.tags():
        world.backend.remove(tag)
    world.wait_phase("one", "Failed", timeout=60)
    begin = time.monotonic()
    wait_without(world, "one")
    print(f"no endpoint {time.monotonic() - begin:.2f} s after the pod was Failed")
    assert time.monotonic() - begin < 2


def test_a_new_daemon_takes_over_what_stands(make_inside: Worlds) -> None:
    world = make_inside()
    add_service(world)
    uid = add_web(world, "one")
    wait_ready(world, "one", timeout=60)
    kept = endpoints(world)["one"]["slice"]["metadata"]
    world.daemon.kill9()
    labels = dict(kept["labels"])
    for name, manager in (("stale", "spillway.dev"), ("foreign", "example.com")):
        body = {
            "metadata": {"name": name, "labels": {**labels, MANAGER: manager}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["203.0.113.99"], "conditions": {"ready": True}}],
            "ports": [{"name": "http", "port": 31999}],
        }
        status, answer = world.cluster.api("POST", slices_path(world), body)
        assert status == 201, answer
    # The node's controller may have its doubts; the slice has none.
    pod_status = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    status, answer = world.cluster.api(
        "PATCH",
        world.pods_path("one") + "/status",
        pod_status,
        content_type="application/strategic-merge-patch+json",
    )
    assert status == 200, answer
    world.daemon.restart()
    names = [item["metadata"]["name"] for item in our_slices(world)]
    assert names == [kept["name"]]
    assert world.cluster.api("GET", slices_path(world, "foreign"))[0] == 200
    world.wait_ready("one")
    time.sleep(1)
    # It was never out of service, nor written.
    assert endpoints(world)["one"]["slice"]["metadata"]["resourceVersion"] == kept["resourceVersion"]
    world.assert_made_once([uid])


def test_a_port_that_nobody_publishes_is_told_on_the_service(make_inside: Worlds) -> None:
    world = make_inside()
    service = add_service(world, port=9999)
    add_web(world, "one", terminationGracePeriodSeconds=0)
    world.wait_ready("one", timeout=60)
    uid = service["metadata"]["uid"]
    wait_for(lambda: world.events(uid), "an event of the Service", timeout=60)
    [event] = world.events(uid)
    assert event["reason"] == "EndpointPortUnreached"
    assert 'spillway.dev/public-ports: "9999"' in event["message"]
    assert our_slices(world) == []


class Load:
    """Requests to one address, a new connection each, until it is stopped."""

    def __init__(self, url: str, workers: int = 4) -> None:
        self.answers: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self._url = url
        self._over = threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(workers)
        self._work = [self._pool.submit(self._run) for _ in range(workers)]

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with urllib.request.urlopen(self._url, timeout=5) as answer:
                    self.answers[answer.read().decode().strip()] += 1
            except OSError as error:
                self.failures.append(repr(error))
            time.sleep(0.01)

    def wait_for(self, *names: str) -> None:
        """Until each of them has answered anew."""
        before = self.answers.copy()
        wait_for(
            lambda: all(self.answers[name] > before[name] for name in names),
            f"answers of {names}; so far {self.answers}, {self.failures[-3:]}",
            timeout=30,
        )

    def stop(self) -> None:
        self._over.set()
        for work in self._work:
            work.result(timeout=10)
        self._pool.shutdown()


def add_home_pod(world: World, engine: Engine, node: str) -> str:
    """A container of the engine with an address of its own, and the pod that a kubelet would show."""
    name = "home"
    command = ("sh", "-c", "mkdir -p /www; echo home >/www/index.html; exec httpd -f -h /www -p 8080")
    container = engine.docker("run", "--detach", "busybox:test", *command)
    world.on_close.append(lambda: engine.docker("rm", "--force", container, check=False))
    settings = engine.api("GET", f"/containers/{container}/json")[1]["NetworkSettings"]
    address = settings["IPAddress"] or settings["Networks"]["bridge"]["IPAddress"]
    port = {"name": "web", "containerPort": 8080}
    body = {
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "busybox:test", "ports": [port]}],
        },
    }
    status, answer = world.cluster.api("POST", world.pods_path(), body)
    assert status == 201, answer
    ready = {"type": "Ready", "status": "True"}
    now = {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [ready, {"type": "ContainersReady", "status": "True"}],
    }
    patch(world, world.pods_path(name) + "/status", {"status": now})
    return container


def test_a_service_reaches_containers_at_home_and_away(
    make_inside: Worlds, inside: tuple[Cluster, Engine], net: NetworkNamespace
) -> None:
    cluster, engine = inside
    world = make_inside()
    service = add_service(world)
    add_web(world, "away-1")
    uid = add_web(world, "away-2")
    wait_ready(world, "away-1", timeout=60)
    wait_ready(world, "away-2", timeout=60)
    proxy = KubeProxy(cluster, world.keeper, net).start()
    world.on_close.append(lambda: cluster.api("DELETE", f"/api/v1/nodes/{proxy.node}"))
    container = add_home_pod(world, engine, proxy.node)
    url = f"http://{service['spec']['clusterIP']}/"
    print(f"the Service is at {url}")

    def everywhere() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                seen.add(answer.read().decode().strip())
        except OSError:
            return False
        return seen == {"home", "away-1", "away-2"}

    seen: set[str] = set()
    wait_for(everywhere, "all three have answered", timeout=30, interval=0.05)
    load = Load(url)
    try:
        load.wait_for("home", "away-1", "away-2")
        # A pod that is not ready gets no new connection.
        run_in(world, uid, "rm", "/tmp/ready")
        wait_ready(world, "away-2", False)
        time.sleep(2)
        before = load.answers["away-2"]
        load.wait_for("home", "away-1")
        time.sleep(1)
        assert load.answers["away-2"] == before
        run_in(world, uid, "touch", "/tmp/ready")
        load.wait_for("away-2")
        proxy.beat()
        # One that is deleted drains: nobody who connected meanwhile was turned away.
        world.delete_pod("away-1")
        world.wait_gone("away-1")
        load.wait_for("home", "away-2")
    finally:
        load.stop()
    print(f"answers: {dict(load.answers)}; failures: {load.failures}")
    assert load.failures == []
    world.delete_pod("home", grace=0)
    engine.docker("rm", "--force", container)
