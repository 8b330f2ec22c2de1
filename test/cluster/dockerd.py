"""A private Docker engine: its own data, socket and bridge, gone without a trace when stopped."""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tarfile
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from .processes import Child, Keeper, ProcessError, start_time, wait_for

API_VERSION = "v1.41"

# The kernel's limit of a unix socket's path, less its final zero.
_SOCKET_PATH_LIMIT = 107

# containerd's socket, which the engine makes below its exec root, must fit as well.
_LONGEST_SOCKET = "exec/containerd/containerd-debug.sock"

# Runs as the first process of a pid and mount namespace of its own: killing it kills containerd,
# every shim and every container, and takes every mount along. The empty /run keeps the engine from
# finding (and using) a containerd of the machine, and its own sockets there from staying behind.
_INIT = 'mount -t tmpfs tmpfs /run && exec "$0" "$@"'


class EngineError(RuntimeError):
    """The engine answered a request or command with an error."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class UnixConnection(http.client.HTTPConnection):
    """HTTP/1.1 over a unix socket."""

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = os.fspath(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Engine:
    """One dockerd in a folder of its own. Several stand side by side.

    Its containers get addresses of a documentation range on a bridge without routes or iptables;
    ports published on 127.0.0.1 work through Docker's userland proxy. `network_prefix` sets how
    many containers fit: 26 holds 60, 24 holds 250. Process ids that the engine reports are
    those of its own pid namespace.
    """

    def __init__(self, *, network_prefix: int = 26, extra_args: Sequence[str] = ()) -> None:
        self._network_prefix = network_prefix
        self._extra_args = list(extra_args)
        self._keeper: Keeper | None = None
        self._flags: list[str] = []
        self._namespace: Child | None = None
        self.directory = pathlib.Path()
        self.network = ipaddress.IPv4Network("198.51.100.0/24")

    # Life

    def start(self, directory: str | os.PathLike[str], *, timeout: float = 30.0) -> Engine:
        """Starts the engine and returns once it answers. `directory` is made, and removed by
        stop() if it was empty or absent.
        """
        if self._keeper is not None:
            raise ProcessError("this engine is already started: make another Engine()")
        path = pathlib.Path(directory).absolute()
        longest = path / _LONGEST_SOCKET
        if len(os.fsencode(longest)) > _SOCKET_PATH_LIMIT:
            raise ProcessError(
                f"{longest} is longer than a unix socket's path may be ({_SOCKET_PATH_LIMIT} "
                f"bytes): use a shorter folder for the engine"
            )
        for program in ("dockerd", "unshare", "ip"):
            if shutil.which(program) is None:
                raise ProcessError(f"{program} is not installed: run `make setup`")
        self._keeper = Keeper("engine", path)
        self.directory = self._keeper.directory
        try:
            bridge, self.network = self._keeper.add_bridge(self._network_prefix)
            (self.directory / "daemon.json").write_text("{}")
            self._flags = [
                f"--config-file={self.directory / 'daemon.json'}",
                f"--data-root={self.directory / 'data'}",
                f"--exec-root={self.directory / 'exec'}",
                f"--host=unix://{self.socket}",
                f"--pidfile={self.directory / 'd.pid'}",
                f"--cgroup-parent={self._keeper.add_cgroup()}",
                f"--bridge={bridge}",
                "--iptables=false",
                "--ip-forward=false",
                "--ip-masq=false",
                # Containers have no way out: without this they would be given public servers.
                "--dns=127.0.0.1",
                "--log-level=warn",
                *self._extra_args,
            ]
            self._run(timeout)
        except BaseException:
            self._keeper.close()
            self._keeper = None
            raise
        return self

    def _run(self, timeout: float) -> None:
        self._namespace = self._require().spawn(
            "dockerd",
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
                *("sh", "-c", _INIT, "dockerd"),
                *self._flags,
            ],
            log=self.directory / "dockerd.log",
        )

        def answers() -> bool:
            self._namespace.check_alive()
            try:
                return self.api("GET", "/_ping")[0] == 200
            except OSError:
                return False

        try:
            wait_for(answers, "the engine answers", timeout=timeout, interval=0.02)
        except TimeoutError as error:
            tail = self._namespace.log_tail()
            raise ProcessError(f"{error}; the end of its log:\n{tail}") from None

    def stop(self, *, save_logs_to: pathlib.Path | None = None) -> None:
        """Ends the engine and all its containers, and removes everything it had."""
        if self._keeper is None:
            return
        log = self.directory / "dockerd.log"
        if save_logs_to is not None and log.exists():
            save_logs_to.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, save_logs_to)
        self.kill()
        self._keeper.close()
        self._keeper = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        """A power cut: engine and containers end at once; the data stays for start_again()."""
        if self._namespace is None:
            return
        # The namespace's first process goes first, so that `unshare`, its parent, can reap it.
        self.signal(signal.SIGKILL)
        if not self._namespace.wait(5):
            self._namespace.kill()
        self._require().forget(self._namespace)
        self._namespace = None

    def start_again(self, *, timeout: float = 30.0) -> None:
        """Starts the engine on the data that kill() left. Its containers are there, exited."""
        for name in ("d.pid", "d.sock"):
            (self.directory / name).unlink(missing_ok=True)
        shutil.rmtree(self.directory / "exec", ignore_errors=True)
        self._run(timeout)

    def signal(self, number: int) -> None:
        """Signals dockerd itself; SIGSTOP makes an engine that hangs, SIGCONT wakes it."""
        if self._namespace is None or not self._namespace.alive():
            return
        parent = self._namespace.pid
        children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for pid in map(int, children):
            Child("dockerd", pid, start_time(pid)).send_signal(number)

    # Access

    @property
    def socket(self) -> pathlib.Path:
        """The engine's unix socket."""
        return self.directory / "d.sock"

    def docker(
        self,
        *arguments: str,
        input: bytes | None = None,
        check: bool = True,
        timeout: float = 60.0,
    ) -> str:
        """Runs the docker command line on this engine and returns its stdout (stripped)."""
        done = subprocess.run(
            [_docker_command(), "--host", f"unix://{self.socket}", *arguments],
            input=input,
            capture_output=True,
            timeout=timeout,
            env=os.environ | {"DOCKER_CONFIG": str(self.directory)},
        )
        if check and done.returncode != 0:
            raise EngineError(
                f"docker {' '.join(arguments)} exited {done.returncode}: "
                f"{done.stderr.decode(errors='replace').strip()}"
            )
        return done.stdout.decode(errors="replace").strip()

    def api(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        timeout: float = 60.0,
    ) -> tuple[int, Any]:
        """One request: (status, decoded JSON or text). `body` goes as JSON unless it is bytes."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        target = f"/{API_VERSION}{path}"
        if query:
            target += "?" + urllib.parse.urlencode(query)
        connection = UnixConnection(self.socket, timeout)
        try:
            headers = {"Content-Type": content_type} if data is not None else {}
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
        if response.headers.get("Content-Type", "") == "application/json" and text:
            try:
                return response.status, json.loads(text)
            except json.JSONDecodeError:
                # Progress of pulls and imports is a sequence of JSON documents.
                return response.status, text
        return response.status, text

    def containers(self, label: str | None = None) -> list[dict[str, Any]]:
        """All containers, also those that have exited; with `label` ("key" or "key=value") only
        those that have it.
        """
        query = {"all": "1"}
        if label is not None:
            query["filters"] = json.dumps({"label": [label]})
        return self._expect(200, *self.api("GET", "/containers/json", query=query))

    def images(self) -> list[str]:
        """Names (repository:tag) of all images."""
        found = self._expect(200, *self.api("GET", "/images/json"))
        return sorted(tag for image in found for tag in image["RepoTags"] or ())

    def leftovers(self) -> dict[str, list[str]]:
        """What exists beyond an empty engine: names of containers, volumes, networks. Empty lists
        after a test that cleaned up.
        """
        volumes = self._expect(200, *self.api("GET", "/volumes"))["Volumes"] or ()
        networks = self._expect(200, *self.api("GET", "/networks"))
        return {
            "containers": sorted(c["Names"][0].lstrip("/") for c in self.containers()),
            "volumes": sorted(volume["Name"] for volume in volumes),
            "networks": sorted(
                n["Name"] for n in networks if n["Name"] not in ("bridge", "host", "none")
            ),
        }

    def import_busybox_image(
        self, name: str = "busybox:test", *, changes: Sequence[str] = ()
    ) -> str:
        """Makes an image of busybox with all its applets (sh, httpd, nc, wget, seq, date, ...).

        `changes` are Dockerfile lines such as 'CMD ["httpd", "-f"]'. Returns the image's id.
        """
        repository, _, tag = name.partition(":")
        query = [("fromSrc", "-"), ("repo", repository), ("tag", tag or "latest")]
        query += [("changes", change) for change in ("ENV PATH=/bin", *changes)]
        status, answer = self.api(
            "POST",
            f"/images/create?{urllib.parse.urlencode(query)}",
            busybox_tar(),
            content_type="application/x-tar",
        )
        if status != 200 or "error" in str(answer):
            raise EngineError(f"import of {name}: {status} {answer}", status)
        return self._expect(200, *self.api("GET", f"/images/{name}/json"))["Id"]

    def _require(self) -> Keeper:
        if self._keeper is None:
            raise ProcessError("the engine is not running: call start() first")
        return self._keeper

    def _expect(self, wanted: int, status: int, answer: Any) -> Any:
        if status != wanted:
            raise EngineError(f"the engine answered {status}: {answer}", status)
        return answer


def _docker_command() -> str:
    # Debian's own, of the engine's version, before whatever else is on PATH.
    return shutil.which("docker", path=f"/usr/bin:{os.environ.get('PATH', '')}") or "docker"


def busybox_tar() -> bytes:
    """A root file system of Debian's static busybox and links to it, as a tar."""
    binary = pathlib.Path("/bin/busybox")
    if not binary.exists():
        raise EngineError("/bin/busybox is missing: run `make setup`, which installs it")
    applets = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "etc", "tmp", "root", "www"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        program = tarfile.TarInfo("bin/busybox")
        content = binary.read_bytes()
        program.size, program.mode = len(content), 0o755
        tar.addfile(program, io.BytesIO(content))
        for applet in applets.stdout.split():
            if applet == "busybox":
                continue
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for path, text in (
            ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"),
            ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        ):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text), 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()
