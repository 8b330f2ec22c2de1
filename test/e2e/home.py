"""The home of a gate's test: nodes with GPUs that are nothing but objects, and a Prometheus to order."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import yaml

from test.cluster.cluster import REPOSITORY

from .world import World

MERGE = "application/merge-patch+json"
GATE_TAINT = "spillway.dev/home-has-capacity"
SOFT_TAINT = "spillway.dev/prefer-home"
WORLD_LABEL = "example.com/world"


class Home:
    """Nodes of one world. Pods of the world reach them, and its virtual nodes, by a label."""

    def __init__(self, world: World, nodes: int = 2, gpus: int = 4) -> None:
        self.world = world
        self.names = [f"home-{world.id}-{i}" for i in range(nodes)]
        world.on_close.append(self.close)
        for name in self.names:
            labels = {WORLD_LABEL: world.id, "example.com/home": world.id}
            body = {"metadata": {"name": name, "labels": labels}}
            status, answer = world.cluster.api("POST", "/api/v1/nodes", body)
            assert status == 201, answer
            self.set(name, gpus=gpus)

    def set(self, name: str, *, gpus: int = 4, ready: bool = True) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        resources = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "reason": "Test",
            "message": "",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status = {"capacity": resources, "allocatable": resources, "conditions": [condition]}
        patch(self.world, f"/api/v1/nodes/{name}/status", {"status": status})

    def beat(self) -> None:
        """What a kubelet does: without it the nodes are Unknown after 50 s."""
        for name in self.names:
            self.set(name)

    def close(self) -> None:
        for name in self.names:
            self.world.cluster.api("DELETE", f"/api/v1/nodes/{name}")

    def add_training(self, name: str, node: str, gpus: int = 4) -> None:
        """A pod that holds GPUs at home. Nobody runs it: bound is enough."""
        limits = {"nvidia.com/gpu": str(gpus)}
        container = {"name": "main", "image": "x", "resources": {"limits": limits}}
        body = {
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                # No kubelet answers for it.
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
            },
        }
        status, answer = self.world.cluster.api("POST", self.world.pods_path(), body)
        assert status == 201, answer

    def fill(self) -> None:
        for name in self.names:
            self.add_training(f"training-{name}", name)

    def empty(self) -> None:
        for name in self.names:
            self.world.delete_pod(f"training-{name}", grace=0)


class HomeKubelet:
    """Runs the world's pods that are bound to home nodes: Ready after a moment, gone when told to go."""

    def __init__(self, home: Home, *, boot: float = 1.0, tells_start: bool = True) -> None:
        self._home = home
        self._boot = boot
        self._tells_start = tells_start  # false: as some virtual nodes, it leaves out status.startTime
        self._bound: dict[str, float] = {}
        self._end = threading.Event()
        #: While it is true new pods do not become Ready.
        self.held = False
        #: Called with all pods of the world a few times in a second.
        self.watchers: list[Callable[[list[dict[str, Any]]], None]] = []
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        # Before the nodes go.
        home.world.on_close.insert(0, self.close)

    def _run(self) -> None:
        beaten = 0.0
        try:
            while not self._end.wait(0.15):
                if time.monotonic() - beaten > 10:
                    beaten = time.monotonic()
                    self._home.beat()
                pods = self._home.world.pods()
                for watcher in self.watchers:
                    watcher(pods)
                for pod in pods:
                    if pod["spec"].get("nodeName") in self._home.names:
                        self._tend(pod)
        except Exception as error:
            self.error = error

    def _tend(self, pod: dict[str, Any]) -> None:
        world, meta = self._home.world, pod["metadata"]
        if "deletionTimestamp" in meta:
            path = world.pods_path(meta["name"])
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
            world.cluster.api("DELETE", path, body)
            return
        since = self._bound.setdefault(meta["uid"], time.monotonic())
        if self.held or pod["status"].get("phase") != "Pending":
            return
        if time.monotonic() - since < self._boot:
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        conditions = [{"type": k, "status": "True", "lastTransitionTime": now} for k in kinds]
        address = f"10.9.{len(self._bound) // 250}.{len(self._bound) % 250 + 1}"
        addresses = {"podIP": address, "podIPs": [{"ip": address}]}
        status = {"phase": "Running", "conditions": conditions, **addresses}
        if self._tells_start:
            status["startTime"] = now
        path = world.pods_path(meta["name"]) + "/status"
        world.cluster.api(
            "PATCH", path, json.dumps({"status": status}).encode(), content_type=MERGE
        )

    def close(self) -> None:
        self._end.set()
        self._thread.join(10)


def apply_rights(world: World, folder: str) -> None:
    """What a folder of config/deploy allows beside the rest."""
    rights = REPOSITORY / "config" / "deploy" / folder / "rbac.yaml"
    world.cluster.apply(*yaml.safe_load_all(rights.read_text()))


def allow_surge(world: World) -> None:
    """Until the world ends: others of the same cluster try what happens without."""
    apply_rights(world, "surge")
    base = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    world.on_close.append(lambda: world.cluster.api("DELETE", f"{base}/spillway-surge"))


def patch(world: World, path: str, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    status, answer = world.cluster.api("PATCH", path, data, content_type=MERGE)
    assert status == 200, answer


def add_burst_pod(world: World, name: str, **spec: Any) -> str:
    """A pod that may run at home or on the virtual node, and wants one GPU."""
    work = world.backend.workload()
    return world.create_pod(
        name,
        work,
        container={"resources": {"limits": {"nvidia.com/gpu": "1"}}},
        nodeName=None,
        nodeSelector={WORLD_LABEL: world.id},
        tolerations=[{"key": "virtual-kubelet.io/provider", "operator": "Exists"}],
        **spec,
    )


def gate_config(world: World, **gate: Any) -> dict[str, Any]:
    """One gate with times that suit tests; only need opens it, not an empty level."""
    prometheus = gate.pop("prometheus", {})
    in_daemon = gate.pop("inDaemon", True)
    return {
        "enabled": True,
        "inDaemon": in_daemon,
        "prometheus": prometheus,
        "gates": [
            {
                "name": "gpu",
                "nodes": world.nodes,
                "homeSelector": {"example.com/home": world.id},
                "closeAfter": "4s",
                "minOpen": "6s",
                "openLevelAfter": "1h",
                **gate,
            }
        ],
    }


class Prometheus:
    """Answers instant queries as it is told: `body`, with `status`, after `delay` seconds."""

    def __init__(self) -> None:
        self.status = 200
        self.delay = 0.0
        self.body = b""
        self.say()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                time.sleep(outer.delay)
                self.send_response(outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def say(self, *values: str) -> None:
        """A vector of these values; none is an empty one."""
        result = [{"metric": {}, "value": [time.time(), value]} for value in values]
        answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
        self.body = json.dumps(answer).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
