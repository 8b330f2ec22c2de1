"""Processes, ports, bridges and folders of the tests, and the promise that none outlives its owner.

A `Keeper` is what one resource (a cluster, an engine, a daemon under test) holds on this machine.
Three layers keep it from leaking:

* `Keeper.close()` ends and removes everything, in reverse order of its making.
* Every child asks the kernel to be killed when the process that started it dies
  (PR_SET_PDEATHSIG), so even a SIGKILL of the test run leaves no process.
* What the kernel cannot clean (bridges, cgroups, folders) is written down in a record under
  `state_dir()`; `reap()`, run before anything new starts, removes what dead owners left behind.

A process is ended only if its pid still has the start time that was recorded when we started it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import fcntl
import ipaddress
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

# Below the kernel's ephemeral range, so that no outgoing connection can take a reserved port.
PORT_RANGE = range(20000, 30000)

# Where no host on the internet lives: a range for documentation (RFC 5737), and when that is used
# up the one for tests of network devices (RFC 2544). The other two documentation ranges are left
# alone: sandboxes of CI services number their own gateways and mirrors with them, and a bridge
# there would cut the machine off.
BRIDGE_RANGES = ("198.51.100.0/24", "198.18.0.0/15")

# The kernel signals a child when the *thread* that forked it ends. Tests may start things from
# short-lived threads, so all forks happen in this one, which lives as long as the process.
_spawner = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="spawner")


def in_spawner(function: Callable[[], None]) -> None:
    """Runs it in the thread that starts all children; what it changes there, they inherit."""
    _spawner.submit(function).result()


# Closes the gap between fork and prctl: if the owner died in it, the parent is no longer ours.
_GUARD = '[ "$PPID" = "$0" ] || exit 1; exec "$@"'


class ProcessError(RuntimeError):
    """A process of the tests could not be started or ended; the message has the end of its log."""


def state_dir() -> pathlib.Path:
    """Where records live. Emptied by a reboot, as are the processes and bridges they name."""
    root = pathlib.Path("/run") if os.geteuid() == 0 else pathlib.Path(tempfile.gettempdir())
    path = root / f"spillway-test-{os.geteuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


@contextlib.contextmanager
def _locked() -> Iterator[pathlib.Path]:
    directory = state_dir()
    with open(directory / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory


def start_time(pid: int) -> int | None:
    """Clock ticks since boot at which the process started; None if there is none (or a zombie)."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may hold spaces and parentheses: fields count from the last one.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def wait_for(
    condition: Callable[[], Any],
    what: str,
    *,
    timeout: float = 30.0,
    interval: float = 0.05,
) -> Any:
    """Returns the first truthy value of condition(); TimeoutError names `what` if there is none."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{what}: not so after {timeout:g} s")
        time.sleep(interval)


def free_port() -> int:
    """A port on 127.0.0.1 that was free a moment ago. Keeper.reserve_port keeps others off it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Child:
    """One process that we started, named by pid and start time."""

    def __init__(
        self,
        name: str,
        pid: int,
        started: int | None,
        log: pathlib.Path | None = None,
        popen: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.name = name
        self.pid = pid
        self.started = started
        self.log = log
        self.popen = popen

    def alive(self) -> bool:
        if self.popen is not None:
            return self.popen.poll() is None
        return self.started is not None and start_time(self.pid) == self.started

    @property
    def returncode(self) -> int | None:
        """Exit code (negative: signal), or None while it runs or if it is not our own child."""
        return self.popen.poll() if self.popen is not None else None

    def send_signal(self, number: int) -> None:
        """Sends a signal to this very process; does nothing if it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            # With the descriptor held the pid cannot be given away between check and signal.
            if self.alive():
                signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            pass
        finally:
            os.close(descriptor)

    def wait(self, timeout: float) -> bool:
        """Waits for its end; False if it still runs after `timeout` seconds."""
        if self.popen is not None:
            try:
                self.popen.wait(timeout)
                return True
            except subprocess.TimeoutExpired:
                return False
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.alive():
                return True
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            return bool(poller.poll(timeout * 1000))
        finally:
            os.close(descriptor)

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        self.send_signal(signal.SIGKILL)
        if not self.wait(15):
            raise ProcessError(f"{self.name} (pid {self.pid}) survives SIGKILL: look at its state")

    def terminate(self, timeout: float = 10.0) -> None:
        """SIGTERM, and SIGKILL if it has not ended after `timeout` seconds."""
        self.send_signal(signal.SIGTERM)
        if not self.wait(timeout):
            self.kill()

    def log_tail(self, lines: int = 25) -> str:
        if self.log is None or not self.log.exists():
            return "(no log)"
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join(text[-lines:])

    def check_alive(self) -> None:
        """Raises ProcessError with the end of its log if it has ended."""
        if not self.alive():
            raise ProcessError(
                f"{self.name} exited with {self.returncode}; the end of {self.log}:\n"
                f"{self.log_tail()}"
            )


class Keeper:
    """What one resource of the tests holds on this machine. See the top of this file.

    `detached` is for things that are meant to outlive the command that starts them
    (`make cluster-up`): no death signal, and `reap()` lets them be while they run.
    """

    def __init__(self, kind: str, directory: pathlib.Path, *, detached: bool = False) -> None:
        reap()
        self.kind = kind
        self.directory = pathlib.Path(directory).absolute()
        self.detached = detached
        self.children: list[Child] = []
        self.id = uuid.uuid4().hex[:8]
        self._record: dict[str, Any] = {
            "kind": kind,
            "owner": None if detached else [os.getpid(), start_time(os.getpid())],
            "directory": str(self.directory),
            "directory_is_ours": False,
            "processes": [],
            "ports": [],
            "bridge": None,
            "network": None,
            "cgroup": None,
        }
        self._path = state_dir() / f"{kind}-{self.id}.json"
        self._save()
        # Only a folder that was not there before, or was empty, is ours to remove.
        if not self.directory.exists() or not any(self.directory.iterdir()):
            self._record["directory_is_ours"] = True
            self._save()
        self.directory.mkdir(parents=True, exist_ok=True)

    @classmethod
    def load(cls, record: pathlib.Path) -> Keeper:
        """A keeper for a record that another process wrote."""
        keeper = cls.__new__(cls)
        keeper._path = record
        keeper._record = json.loads(record.read_text())
        keeper.kind = keeper._record["kind"]
        keeper.directory = pathlib.Path(keeper._record["directory"])
        keeper.detached = keeper._record["owner"] is None
        keeper.id = record.stem.rpartition("-")[2]
        keeper.children = [
            Child(name, pid, started) for name, pid, started in keeper._record["processes"]
        ]
        return keeper

    @property
    def owner_pid(self) -> int | None:
        """The process that this belongs to; None if detached."""
        return self._record["owner"][0] if self._record["owner"] else None

    @property
    def bridge(self) -> str | None:
        """The bridge that this made."""
        return self._record["bridge"]

    @property
    def cgroup(self) -> str | None:
        """The cgroup that this named, as a path below each hierarchy."""
        return self._record["cgroup"]

    def _save(self) -> None:
        # Renamed into place, so that a reader never sees half a record.
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._record))
        temporary.rename(self._path)

    def spawn(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        log: pathlib.Path | None = None,
        env: Mapping[str, str] | None = None,
        cwd: pathlib.Path | None = None,
    ) -> Child:
        """Starts a process; stdout and stderr go to the end of `log` (or nowhere)."""
        words = [os.fspath(word) for word in command]
        if not self.detached:
            guard = ["sh", "-c", _GUARD, str(os.getpid())]
            words = ["setpriv", "--pdeathsig", "KILL", *guard, *words]
        with open(log if log is not None else os.devnull, "ab") as output:
            popen = _spawner.submit(
                subprocess.Popen,
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=env,
                cwd=cwd,
                start_new_session=True,
            ).result()
        child = Child(name, popen.pid, start_time(popen.pid), log, popen)
        self.children.append(child)
        self._record["processes"].append([name, child.pid, child.started])
        self._save()
        return child

    def forget(self, child: Child) -> None:
        """Drops a process that has ended from the record."""
        self.children.remove(child)
        self._record["processes"] = [
            entry for entry in self._record["processes"] if entry[1] != child.pid
        ]
        self._save()

    def reserve_port(self) -> int:
        """A port on 127.0.0.1 that no other keeper on this machine is given until close()."""
        with _locked() as directory:
            taken = {port for record in _records(directory) for port in record["ports"]}
            # Start where this process is unlikely to meet another one that asks at the same time
            # for a port that it will bind a second later.
            offset = (os.getpid() * 37) % len(PORT_RANGE)
            for step in range(len(PORT_RANGE)):
                port = PORT_RANGE[(offset + step) % len(PORT_RANGE)]
                if port in taken or not _can_bind(port):
                    continue
                self._record["ports"].append(port)
                self._save()
                return port
        raise ProcessError(f"no free port in {PORT_RANGE}: run `make cluster-down`")

    def add_bridge(self, prefix: int) -> tuple[str, ipaddress.IPv4Network]:
        """Makes a bridge with a network of its own (2^(32-prefix) addresses); its name, network."""
        with _locked() as directory:
            taken = {
                ipaddress.IPv4Network(record["network"])
                for record in _records(directory)
                if record["network"]
            }
            # The machine itself may sit in one of these ranges.
            for line in _ip("-o", "-4", "address", "show").splitlines():
                taken.add(ipaddress.IPv4Interface(line.split()[3]).network)
            candidates = (
                network
                for block in BRIDGE_RANGES
                for network in ipaddress.IPv4Network(block).subnets(new_prefix=prefix)
            )
            network = next(
                (n for n in candidates if not any(n.overlaps(other) for other in taken)), None
            )
            if network is None:
                raise ProcessError(
                    f"all test networks of /{prefix} are taken on this machine: "
                    f"stop an engine, or ask for a smaller network (a larger prefix)"
                )
            name = f"spw-{self.id}"
            self._record |= {"bridge": name, "network": str(network)}
            self._save()
        _ip("link", "add", name, "type", "bridge")
        _ip("address", "add", f"{network[1]}/{prefix}", "dev", name)
        _ip("link", "set", name, "up")
        return name, network

    def add_cgroup(self) -> str:
        """Names a cgroup for containers, removed (once empty) by close()."""
        self._record["cgroup"] = f"/spillway-test-{self.id}"
        self._save()
        return self._record["cgroup"]

    def _is_abandoned(self) -> bool:
        if self.detached:
            # Empty while it is being started; nothing alive after a reboot or a kill by hand.
            return bool(self.children) and not any(child.alive() for child in self.children)
        pid, started = self._record["owner"]
        return start_time(pid) != started

    def close(self) -> None:
        """Ends and removes everything. Safe to call twice."""
        for child in reversed(self.children):
            child.send_signal(signal.SIGKILL)
        for child in reversed(self.children):
            child.kill()
        self.children.clear()
        if self._record["bridge"] and pathlib.Path(
            "/sys/class/net", self._record["bridge"]
        ).exists():
            _ip("link", "delete", self._record["bridge"])
        if self._record["cgroup"]:
            _remove_cgroup(self._record["cgroup"])
        if self._record["directory_is_ours"]:
            _remove_tree(self.directory)
        self._path.unlink(missing_ok=True)


def reap() -> list[str]:
    """Removes what owners that no longer live have left behind; returns the records' names."""
    reaped = []
    with _locked() as directory:
        for keeper in _keepers(directory):
            if keeper._is_abandoned():
                keeper.close()
                reaped.append(f"{keeper.kind}-{keeper.id}")
    return reaped


def records() -> list[Keeper]:
    """Keepers of everything that is recorded on this machine, also by other processes."""
    return list(_keepers(state_dir()))


def _keepers(directory: pathlib.Path) -> Iterator[Keeper]:
    for path in sorted(directory.glob("*.json")):
        try:
            keeper = Keeper.load(path)
        except FileNotFoundError:
            # Closed by its owner while we look.
            continue
        yield keeper


def _records(directory: pathlib.Path) -> Iterator[dict[str, Any]]:
    return (keeper._record for keeper in _keepers(directory))


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise ProcessError(
            f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()} "
            f"(bridges need root and the package iproute2: `make setup` installs it)"
        )
    return done.stdout


def _remove_cgroup(name: str) -> None:
    """Removes a cgroup tree from every hierarchy (v1) or the one there is (v2)."""
    root = pathlib.Path("/sys/fs/cgroup")
    hierarchies = [root, *(p for p in root.iterdir() if p.is_dir() and not p.is_symlink())]
    for hierarchy in hierarchies:
        top = hierarchy / name.lstrip("/")
        if not top.is_dir():
            continue
        for folder, _, _ in os.walk(top, topdown=False):
            # The kernel takes a moment to see the last process of a killed container off.
            wait_for(lambda folder=folder: _try_rmdir(folder), f"cgroup {folder} empty", timeout=10)


def _try_rmdir(path: str) -> bool:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_tree(directory: pathlib.Path) -> None:
    """rm -r, after unmounting what an engine without a mount namespace of its own might leave."""
    inside = f"{directory}/"
    mounts = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith(inside)), reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
    shutil.rmtree(directory, ignore_errors=True)
