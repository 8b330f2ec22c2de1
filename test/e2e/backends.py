"""Where instances live in a test: a fake cloud or a private Docker engine, told apart only here."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
import socket
import threading
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any, Protocol

from test.cluster import Engine, Gate, matching
from test.cluster.dockerd import UnixConnection
from test.cluster.gate import Match
from test.cluster.http1 import Request

from .fake_cloud import FakeCloud

IMAGE = "busybox:test"

#: Runs until it is told to end, and then ends at once.
FOREVER = "trap 'exit 0' TERM; sleep 1000000 & wait"


def tag_part(uid: str) -> str:
    """How a pod's UID stands in the tag of its instances."""
    return base64.b32encode(uuid.UUID(uid).bytes).decode().rstrip("=").lower()


@dataclasses.dataclass
class Workload:
    """What makes a pod run in a certain way at one provider."""

    annotations: dict[str, str] = dataclasses.field(default_factory=dict)
    container: dict[str, Any] = dataclasses.field(default_factory=dict)


class Backend(Protocol):
    """What a test needs of a provider under it. Steps are matches of its requests at the gate."""

    kind: str
    gate: Gate

    def provider(self) -> dict[str, Any]:
        """The entry of `providers` in the configuration."""
        ...

    def workload(self, *, run_for: float | None = None, exit_code: int = 0) -> Workload: ...

    def missing_image(self) -> Workload: ...

    def bad_command(self) -> Workload: ...

    def slow_image(self) -> Workload:
        """One whose image takes a moment to come."""
        ...

    def tags(self) -> list[str]:
        """Of the instances of ours that exist now; one entry for each instance."""
        ...

    def leftovers(self) -> list[str]:
        """All that is still there, whatever it is; empty after a test."""
        ...

    def ever_made(self, uid: str) -> int:
        """How many instances were ever made for a pod."""
        ...

    def remove(self, tag: str) -> None:
        """Takes an instance away without a word."""
        ...

    def close(self) -> None:
        """Ends what listens; the provider itself goes on."""
        ...

    def step(self, name: str) -> Match:
        """The request `create`, `terminate`, `list` or `get` at the gate."""
        ...


class FakeBackend:
    """A fake cloud behind a gate."""

    kind = "fake"

    def __init__(self, cloud: FakeCloud, gate: Gate, name: str = "fake") -> None:
        self.cloud = cloud
        self.gate = gate
        self.name = name
        self.config = {"mode": "socket", "socket": str(gate.socket), "settleTime": "1s"}

    def provider(self) -> dict[str, Any]:
        return {"name": self.name, "type": "fake", "config": self.config}

    def workload(self, *, run_for: float | None = None, exit_code: int = 0) -> Workload:
        orders = {"exit-code": str(exit_code)}
        if run_for is not None:
            orders["run-for"] = f"{int(run_for * 1000)}ms"
        return self._ordered(**orders)

    def missing_image(self) -> Workload:
        return self._ordered(**{"image-error": "manifest unknown"})

    def bad_command(self) -> Workload:
        return self._ordered(**{"start-error": 'exec: "no-such-program": not found'})

    def slow_image(self) -> Workload:
        return self._ordered(**{"boot-time": "3s"})

    @staticmethod
    def _ordered(**orders: str) -> Workload:
        return Workload({f"fake.spillway.dev/{key}": value for key, value in orders.items()})

    def tags(self) -> list[str]:
        return [instance["tag"] for instance in self.cloud.instances()]

    def leftovers(self) -> list[str]:
        return self.tags()

    def ever_made(self, uid: str) -> int:
        part = tag_part(uid)
        return sum(part in instance["tag"] for instance in self.cloud.audit()["instances"])

    def remove(self, tag: str) -> None:
        for instance in self.cloud.instances():
            if instance["tag"] == tag:
                self.cloud.kill(instance["id"])

    def close(self) -> None:
        pass

    def step(self, name: str) -> Match:
        return {
            "create": matching(method="POST", path="/v1/instances"),
            "terminate": matching(method="DELETE", path="/v1/instances/*"),
            "list": matching(method="GET", path="/v1/instances"),
            "get": matching(method="GET", path="/v1/instances/*"),
            "after terminate": matching(method="GET", path="/v1/instances/*"),
            "restart": matching(method="POST", path="/v1/instances/*/containers/*/start"),
        }[name]


class Creations:
    """Notes the tag of each sandbox that an engine makes: it remembers few events by itself."""

    def __init__(self, engine: Engine) -> None:
        self.tags: list[str] = []
        filters = urllib.parse.quote(json.dumps({"type": ["container"], "event": ["create"]}))
        self._connection = UnixConnection(engine.socket, timeout=None)
        self._connection.request("GET", f"/v1.41/events?filters={filters}")
        self._response = self._connection.getresponse()
        assert self._response.status == 200
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        # The end of the engine is the end of the stream.
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            while line := self._response.readline():
                labels = json.loads(line)["Actor"]["Attributes"]
                if labels.get("spillway.dev/role") == "sandbox":
                    self.tags.append(labels["spillway.dev/tag"])

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()


class DockerBackend:
    """A Docker engine behind a gate. The engine is shared; the tag tells whose an instance is."""

    kind = "docker"

    def __init__(self, engine: Engine, gate: Gate, name: str = "docker", **host: Any) -> None:
        self.engine = engine
        self.gate = gate
        self.name = name
        self._host = host
        self.settings: dict[str, Any] = {}  # beside `hosts`, until the daemon is configured
        self._creations = Creations(engine)

    def provider(self) -> dict[str, Any]:
        host = {
            "name": "box",
            "endpoint": self.gate.url,
            "region": "lab",
            "pricePerHour": 0.1,
            **self._host,
        }
        return {"name": self.name, "type": "docker", "config": {"hosts": [host], **self.settings}}

    def workload(self, *, run_for: float | None = None, exit_code: int = 0) -> Workload:
        script = FOREVER if run_for is None else f"sleep {run_for:g}; exit {exit_code}"
        return Workload(container={"command": ["sh", "-c", script]})

    def missing_image(self) -> Workload:
        # The engine has no way out: it says that the registry cannot be reached.
        return Workload(container={"image": "registry.invalid/absent:1"})

    def bad_command(self) -> Workload:
        return Workload(container={"command": ["/no-such-program"]})

    def slow_image(self) -> Workload:
        return self.workload()

    def containers(self, role: str = "") -> list[dict[str, Any]]:
        found = self.engine.containers("spillway.dev/tag")
        return [c for c in found if not role or c["Labels"].get("spillway.dev/role") == role]

    def tags(self) -> list[str]:
        # A sandbox is an instance; a container whose sandbox is gone is one as well.
        sandboxes = [c["Labels"]["spillway.dev/tag"] for c in self.containers("sandbox")]
        others = {c["Labels"]["spillway.dev/tag"] for c in self.containers("container")}
        return sandboxes + sorted(others - set(sandboxes))

    def container_of(self, uid: str) -> dict[str, Any]:
        """Docker's inspection of the pod's one container."""
        part = tag_part(uid)
        found = [c for c in self.containers("container") if part in c["Labels"]["spillway.dev/tag"]]
        assert len(found) == 1, [c["Names"] for c in found]
        status, answer = self.engine.api("GET", f"/containers/{found[0]['Id']}/json")
        assert status == 200, answer
        return answer

    def sandbox_of(self, uid: str) -> dict[str, Any]:
        part = tag_part(uid)
        found = [c for c in self.containers("sandbox") if part in c["Labels"]["spillway.dev/tag"]]
        assert len(found) == 1, [c["Names"] for c in found]
        return self.engine.api("GET", f"/containers/{found[0]['Id']}/json")[1]

    def logs(self, container: str) -> str:
        return self.engine.docker("logs", container)

    def leftovers(self) -> list[str]:
        kinds = self.engine.leftovers()
        return [f"{kind} {name}" for kind, names in kinds.items() for name in names]

    def ever_made(self, uid: str) -> int:
        part = tag_part(uid)
        return sum(part in tag for tag in list(self._creations.tags))

    def close(self) -> None:
        self._creations.close()

    def remove(self, tag: str) -> None:
        for container in self.containers():
            if container["Labels"]["spillway.dev/tag"] == tag:
                self.engine.api(
                    "DELETE", f"/containers/{container['Id']}", query={"force": "1", "v": "1"}
                )

    def step(self, name: str) -> Match:
        def sandbox_create(request: Request) -> bool:
            # The sandbox is called like the tag: spw-<installation>-<pod>-<attempt>.
            return len(request.query.get("name", "").split("-")) == 4

        return {
            "create": matching(method="POST", path="*/containers/create", where=sandbox_create),
            "create container": matching(
                method="POST", path="*/containers/create", where=lambda r: not sandbox_create(r)
            ),
            # The first start is the sandbox's.
            "start container": matching(
                method="POST", path="*/containers/*/start", where=self._starts_container
            ),
            "terminate": matching(method="POST", path="*/containers/*/stop"),
            "after terminate": matching(method="DELETE", path="*/containers/*"),
            "remove": matching(method="DELETE", path="*/containers/*"),
            "list": matching(method="GET", path="*/containers/json"),
            "get": matching(method="GET", path="*/containers/json"),
            "restart": matching(
                method="POST", path="*/containers/*/start", where=self._starts_container
            ),
            # The import of our sandbox's image is a POST of the same path.
            "pull": matching(
                method="POST", path="*/images/create", where=lambda r: "fromImage" in r.query
            ),
        }[name]

    def _starts_container(self, request: Request) -> bool:
        container = request.path.split("/")[-2]
        status, answer = self.engine.api("GET", f"/containers/{container}/json")
        labels = answer["Config"]["Labels"] if status == 200 else {}
        return labels.get("spillway.dev/role") == "container"


MakeBackend = Callable[..., Backend]
