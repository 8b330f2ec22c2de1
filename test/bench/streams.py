"""What `kubectl logs` and `exec` cost: rates, round trips and memory, side by side with what they are made of.

Everything goes through the real API server. It proxies to no loopback address, so control plane, engine,
daemon and nginx stand in a network of their own.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import pathlib
import shutil
import socket
import ssl
import statistics
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import aiohttp

from test.bench.process import usage
from test.cluster import Cluster, Engine, Gate, Keeper, wait_for
from test.cluster.netns import NetworkNamespace
from test.e2e.backends import Backend, DockerBackend, FakeBackend
from test.e2e.fake_cloud import FakeCloud
from test.e2e.kubelet import CERTIFIED, Caller, approve, kubelet_port, token_of
from test.e2e.world import World, start

LOG_BYTES = 256 * 1024 * 1024
LINE = b"x" * 199 + b"\n"
ROUND_TRIPS = 300
STREAMS = 200
MANY_PODS = 5000
FILE_PORT = 8443


class Place:
    """A control plane, an engine and a daemon in a network of their own."""

    def __init__(self, directory: pathlib.Path, binary: pathlib.Path, stack: ExitStack) -> None:
        self.net = stack.enter_context(NetworkNamespace())
        self.keeper = stack.enter_context(closing(Keeper("streams", directory / "s")))
        self.directory = directory
        os.environ["SPILLWAY_BINARY"] = str(binary)
        self.cluster = stack.enter_context(Cluster())
        self.cluster.start(directory / "c")
        self.rights = self.cluster.spillway_kubeconfig()
        self._stack = stack

    def world(self, name: str, backend: Callable[[Keeper], Backend]) -> World:
        keeper = Keeper(name, self.directory / name[0])
        world = World(
            self.cluster,
            self.rights,
            keeper,
            profile={"internalIP": self.net.address},
            installation=name,
        )
        self._stack.callback(world.discard)
        world.backends.append(backend(keeper))
        start(world, kubelet={"port": 0, **CERTIFIED}, log_level="info")
        approve(world)
        return world

    def fake(self, name: str = "fake", *, in_process: bool = False) -> World:
        """Between the daemon and its cloud stands nothing; with `in_process` not even a socket."""

        def make(keeper: Keeper) -> Backend:
            cloud = FakeCloud(keeper).start()
            made = FakeBackend(cloud, Gate.unix(cloud.socket, keeper.directory / "gate.sock"))
            made.config["socket"] = str(cloud.socket)
            if in_process:
                made.config = {"mode": "inProcess"}
            return made

        return self.world(name, make)

    def docker(self, engine: Engine) -> World:
        def make(keeper: Keeper) -> Backend:
            gate = Gate.unix(engine.socket, keeper.directory / "gate.sock")
            return DockerBackend(engine, gate, endpoint=f"unix://{engine.socket}")

        return self.world("docker", make)

    def connect(self) -> http.client.HTTPSConnection:
        url = urllib.parse.urlsplit(self.cluster.server)
        return http.client.HTTPSConnection(
            url.hostname or "", url.port, context=self.context(), timeout=120
        )

    def context(self) -> ssl.SSLContext:
        """Of an administrator."""
        context = ssl.create_default_context(cafile=str(self.cluster.ca))
        certificate, key = self.cluster.issue_client_cert(
            "bench", common_name="bench", organizations=["system:masters"]
        )
        context.load_cert_chain(certificate, key)
        return context


# Rate


def read_rate(connection: http.client.HTTPConnection, path: str, size: int) -> float:
    """MiB a second until so many bytes have come."""
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    begin = time.monotonic()
    left = size
    buffer = bytearray(1 << 20)
    while left > 0:
        got = answer.readinto(memoryview(buffer))
        assert got > 0, f"the stream ended {left} bytes early"
        left -= got
    spent = time.monotonic() - begin
    connection.close()
    return size / spent / 1024 / 1024


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path) -> None:
        super().__init__("engine", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def serve_file(place: Place, namespace: str) -> None:
    """A node that is an nginx: the log of its one pod is a plain file, so that the path is the same."""
    folder = place.directory / "n"
    folder.mkdir()
    with open(folder / "file", "wb") as file:
        for _ in range(LOG_BYTES // (len(LINE) * 1024) + 1):
            file.write(LINE * 1024)
    certificate, key = place.cluster.issue_serving_cert("file", hosts=[place.net.address])
    (folder / "nginx.conf").write_text(
        f"""daemon off; pid {folder}/pid; error_log {folder}/error.log; user root;
events {{ worker_connections 64; }}
http {{ access_log off; sendfile on; tcp_nopush on;
  server {{ listen {place.net.address}:{FILE_PORT} ssl;
    location /containerLogs/ {{ try_files /file =404; root {folder}; }}
    ssl_certificate {certificate}; ssl_certificate_key {key}; }} }}
"""
    )
    place.keeper.spawn("nginx", [shutil.which("nginx") or "nginx", "-c", folder / "nginx.conf"])

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((place.net.address, FILE_PORT)) == 0

    wait_for(listens, "nginx listens")
    node = {"metadata": {"name": "file"}}
    status, answer = place.cluster.api("POST", "/api/v1/nodes", node)
    assert status == 201, answer
    answer["status"] = {
        "addresses": [{"type": "InternalIP", "address": place.net.address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": FILE_PORT}},
    }
    del answer["metadata"]["resourceVersion"]  # controllers write to it, too
    status, answer = place.cluster.api("PUT", "/api/v1/nodes/file/status", answer)
    assert status == 200, answer
    pod = {
        "metadata": {"name": "file"},
        "spec": {"nodeName": "file", "containers": [{"name": "main", "image": "none"}]},
    }
    status, answer = place.cluster.api("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    assert status == 201, answer


def measure_rates(place: Place, fake: World, docker: World) -> dict[str, float]:
    """The same number of bytes of a log and of a file: each three times, in turn; the best of each counts."""
    lines = LOG_BYTES // len(LINE) + 1
    command = f"yes {LINE.decode().strip()} | head -n {lines}; sleep 100000 & wait"
    docker.create_pod("talker", container={"command": ["sh", "-c", command]})
    wide = {"fake.spillway.dev/log-lines": "10000000", "fake.spillway.dev/log-width": "1000"}
    fake.create_pod("talker", annotations=wide)
    docker.wait_ready("talker", timeout=60)
    fake.wait_ready("talker")
    serve_file(place, fake.namespace)
    path = "/api/v1/namespaces/{}/pods/{}"
    file = path.format(fake.namespace, "file") + "/log?follow=true"
    log = path.format(docker.namespace, "talker") + "/log?follow=true"
    container = next(c["Id"] for c in docker.backend.containers("container"))
    engine = f"/v1.41/containers/{container}/logs?stdout=1&stderr=1&follow=1"
    made_up = path.format(fake.namespace, "talker") + "/log?follow=true"
    wait_for(lambda: _written(docker, container), "all is written", timeout=120)
    sources: dict[str, Callable[[], float]] = {
        "nginx": lambda: read_rate(place.connect(), file, LOG_BYTES),
        "log": lambda: read_rate(place.connect(), log, LOG_BYTES),
        "engine": lambda: read_rate(_Unix(docker.backend.engine.socket), engine, LOG_BYTES),
        "fake": lambda: read_rate(place.connect(), made_up, LOG_BYTES),
    }
    found: dict[str, list[float]] = {name: [] for name in sources}
    for _ in range(3):
        for name, read in sources.items():
            found[name].append(read())
    return {name: max(rates) for name, rates in found.items()}


def _written(docker: World, container: str) -> bool:
    """Whether `head` is through: only the shell and its sleep are left."""
    _, top = docker.backend.engine.api("GET", f"/containers/{container}/top")
    return not any(row[-1].startswith("head") for row in top.get("Processes", ()))


# Round trips


async def _through_kubernetes(place: Place, docker: World) -> tuple[list[float], list[float]]:
    """Of one line to `cat` and back, and of whole commands, in ms."""
    base = f"{place.cluster.server}/api/v1/namespaces/{docker.namespace}/pods/talker/exec"
    context = place.context()
    protocols = ("v5.channel.k8s.io",)
    lines, whole = [], []
    async with aiohttp.ClientSession() as session:
        query = "?command=cat&stdin=true&stdout=true"
        async with session.ws_connect(base + query, ssl=context, protocols=protocols) as stream:
            for _ in range(ROUND_TRIPS):
                begin = time.perf_counter()
                await stream.send_bytes(b"\x00ping\n")
                while b"ping" not in (await stream.receive_bytes()):
                    pass
                lines.append((time.perf_counter() - begin) * 1e3)
        for _ in range(ROUND_TRIPS // 10):
            begin = time.perf_counter()
            query = "?command=true&stdout=true"
            async with session.ws_connect(base + query, ssl=context, protocols=protocols) as stream:
                async for _message in stream:
                    pass
            whole.append((time.perf_counter() - begin) * 1e3)
    return lines, whole


def _through_engine(docker: World) -> tuple[list[float], list[float]]:
    container = next(c["Id"] for c in docker.backend.containers("container"))
    engine = docker.backend.engine

    def begin_exec(command: list[str], stdin: bool) -> tuple[socket.socket, str]:
        body = {"Cmd": command, "AttachStdin": stdin, "AttachStdout": True, "AttachStderr": True}
        _, made = engine.api("POST", f"/containers/{container}/exec", body)
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(str(engine.socket))
        body_text = b'{"Detach":false,"Tty":false}'
        raw.sendall(
            f"POST /v1.41/exec/{made['Id']}/start HTTP/1.1\r\nHost: engine\r\n"
            "Content-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
            f"Content-Length: {len(body_text)}\r\n\r\n".encode()
            + body_text
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += raw.recv(1)
        return raw, made["Id"]

    lines, whole = [], []
    raw, _ = begin_exec(["cat"], True)
    for _ in range(ROUND_TRIPS):
        begin = time.perf_counter()
        raw.sendall(b"ping\n")
        got = b""
        while b"ping\n" not in got:
            got += raw.recv(4096)
        lines.append((time.perf_counter() - begin) * 1e3)
    raw.close()
    for _ in range(ROUND_TRIPS // 10):
        begin = time.perf_counter()
        raw, name = begin_exec(["true"], False)
        while raw.recv(4096):
            pass
        raw.close()
        engine.api("GET", f"/exec/{name}/json")
        whole.append((time.perf_counter() - begin) * 1e3)
    return lines, whole


def measure_round_trips(place: Place, docker: World) -> dict[str, float]:
    engine_lines, engine_whole = _through_engine(docker)
    lines, whole = asyncio.run(_through_kubernetes(place, docker))
    return {
        "engine_ms": statistics.median(engine_lines),
        "exec_ms": statistics.median(lines),
        "engine_whole_ms": statistics.median(engine_whole),
        "exec_whole_ms": statistics.median(whole),
    }


# Memory


async def _growth(world: World, place: Place, paths: Iterator[str], protocol: str) -> float:
    """KiB of the daemon's memory for each of the streams, held open at once after as many before."""
    pid = world.daemon.child.pid
    context = place.context()

    async def hold(count: int) -> int:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            held: list[Any] = []
            for _ in range(count):
                url = place.cluster.server + next(paths)
                if protocol:
                    held.append(await session.ws_connect(url, ssl=context, protocols=(protocol,)))
                    await held[-1].send_bytes(b"\x00ping\n")
                    while b"ping" not in (await held[-1].receive_bytes()):
                        pass
                else:
                    held.append(await session.get(url, ssl=context))
                    await held[-1].content.readline()
            used = usage(pid).rss
            for one in held:
                (await one.close()) if protocol else one.close()
        return used

    few = await hold(STREAMS // 10)
    many = await hold(STREAMS)
    return (many - few) / (STREAMS - STREAMS // 10)


def measure_memory(place: Place, fake: World) -> dict[str, float]:
    fake.create_pod(
        "slow",
        annotations={
            "fake.spillway.dev/log-lines": "1000000",
            "fake.spillway.dev/log-every": "1s",
        },
    )
    fake.wait_ready("slow")
    pod = f"/api/v1/namespaces/{fake.namespace}/pods/slow"

    def always(path: str) -> Iterator[str]:
        while True:
            yield path

    log = always(f"{pod}/log?follow=true")
    shell = always(f"{pod}/exec?command=cat&stdin=true&stdout=true")
    return {
        "log_kib": asyncio.run(_growth(fake, place, log, "")),
        "exec_kib": asyncio.run(_growth(fake, place, shell, "v5.channel.k8s.io")),
    }


# /metrics/resource


def measure_resource_metrics(place: Place, fake: World) -> dict[str, float]:
    """ms of one answer about many pods, asked of the node itself; the median of twenty."""
    for number in range(MANY_PODS):
        fake.create_pod(f"many-{number}")
    listed = f"{fake.pods_path()}?limit=1&fieldSelector=status.phase%21%3DRunning"
    wait_for(lambda: not fake.cluster.get(listed)["items"], "all run", timeout=180)
    token = token_of(fake, "scraper", may=[("get", "metrics")])
    caller = Caller(place.net.address, kubelet_port(fake), token=token)
    spent, series = [], 0
    for _ in range(20):
        begin = time.perf_counter()
        answer = caller.ask("/metrics/resource")
        spent.append((time.perf_counter() - begin) * 1e3)
        assert answer.status == 200
        series = answer.body.count(b"\npod_cpu_usage_seconds_total{")
        time.sleep(0.2)
    assert series >= MANY_PODS, f"{series} of {MANY_PODS} pods in /metrics/resource"
    return {"resource_metrics_ms": statistics.median(spent)}


def measure_streams(directory: pathlib.Path, binary: pathlib.Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        place = Place(directory, binary, stack)
        engine = stack.enter_context(Engine().start(directory / "e"))
        engine.import_busybox_image()
        docker = place.docker(engine)
        rates = measure_rates(place, place.fake("quick", in_process=True), docker)
        fake = place.fake()
        figures |= {f"{name}_mib_s": rate for name, rate in rates.items()}
        figures |= measure_round_trips(place, docker)
        figures |= measure_memory(place, fake)
        figures |= measure_resource_metrics(place, fake)
    return figures
