"""A network of the test's own: loopback, one address beside it, and no way out.

The API server reaches no node on a loopback address through its proxies, so what asks it for one runs
here, the control plane and the daemon with it. Needs root.

    with NetworkNamespace() as net:
        cluster = Cluster().start(...)     # all that is started now lives in it
        profile = {"internalIP": net.address}
"""

from __future__ import annotations

import ctypes
import os
import subprocess

from . import processes

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _enter(namespace: int) -> None:
    _checked(_libc.setns(namespace, _CLONE_NEWNET), "setns")


class NetworkNamespace:
    """While it is entered, this thread and everything that `Keeper` starts are inside."""

    def __init__(self, address: str = "203.0.113.10") -> None:
        self.address = address
        self._outside = -1
        self._inside = -1

    def __enter__(self) -> NetworkNamespace:
        self._outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        _checked(_libc.unshare(_CLONE_NEWNET), "unshare")
        self._inside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            # A dummy device would do, but not every kernel has that type.
            for command in (
                "link set lo up",
                "link add out type veth peer name back",
                f"addr add {self.address}/24 dev out",
                "link set out up",
                "link set back up",
            ):
                subprocess.run(["ip", *command.split()], check=True, capture_output=True)
            processes.in_spawner(lambda: _enter(self._inside))
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        processes.in_spawner(lambda: _enter(self._outside))
        self._leave()

    def _leave(self) -> None:
        _enter(self._outside)
        os.close(self._inside)
        os.close(self._outside)
