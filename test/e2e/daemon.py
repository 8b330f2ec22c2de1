"""The daemon under test: one process with its configuration and its log."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from test.cluster import Keeper, wait_for
from test.cluster.cluster import REPOSITORY
from test.cluster.processes import Child

#: SPILLWAY_BINARY points the tests at another build.
BINARY = pathlib.Path(os.environ.get("SPILLWAY_BINARY", REPOSITORY / "build/release/spillway"))

#: After SIGKILL a successor may have to wait until the installation's lease runs out.
TAKE_OVER = 60.0

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def node_profile(name: str, **profile: Any) -> dict[str, Any]:
    """One entry of `nodes`; keys of `profile` win over what tests usually want."""
    return {
        "name": name,
        "internalIP": "127.0.0.1",
        "capacity": {"cpu": "1000", "memory": "4Ti", "pods": "250", "nvidia.com/gpu": "64"},
        **profile,
    }


def make_config(
    installation: str,
    nodes: Sequence[Mapping[str, Any]],
    providers: Sequence[Mapping[str, Any]],
    *,
    admin_port: int,
    namespace: str = "spillway-system",
    placement: Mapping[str, Any] | None = None,
    spend: Mapping[str, Any] | None = None,
    kubelet: Mapping[str, Any] | None = None,
    gate: Mapping[str, Any] | None = None,
    endpoints: Mapping[str, Any] | None = None,
    log_level: str = "debug",
) -> dict[str, Any]:
    """A whole configuration, with times that suit tests. `kubelet`: the section kubeletApi; None: off."""
    return {
        "apiVersion": "spillway.dev/v1",
        "installation": {"name": installation, "namespace": namespace},
        "nodes": [dict(node) for node in nodes],
        "providers": [dict(provider) for provider in providers],
        "placement": {"orphanGrace": "2s", "createDeadline": "5s", **(placement or {})},
        "spend": dict(spend or {}),
        "kubeletApi": {"enabled": True, **kubelet} if kubelet is not None else {},
        "gate": dict(gate or {}),
        "endpoints": dict(endpoints or {}),
        "admin": {"port": admin_port},
        "log": {"level": log_level, "format": "json"},
    }


class Daemon:
    """One daemon. Its log goes on over restarts; methods named after signals send them."""

    def __init__(
        self,
        keeper: Keeper,
        name: str,
        config: Mapping[str, Any],
        kubeconfig: pathlib.Path,
        *,
        command: str = "run",
        arguments: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._command = command
        self.kubeconfig = kubeconfig
        self.log = keeper.directory / f"{name}.log"
        self.config_file = keeper.directory / f"{name}.yaml"
        self.port = int(config["admin"]["port"])
        self._keeper = keeper
        self._arguments = list(arguments)
        self._child: Child | None = None
        self.starts = 0
        self.write_config(config)

    def write_config(self, config: Mapping[str, Any]) -> None:
        self.config = dict(config)
        self.config_file.write_text(yaml.safe_dump(dict(config), sort_keys=False))

    # Life

    def start(self) -> Daemon:
        assert not self.running, f"{self.name} runs already"
        if self._child is not None:
            self._keeper.forget(self._child)
        command = [BINARY, self._command, "--config", self.config_file]
        command += ["--kubeconfig", self.kubeconfig, *self._arguments]
        # The proxies of the machine are none of the daemon's business.
        self._child = self._keeper.spawn(self.name, command, log=self.log, env={"PATH": "/bin"})
        self.starts += 1
        return self

    def restart(self, timeout: float = TAKE_OVER) -> float:
        """Starts again, waits until it is ready, and returns how long that took."""
        begin = time.monotonic()
        self.start()
        self.wait_ready(timeout)
        spent = time.monotonic() - begin
        print(f"{self.name}: ready {spent:.2f} s after start number {self.starts}")
        return spent

    @property
    def child(self) -> Child:
        assert self._child is not None, f"{self.name} was never started"
        return self._child

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.alive()

    def wait_ready(self, timeout: float = TAKE_OVER) -> None:
        def ready() -> bool:
            self.child.check_alive()
            return self.admin("/readyz")[0] == 200

        try:
            wait_for(ready, "ready", timeout=timeout)
        except TimeoutError:
            raise TimeoutError(
                f"{self.name} is not ready after {timeout:g} s: {self.admin('/readyz')}; "
                f"the end of its log:\n{self.child.log_tail(15)}"
            ) from None

    def kill9(self) -> None:
        """SIGKILL; returns when it is gone."""
        self.child.kill()

    def sigterm(self, timeout: float = 15.0) -> tuple[int | None, float]:
        """SIGTERM; its exit code (None: it did not end) and how long it took."""
        begin = time.monotonic()
        self.child.send_signal(signal.SIGTERM)
        ended = self.child.wait(timeout)
        return (self.child.returncode if ended else None), time.monotonic() - begin

    def sigstop(self) -> None:
        self.child.send_signal(signal.SIGSTOP)

    def sigcont(self) -> None:
        self.child.send_signal(signal.SIGCONT)

    def wait_exit(self, timeout: float = 15.0) -> int | None:
        assert self.child.wait(timeout), f"{self.name} still runs after {timeout:g} s"
        return self.child.returncode

    # What it shows

    def admin(self, path: str) -> tuple[int, str]:
        """GET at the admin port; status 0 if nobody listens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """All samples by name and labels."""
        status, text = self.admin("/metrics")
        assert status == 200, f"/metrics answers {status}"
        samples = {}
        for line in text.splitlines():
            found = _SAMPLE.match(line)
            if found and not line.startswith("#"):
                labels = frozenset(_LABEL.findall(found[2] or ""))
                samples[found[1], labels] = float(found[3])
        return samples

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels; 0 if there are none."""
        wanted = set(labels.items())
        return sum(v for (n, have), v in self.metrics().items() if n == name and wanted <= have)

    def debug_pods(self) -> list[dict[str, Any]]:
        status, text = self.admin("/debug/pods")
        assert status == 200, f"/debug/pods answers {status}"
        return json.loads(text)

    def log_lines(self, *, text: str = "", level: str = "") -> list[dict[str, Any]]:
        """The log's entries whose line contains `text`, oldest first."""
        entries = []
        for line in self.log.read_text(errors="replace").splitlines():
            if text not in line:
                continue
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                entry = {"level": "unparsed", "msg": line}
            if not level or entry.get("level") == level:
                entries.append(entry)
        return entries

    def wait_logged(
        self,
        text: str,
        timeout: float = 15.0,
        *,
        where: Callable[[dict[str, Any]], bool] | None = None,
    ) -> dict[str, Any]:
        """The first entry that contains `text` (and for which `where` holds)."""

        def found() -> dict[str, Any] | None:
            entries = self.log_lines(text=text)
            return next((e for e in entries if where is None or where(e)), None)

        return wait_for(found, f"{self.name} logs {text!r}", timeout=timeout)
