"""Kubernetes' own client speaks exec and port-forward with the daemon's code, in every dialect that it has."""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
import socket
import socketserver
import ssl
import subprocess
import threading
import urllib.request
from collections.abc import Iterator

import pytest

from test.cluster.binaries import binary
from test.cluster.cluster import REPOSITORY

SERVER = REPOSITORY / "build" / "release" / "stream_server"
MIB = 1024 * 1024


class Peer:
    """The server, and the client that talks to it."""

    def __init__(self, process: subprocess.Popen[str], scheme: str) -> None:
        assert process.stdout is not None
        self.process = process
        self.url = f"{scheme}://127.0.0.1:{int(process.stdout.readline())}"
        self.client = binary("streams", "streams")

    def words(self, dialect: str, *arguments: str) -> list[str]:
        return [str(self.client), "-server", self.url, "-dialect", dialect, *arguments]

    def exec(
        self, dialect: str, *arguments: str, data: bytes | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        stdin = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
        return subprocess.run(
            self.words(dialect, *arguments), capture_output=True, timeout=timeout, **stdin
        )

    def memory(self) -> int:
        """Resident, in KiB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    @contextlib.contextmanager
    def forward(self, dialect: str, *ports: int) -> Iterator[dict[int, int]]:
        """The local port of each port, while it lasts."""
        words = self.words(dialect, "forward", *map(str, ports))
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as client:
            assert client.stdout is not None
            try:
                lines = [client.stdout.readline().split() for _ in ports]
                yield {int(remote): int(local) for local, remote in lines}
            finally:
                client.communicate("", timeout=10)


@pytest.fixture(params=["http", "https"])
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    command = [SERVER, *(["tls"] if request.param == "https" else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Peer(process, request.param)
        finally:
            process.communicate("", timeout=10)
    assert process.returncode == 0


class Echo(socketserver.StreamRequestHandler):
    """Gives everything back, then says how much it was, in a direction that is then ended."""

    def handle(self) -> None:
        count = 0
        while data := self.request.recv(65536):
            self.request.sendall(data)
            count += len(data)
        self.request.sendall(f" {count} bytes".encode())


@pytest.fixture
def echo() -> Iterator[int]:
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 256

    with Server(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


EXEC = pytest.mark.parametrize("dialect", ["spdy", "v5"])
# v4 over a WebSocket cannot say that the input has ended.
EXEC_WITHOUT_INPUT = pytest.mark.parametrize("dialect", ["spdy", "v5", "v4"])
FORWARD = pytest.mark.parametrize("dialect", ["spdy", "tunnel"])


@EXEC_WITHOUT_INPUT
def test_outputs_come_apart_and_the_exit_code_is_passed_on(peer: Peer, dialect: str) -> None:
    done = peer.exec(dialect, "exec", "both")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")
    assert peer.exec(dialect, "exec", "exit", "7").returncode == 7
    assert peer.exec(dialect, "exec", "exit", "255").returncode == 255


@EXEC
def test_the_end_of_input_is_passed_on(peer: Peer, dialect: str) -> None:
    done = peer.exec(dialect, "-i", "exec", "drop", data=b"x" * 100_000)
    assert (done.returncode, done.stdout) == (0, b"100000\n")
    assert peer.exec(dialect, "-i", "exec", "cat", data=b"").stdout == b""


@EXEC
def test_a_hundred_megabytes_come_back_intact_in_little_memory(peer: Peer, dialect: str) -> None:
    data = b"".join(hashlib.sha256(i.to_bytes(4, "big")).digest() * 1024 for i in range(3200))
    assert len(data) == 100 * MIB
    before = peer.memory()
    done = peer.exec(dialect, "-i", "exec", "cat", data=data, timeout=120)
    assert done.returncode == 0
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert peer.memory() - before < 8 * 1024


@EXEC_WITHOUT_INPUT
def test_a_terminal_has_sizes_and_one_output(peer: Peer, dialect: str) -> None:
    done = peer.exec(dialect, "-t", "80x24,132x50", "exec", "size", "132x50")
    assert (done.returncode, done.stdout) == (0, b"132x50\n")


@EXEC
def test_a_command_that_does_not_read_ends_in_spite_of_it(peer: Peer, dialect: str) -> None:
    done = peer.exec(dialect, "-i", "exec", "deaf", data=b"x" * MIB)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@EXEC_WITHOUT_INPUT
def test_what_cannot_be_begun_is_told(peer: Peer, dialect: str) -> None:
    done = peer.exec(dialect, "exec", "refused")
    assert done.returncode == 125
    assert b"error executing command in container: this provider cannot run commands" in done.stderr


def test_a_protocol_that_is_not_spoken_is_refused(peer: Peer) -> None:
    done = peer.exec("v9", "exec", "both")
    assert done.returncode == 125
    assert b"this server speaks v5.channel.k8s.io" in done.stderr


@EXEC_WITHOUT_INPUT
def test_a_slow_client_gets_all_of_it(peer: Peer, dialect: str) -> None:
    words = peer.words(dialect, "exec", "flood", "20")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as client:
        assert client.stdout is not None
        total = 0
        while data := client.stdout.read(MIB // 4):
            total += len(data)
    assert (client.returncode, total) == (0, 20 * MIB)


def converse(port: int, data: bytes) -> bytes:
    """Says all, ends its direction, and hears all."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        writer = threading.Thread(
            target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR))
        )
        writer.start()
        heard = b"".join(iter(lambda: connection.recv(65536), b""))
        writer.join()
    return heard


@FORWARD
def test_a_connection_ends_in_halves(peer: Peer, dialect: str, echo: int) -> None:
    with peer.forward(dialect, echo) as ports:
        assert converse(ports[echo], b"hello") == b"hello 5 bytes"
        large = hashlib.sha256(b"x").digest() * 300_000
        assert converse(ports[echo], large) == large + f" {len(large)} bytes".encode()


@FORWARD
def test_many_connections_to_several_ports(peer: Peer, dialect: str, echo: int) -> None:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as second:
        threading.Thread(target=second.serve_forever, daemon=True).start()
        other = second.server_address[1]
        with peer.forward(dialect, echo, other) as ports:
            heard: dict[int, bytes] = {}

            def talk(number: int) -> None:
                port = ports[echo if number % 2 else other]
                heard[number] = converse(port, str(number).encode())

            threads = [threading.Thread(target=talk, args=(i,)) for i in range(100)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        second.shutdown()
    assert heard == {i: f"{i} {len(str(i))} bytes".encode() for i in range(100)}


@FORWARD
def test_a_port_that_nobody_listens_on_is_told(peer: Peer, dialect: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        silent = taken.getsockname()[1]
        words = peer.words(dialect, "forward", str(silent))
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as client:
            assert client.stdout is not None
            local = int(client.stdout.readline().split()[0])
            assert converse(local, b"hello") == b""
            _, errors = client.communicate("", timeout=10)
    assert f"error forwarding port {silent} to pod default/pod" in errors


def test_a_log_is_streamed_in_little_memory(peer: Peer) -> None:
    before = peer.memory()
    total = 0
    nobody = ssl._create_unverified_context()
    with urllib.request.urlopen(f"{peer.url}/log?mib=300", context=nobody) as response:
        assert response.headers["Transfer-Encoding"] == "chunked"
        while data := response.read(MIB):
            total += len(data)
    assert total == 300 * MIB
    assert peer.memory() - before < 4 * 1024
