"""`spillway fake-cloud` in a process of its own, and what only tests may ask of it."""

from __future__ import annotations

import json
from typing import Any

from test.cluster import Keeper, wait_for
from test.cluster.dockerd import UnixConnection
from test.cluster.processes import Child

from .daemon import BINARY


class FakeCloud:
    """One fake cloud. Its instances die with it, as in a real total loss."""

    def __init__(self, keeper: Keeper, *, name: str = "cloud", seed: int = 1, **settings: Any):
        self.socket = keeper.directory / f"{name}.sock"
        self.log = keeper.directory / f"{name}.log"
        self._keeper = keeper
        self._name = name
        self._seed = seed
        self._settings = keeper.directory / f"{name}.json"
        self._settings.write_text(json.dumps(settings))
        self._child: Child | None = None

    def start(self) -> FakeCloud:
        command = [BINARY, "fake-cloud", "--socket", self.socket, "--seed", str(self._seed)]
        command += ["--config", self._settings]
        self._child = self._keeper.spawn(self._name, command, log=self.log, env={"PATH": "/bin"})

        def answers() -> bool:
            assert self._child is not None
            self._child.check_alive()
            try:
                return self.call("GET", "/v1/healthz")[0] == 200
            except OSError:
                return False

        wait_for(answers, "the fake cloud answers", timeout=20, interval=0.02)
        return self

    @property
    def child(self) -> Child:
        assert self._child is not None
        return self._child

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request, past any gate: (status, decoded JSON)."""
        connection = UnixConnection(self.socket, 15)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def _must(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.call(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def fault(self, effect: str, **rule: Any) -> None:
        """From now on something goes wrong: keys as in providers/fake/README.md."""
        self._must("POST", "/v1/faults", {"effect": effect, **rule})

    def clear_faults(self) -> None:
        self._must("DELETE", "/v1/faults")

    def audit(self) -> dict[str, Any]:
        """{instances: [...every one ever], creates: {tag: calls}, calls: {call: number}}"""
        return self._must("GET", "/v1/audit")

    def instances(self) -> list[dict[str, Any]]:
        """Those that exist now, without those of strangers."""
        return [i for i in self.audit()["instances"] if i["gone"] is None and not i["foreign"]]

    def invoice(self) -> list[dict[str, Any]]:
        return self._must("GET", "/v1/invoice")["lines"]

    def kill(self, instance: str, how: str = "remove", **order: Any) -> None:
        """Hurts an instance behind its owner's back: remove, preempt or crash."""
        self._must("POST", f"/v1/instances/{instance}/kill", {"how": how, **order})

    def add_foreign(self, tag: str = "") -> str:
        """An instance of somebody else; returns its id."""
        return self._must("POST", "/v1/foreign", {"tag": tag})["id"]
