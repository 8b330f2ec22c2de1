"""kubectl on the virtual node: what it prints, and how it exits. The node is behind the real API server."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import http.client
import os
import pathlib
import pty
import re
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest

from test.cluster import Cluster, wait_for

from .backends import FOREVER, Workload
from .conftest import Worlds
from .kubelet import (
    CERTIFIED,
    CURRENT,
    OLDER,
    SPDY,
    Release,
    approve,
    background,
    forwarded,
    kubectl,
    kubectl_command,
)
from .world import World, container_state, phase


@pytest.fixture(scope="module")
def make_nodes(
    request: pytest.FixtureRequest, cluster: Cluster, rights: pathlib.Path, short_tmp: pathlib.Path
) -> Iterator[Any]:
    """make_nodes(kind): a world whose node kubectl can look into; the module's one of that kind."""
    made: dict[str, tuple[Worlds, World]] = {}

    def make(kind: str) -> World:
        if kind not in made:
            worlds = Worlds(
                cluster, rights, short_tmp, lambda: request.getfixturevalue("engine")
            )
            world = worlds(
                kind,
                installation=f"kubectl-{kind}",
                daemon={"kubelet": {"port": 0, **CERTIFIED}},
            )
            made[kind] = (worlds, world)
            approve(world)
        return made[kind][1]

    yield make
    for worlds, _ in made.values():
        worlds.end(False, request.node.name)


# The fake cloud: what its pods write and answer is made up, and always the same.


def orders(**given: str) -> dict[str, str]:
    return {f"fake.spillway.dev/{key.replace('_', '-')}": value for key, value in given.items()}


@pytest.fixture(scope="module")
def ward(make_nodes: Any) -> World:
    """A node with pods in every state that a log can be asked for in."""
    world: World = make_nodes("fake")
    world.create_pod("web", annotations=orders(log_lines="3"))
    two = [{"name": name, "image": "busybox:test"} for name in ("main", "side")]
    world.create_pod("two", annotations=orders(log_lines="2"), containers=two)
    done = orders(log_lines="2", run_for="100ms")
    world.create_pod("done", Workload({}), annotations=done, restartPolicy="Never")
    failing = {**done, **orders(exit_code="3")}
    world.create_pod("failed", Workload({}), annotations=failing, restartPolicy="Never")
    world.create_pod("again", Workload({}), annotations={**done, **orders(exit_code="1")})
    world.create_pod("imageless", world.backend.missing_image())
    world.wait_ready("web", "two")
    world.wait_phase("done", "Succeeded")
    world.wait_phase("failed", "Failed")

    def started_again(pod: Any) -> bool:
        statuses = pod["status"].get("containerStatuses", ())
        return any(status["restartCount"] >= 1 for status in statuses)

    world.wait_pod("again", started_again, "started again", timeout=40)
    world.wait_pod("imageless", lambda pod: container_state(pod)[0] == "waiting", "waiting")
    return world


@dataclasses.dataclass
class Row:
    """One invocation. `out` and `err` are patterns of the whole output; {ns} is the namespace."""

    command: str
    out: str = ""
    err: str = ""
    code: int = 0
    input: bytes = b""


LINE = "{ns}/%s %s run %d: line %d of %d\n"


def lines(pod: str, container: str, numbers: range, of: int, run: int = 1, prefix: str = "") -> str:
    return "".join(prefix + LINE % (pod, container, run, n, of) for n in numbers)


WEB = lines("web", "main", range(1, 4), 3)
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z "
DEFAULTED = r'Defaulted container "main" out of: main, side\n'

ROWS = [
    # logs
    Row("logs web", WEB),
    Row("logs web -f --limit-bytes=5", "^.....$"),
    Row("logs web --tail=1", lines("web", "main", range(3, 4), 3)),
    Row("logs web --tail=2", lines("web", "main", range(2, 4), 3)),
    Row("logs web --tail=0", ""),
    Row("logs web --tail=1000", WEB),
    Row("logs web --tail=-1", WEB),
    Row("logs web --limit-bytes=5", "^.....$"),
    Row("logs web --limit-bytes=100000", WEB),
    Row("logs web --since=1h", WEB),
    Row("logs web --since-time=2020-01-01T00:00:00Z", WEB),
    Row("logs web --since-time=2120-01-01T00:00:00Z", ""),
    Row("logs web --timestamps", "".join(TIME + line + "\n" for line in WEB.splitlines())),
    Row("logs web --timestamps --tail=1", TIME + lines("web", "main", range(3, 4), 3)),
    Row("logs web -c main", WEB),
    Row("logs web --all-containers", WEB),
    Row("logs web --prefix --tail=1", lines("web", "main", range(3, 4), 3, prefix=r"\[pod/web/main\] ")),
    Row("logs pod/web", WEB),
    Row("logs two", lines("two", "main", range(1, 3), 2), DEFAULTED),
    Row("logs two -c side", lines("two", "side", range(1, 3), 2)),
    Row("logs two --all-containers --prefix", r"(\[pod/two/(main|side)\] .* line [12] of 2\n){4}"),
    Row("logs done", lines("done", "main", range(1, 3), 2)),
    Row("logs done -f", lines("done", "main", range(1, 3), 2)),
    Row("logs failed", lines("failed", "main", range(1, 3), 2)),
    Row("logs failed --tail=1 --timestamps", TIME + lines("failed", "main", range(2, 3), 2)),
    Row("logs again --previous --tail=1", r".* main run \d+: line 2 of 2\n"),
    Row("logs web --previous", "", r'.*previous terminated container "main" in pod "web" not found\n', 1),
    Row("logs web -c nope", "", r".*container nope is not valid for pod web( out of: main)?\n", 1),
    Row("logs imageless", "", r".*is waiting to start: (image can't be pulled|trying and failing to pull image)\n", 1),
    Row("logs absent", "", r'.*pods "absent" not found.*\n', 1),
    Row("logs web --since=-1h", "", r"(?s).*since.*", 1),
    Row("logs web --since=1h --since-time=2020-01-01T00:00:00Z", "", r"(?s).*at most one of.*", 1),
    # exec
    Row("exec web -- echo hello world", "hello world\n"),
    Row("exec web -- true"),
    Row("exec web -- false", "", "command terminated with exit code 1\n", 1),
    Row("exec web -- exit 7", "", "command terminated with exit code 7\n", 7),
    Row("exec web -- exit 126", "", "command terminated with exit code 126\n", 126),
    Row("exec web -- sh -c 'echo out'", "out\n"),
    Row("exec web -- echo oops '>&2'", "", "oops\n"),
    Row("exec -i web -- cat", "one\ntwo\n", input=b"one\ntwo\n"),
    Row("exec -i web -- cat", "", input=b""),
    Row("exec web -c main -- echo here", "here\n"),
    Row("exec two -- echo first", "first\n", DEFAULTED),
    Row("exec two -c side -- echo second", "second\n"),
    Row("exec pod/web -- echo hello", "hello\n"),
    Row("exec web -c nope -- true", "", r"(?s).*container nope is not valid for pod web.*", 1),
    Row("exec absent -- true", "", r'.*pods "absent" not found\n', 1),
    Row("exec done -- true", "", r".*cannot exec into a container in a completed pod; current phase is Succeeded\n", 1),
    Row("exec imageless -- true", "", r"(?s).*(waiting to start|not found).*", 1),
    Row("exec again -- true", "", r"(?s).*", -1),
    Row("exec web", "", r"(?s).*specify at least one command.*", 1),
    # attach
    Row("attach -i web", "typed\n", r"(?s).*", input=b"typed\n"),
    Row("attach web -c nope", "", r"(?s).*container nope.*not.*", 1),
    Row("attach done", "", r".*cannot attach a container in a completed pod; current phase is Succeeded\n", 1),
    # the rest
    Row("port-forward pod/absent :80", "", r'.*pods "absent" not found\n', 1),
    Row("port-forward pod/done :80", "", r"(?s).*unable to forward port because pod is not running.*", 1),
    Row("get pods web -o name", "pod/web\n"),
    Row("describe pod web", r"(?s).*Node: .*{node}.*"),
    Row("cp web:/etc/absent /dev/null", r"(?s).*", r"error: .*\n", 1),
]


releases = pytest.mark.parametrize("release", [CURRENT, OLDER, SPDY], ids=["current", "1.32", "SPDY"])


@releases
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_kubectl_prints_and_exits_as_on_a_node_of_iron(
    ward: World, row: Row, release: Release
) -> None:
    arguments = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", row.command)]
    done = kubectl(ward, *arguments, input=row.input, release=release)
    shown = f"exit {done.code}\n-- out\n{done.text}\n-- err\n{done.err}"
    if row.code >= 0:
        assert done.code == row.code, shown
    for pattern, text in ((row.out, done.text), (row.err, done.err)):
        filled = pattern.replace("{ns}", ward.namespace).replace("{node}", ward.node)
        assert re.fullmatch(filled.removeprefix("^").removesuffix("$"), text), shown


def test_a_followed_log_ends_with_its_container(make_nodes: Any) -> None:
    world: World = make_nodes("fake")
    more = orders(log_lines="4", log_every="500ms", run_for="2500ms")
    world.create_pod("short", Workload({}), annotations=more, restartPolicy="Never")
    world.wait_ready("short")
    begin = time.monotonic()
    done = kubectl(world, "logs", "-f", "short")
    assert done.code == 0
    assert [line.rsplit(": ")[1] for line in done.text.splitlines()] == [f"line {n} of 4" for n in range(1, 5)]
    assert time.monotonic() - begin < 20
    world.delete_pod("short")


def test_a_followed_log_ends_when_its_pod_is_deleted(make_nodes: Any) -> None:
    world: World = make_nodes("fake")
    world.create_pod("gone", annotations=orders(log_lines="1000", log_every="100ms"))
    world.wait_ready("gone")
    with background(world, "logs", "-f", "gone") as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith(f"{world.namespace}/gone main run 1: line 1 ".encode())
        world.delete_pod("gone")
        assert follower.wait(30) == 0


@releases
def test_debug_is_refused_with_its_reason(ward: World, release: Release) -> None:
    done = kubectl(ward, "debug", "web", "-i", "--image=busybox:test", "--", "true", release=release)
    assert done.code == 1, done.text + done.err
    assert "ephemeral containers are not supported" in done.err


@releases
def test_ports_of_a_pod_are_forwarded_many_connections_at_a_time(
    ward: World, release: Release
) -> None:
    with forwarded(ward, "web", 8080, release) as port:
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/")
            assert connection.getresponse().status == 200
            connection.close()
        sockets = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(8)]
        for number, one in enumerate(sockets):
            one.sendall(f"number {number}\n".encode())
        for number, one in enumerate(sockets):
            assert one.makefile().readline() == f"number {number}\n"
            one.close()


def test_a_pod_without_its_kubelet_api_says_so(make_world: Worlds) -> None:
    world = make_world("fake")
    world.create_pod("web")
    world.wait_ready("web")
    done = kubectl(world, "logs", "web")
    assert done.code == 1
    assert "Error from server" in done.err


# A real engine: real processes, real bytes.


@pytest.fixture(scope="module")
def box(make_nodes: Any) -> World:
    world: World = make_nodes("docker")
    serve = "mkdir -p /www; echo served > /www/index.html; httpd -p 127.0.0.1:8080 -h /www; "
    world.create_pod("web", container={"command": ["sh", "-c", serve + "trap 'exit 0' TERM; sleep 100000 & wait"]})
    fail = "echo to stdout; echo to stderr >&2; exit 3"
    world.create_pod("failed", Workload(container={"command": ["sh", "-c", fail]}), restartPolicy="Never")
    world.create_pod("loop", Workload(container={"command": ["sh", "-c", "echo run at $(date +%s); exit 1"]}))
    world.wait_ready("web", timeout=60)
    world.wait_phase("failed", "Failed", timeout=60)
    return world


def test_the_log_of_a_container_that_failed_is_kept_until_its_pod_is_deleted(box: World) -> None:
    done = kubectl(box, "logs", "failed")
    assert (done.code, sorted(done.text.splitlines())) == (0, ["to stderr", "to stdout"])


def test_the_log_before_the_last_restart_can_be_read(box: World) -> None:
    def restarted(pod: Any) -> bool:
        return pod["status"]["containerStatuses"][0]["restartCount"] >= 1

    box.wait_pod("loop", restarted, "started again", timeout=60)
    wait_for(lambda: kubectl(box, "logs", "loop", "--previous").code == 0, "the previous log", timeout=30)
    previous = kubectl(box, "logs", "loop", "--previous").text
    latest = kubectl(box, "logs", "loop").text
    assert re.fullmatch(r"run at \d+\n", previous)
    assert re.fullmatch(r"run at \d+\n", latest)
    assert previous != latest


def test_binary_bytes_and_long_lines_come_through_a_log(box: World) -> None:
    script = "head -c 299999 /dev/zero | tr '\\0' x; echo x; printf 'a\\001\\377\\r\\tb\\n'"
    box.create_pod("bytes", Workload(container={"command": ["sh", "-c", script]}), restartPolicy="Never")
    box.wait_phase("bytes", "Succeeded", timeout=60)
    done = kubectl(box, "logs", "bytes")
    assert done.code == 0
    assert done.out == b"x" * 300000 + b"\n" + b"a\x01\xff\r\tb\n"
    box.delete_pod("bytes")


def test_commands_run_with_their_streams_apart_and_their_exit_code(box: World) -> None:
    done = kubectl(box, "exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
    assert (done.code, done.text) == (42, "out\n")
    assert done.err == "err\ncommand terminated with exit code 42\n"
    missing = kubectl(box, "exec", "web", "--", "no-such-program")
    # An engine writes why to the output, and the code says that nothing ran.
    assert missing.code in (126, 127)
    assert "no-such-program" in missing.text


def test_what_is_run_and_typed_stands_in_no_log(box: World) -> None:
    script = "cat; echo canary-of-the-command"
    done = kubectl(box, "exec", "-i", "web", "--", "sh", "-c", script, input=b"canary-of-the-input\n")
    assert done.text == "canary-of-the-input\ncanary-of-the-command\n"
    assert "canary-of-the" not in box.daemon.log.read_text()


@releases
def test_a_hundred_megabytes_go_in_and_come_back_intact(box: World, release: Release) -> None:
    data = hashlib.shake_256(b"spillway").digest(1 << 20) * 100
    command = ("exec", "-i", "web", "--", "cat")
    done = kubectl(box, *command, input=data, timeout=240, release=release)
    assert done.code == 0, done.err
    assert hashlib.sha256(done.out).hexdigest() == hashlib.sha256(data).hexdigest()


def test_a_terminal_has_the_size_it_is_told(box: World) -> None:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    command, environment = kubectl_command(box, "exec", "-it", "web", "--", "sh", "-c", "sleep 1; stty size")
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        while b"33 77" not in shown:
            try:
                piece = os.read(leader, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        assert process.wait(20) == 0
    os.close(leader)
    assert b"33 77" in shown


def test_a_shell_ends_with_its_pod(box: World) -> None:
    box.create_pod("short", Workload(container={"command": ["sh", "-c", FOREVER]}))
    box.wait_ready("short", timeout=60)
    with background(box, "exec", "-i", "short", "--", "cat") as shell:
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write(b"hello\n")
        shell.stdin.flush()
        assert shell.stdout.readline() == b"hello\n"
        box.delete_pod("short")
        assert shell.wait(30) != 0


@releases
def test_files_are_copied_both_ways(
    box: World, tmp_path: pathlib.Path, release: Release
) -> None:
    data = hashlib.shake_256(b"a file").digest(5 << 20)
    there = tmp_path / "there"
    there.write_bytes(data)
    assert kubectl(box, "cp", str(there), "web:/tmp/copy", timeout=120, release=release).code == 0
    back = tmp_path / "back"
    assert kubectl(box, "cp", "web:/tmp/copy", str(back), timeout=120, release=release).code == 0
    assert back.read_bytes() == data


@releases
def test_a_port_of_loopback_alone_is_forwarded(box: World, release: Release) -> None:
    with forwarded(box, "web", 8080, release) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/index.html")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"served\n")
        connection.close()


def test_a_port_at_which_nobody_listens_is_told(box: World) -> None:
    with background(box, "port-forward", "pod/web", ":9") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().decode().split(" -> ")[0].rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
            one.sendall(b"anybody?\n")
            assert one.recv(100) == b""
        assert process.stderr is not None
        assert b"error" in process.stderr.readline().lower()


def test_attach_shows_what_the_process_says_and_feeds_it(box: World) -> None:
    reader = Workload(container={"command": ["sh", "-c", "while read line; do echo got $line; done"], "stdin": True})
    box.create_pod("reader", reader)
    box.wait_ready("reader", timeout=60)
    with background(box, "attach", "-i", "reader") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"got one\n"
    assert phase(box.pod("reader")) == "Running"
    box.delete_pod("reader")
