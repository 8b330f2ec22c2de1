"""What a process has used: read from /proc."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True)
class Usage:
    """CPU seconds (user and system) and resident KiB of one process at one moment."""

    cpu: float
    rss: int
    peak: int


def usage(pid: int) -> Usage:
    """The usage of a living process, all of its threads included."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()

    def kib(key: str) -> int:
        found = re.search(rf"^{key}:\s+(\d+) kB$", status, re.MULTILINE)
        return int(found[1]) if found else 0

    return Usage((int(fields[11]) + int(fields[12])) / _TICKS, kib("VmRSS"), kib("VmHWM"))
