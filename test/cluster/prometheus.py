"""The real Prometheus on loopback, an exporter that says what a test wants, and promtool."""

from __future__ import annotations

import http.client
import http.server
import json
import pathlib
import subprocess
import threading
import urllib.parse
from collections.abc import Sequence
from typing import Any

import yaml

from . import binaries
from .processes import Child, Keeper, wait_for


class Exporter:
    """A page of metrics to scrape. `samples` is its text; None: it answers 500."""

    def __init__(self, samples: str | None = "") -> None:
        self.samples = samples
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = outer.samples
                self.send_response(500 if text is None else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.target = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Prometheus:
    """One process with a folder of its own; what it scraped stays over restarts."""

    def __init__(self, directory: pathlib.Path, *, interval: str = "1s") -> None:
        self._keeper = Keeper("prometheus", directory)
        self._interval = interval
        self._port = self._keeper.reserve_port()
        self._child: Child | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    def start(
        self,
        targets: dict[str, Sequence[str]],
        *,
        rules: Sequence[pathlib.Path] = (),
        timeout: float = 60.0,
    ) -> Prometheus:
        """Scrapes `targets`, {job: addresses}, and evaluates `rules`. Again after stop(), if need be."""
        config = {
            "global": {
                "scrape_interval": self._interval,
                "scrape_timeout": self._interval,
                "evaluation_interval": self._interval,
            },
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [
                {
                    "job_name": job,
                    "static_configs": [{"targets": list(addresses)}],
                    # A series may go over to times of its own, and back.
                    "track_timestamps_staleness": True,
                }
                for job, addresses in targets.items()
            ],
        }
        folder = self._keeper.directory
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        command = [
            binaries.binary("prometheus", "prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
            # What a page of its own would need is not built in, and not there.
            "--web.page-title=test",
        ]
        log = folder / "prometheus.log"
        self._child = self._keeper.spawn("prometheus", command, log=log, cwd=folder)

        def ready() -> bool:
            assert self._child is not None
            self._child.check_alive()
            try:
                return self._get("/-/ready")[0] == 200
            except OSError:
                return False

        wait_for(ready, "Prometheus is ready", timeout=timeout)
        return self

    def stop(self) -> None:
        """Nobody listens any more."""
        if self._child is not None:
            self._child.kill()
            self._keeper.forget(self._child)
            self._child = None

    def close(self) -> None:
        self._keeper.close()

    @property
    def child(self) -> Child:
        assert self._child is not None, "it was not started, or stopped"
        return self._child

    def _get(self, path: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = "json" in answer.headers.get("Content-Type", "")
            return answer.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def query(self, expression: str) -> list[float]:
        """The values of an instant query."""
        where = "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        status, answer = self._get(where)
        assert status == 200, answer
        result = answer["data"]["result"]
        if answer["data"]["resultType"] == "scalar":
            return [float(result[1])]
        return [float(element["value"][1]) for element in result]

    def wait_value(self, expression: str, *values: float, timeout: float = 20.0) -> None:
        what = f"{expression} is {values or 'nothing'}"
        wait_for(lambda: self.query(expression) == list(values), what, timeout=timeout)

    def rules(self) -> list[dict[str, Any]]:
        """All rules as they were last evaluated, with their `health`."""
        status, answer = self._get("/api/v1/rules")
        assert status == 200, answer
        return [rule for group in answer["data"]["groups"] for rule in group["rules"]]


def promtool(*arguments: str | pathlib.Path, timeout: float = 120.0) -> str:
    """Runs promtool; its words, which are an AssertionError if it failed."""
    command = [str(binaries.binary("prometheus", "promtool")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
