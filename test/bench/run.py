#!/usr/bin/env python3
"""make bench: Spillway beside kwok and virtual-kubelet on one real control plane.

Prints a table and what had to hold, writes build/bench/results.json, and exits 1 if a must is
missed. Ratios of one run are compared, never seconds of two. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from test.bench import measure, report
from test.bench.audit import AuditLog
from test.bench.streams import measure_streams
from test.bench.subjects import SPILLWAY, Bare, Kwok, Spillway, Subject, VirtualKubelet
from test.cluster import Cluster, Keeper
from test.cluster.cluster import REPOSITORY

RESULTS = REPOSITORY / "build" / "bench" / "results.json"
LOGS = REPOSITORY / "build" / "bench" / "logs"
SUBJECTS = {s.name: s for s in (Bare, Kwok, VirtualKubelet, Spillway)}


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=1000, help="pods of one load (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="medians are of so many (default 3)")
    parser.add_argument("--quick", action="store_true", help="a smoke run: 200 pods, one round")
    parser.add_argument(
        "--only", action="append", choices=sorted(SUBJECTS), help="just this one; can be repeated"
    )
    parser.add_argument("--binary", type=pathlib.Path, default=SPILLWAY, help="the spillway to run")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.pods, chosen.rounds = min(chosen.pods, 200), 1
    if not chosen.binary.exists():
        parser.error(f"{chosen.binary} does not exist: run `make build`")
    return chosen


class Run:
    """One run: every subject in turn, in rounds, so that a slow minute of the machine hits all."""

    def __init__(self, chosen: argparse.Namespace, bench: measure.Bench, keeper: Keeper) -> None:
        self._chosen = chosen
        self._bench = bench
        self._keeper = keeper
        self._names = chosen.only or list(SUBJECTS)
        self._rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in self._names}
        self.failures: list[str] = []
        self.results: dict[str, Any] = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}",
            "commit": _commit(),
            "load_average_before": os.getloadavg()[0],
            "pods": bench.pods,
            "standing": bench.standing,
            "rest_s": bench.rest,
            "rounds": chosen.rounds,
            "restart": {},
        }

    def go(self) -> None:
        say("warming the API server up")
        self._try("warm-up", lambda: measure.measure_bare(self._bench, self._make("bare")))
        for number in range(self._chosen.rounds):
            last = number == self._chosen.rounds - 1
            shift = number % len(self._names)
            for name in self._names[shift:] + self._names[:shift]:
                say(f"round {number + 1} of {self._chosen.rounds}: {name}")
                figures = self._try(name, lambda n=name: self._round(n, long=last))
                if figures is not None:
                    self._rounds[name].append(figures)
        if not self._chosen.only:
            say("probes of 5000 pods")
            probes = self._chosen.binary.parent / "probe_bench"
            figures = self._try("probes", lambda: measure.measure_probes(probes))
            if figures is not None:
                self.results["probes"] = figures
        for name in self._names:
            if name == "bare":
                continue
            say(f"restart: {name}")
            subject = self._make(name, own_cloud=True)
            figures = self._try(name, lambda s=subject: measure.measure_restart(self._bench, s))
            if figures is not None:
                self.results["restart"][name] = figures

    def measure_streams(self, directory: pathlib.Path) -> None:
        say("streams: logs, exec, /metrics/resource")
        figures = self._try("streams", lambda: measure_streams(directory, self._chosen.binary))
        if figures is not None:
            self.results["streams"] = figures

    def finish(self) -> None:
        """Medians of whatever was measured."""
        for name, rounds in self._rounds.items():
            if rounds:
                self.results[name] = measure.medians(rounds)
        self.results["each_round"] = self._rounds

    def _round(self, name: str, *, long: bool) -> dict[str, Any]:
        if name == "bare":
            return measure.measure_bare(self._bench, self._make(name))
        return measure.measure_round(self._bench, self._make(name), long=long)

    def _make(self, name: str, *, own_cloud: bool = False) -> Subject:
        if name == "spillway":
            return Spillway(
                self._bench.cluster, self._keeper, binary=self._chosen.binary, own_cloud=own_cloud
            )
        return SUBJECTS[name](self._bench.cluster, self._keeper)

    def _try(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        """A subject that fails costs its own figures, not those of the others."""
        try:
            return work()
        except (AssertionError, OSError, RuntimeError, TimeoutError) as error:
            say(f"{name} failed: {error}")
            self.failures.append(f"{name}: {error}")
            return None


def _commit() -> str:
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def _save_logs(directory: pathlib.Path) -> None:
    LOGS.mkdir(parents=True, exist_ok=True)
    for path in directory.glob("*.log"):
        (LOGS / path.name).write_bytes(path.read_bytes()[-4_000_000:])


def interrupted(*_: object) -> None:
    """SIGTERM ends the run as Ctrl-C does: everything that was started is taken down."""
    raise KeyboardInterrupt


def main() -> int:
    chosen = arguments()
    signal.signal(signal.SIGTERM, interrupted)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spw-bench-") as folder:
        directory = pathlib.Path(folder)
        users = [subject.user for subject in SUBJECTS.values()]
        audit = AuditLog(directory, users)
        keeper = Keeper("bench", directory / "subjects")
        try:
            say("starting a control plane")
            with Cluster(extra_args={"kube-apiserver": audit.flags()}) as cluster:
                cluster.start(directory / "cluster")
                rest = 10.0 if chosen.quick else measure.REST
                samples = 50 if chosen.quick else 200
                bench = measure.Bench(cluster, audit, chosen.pods, samples, rest)
                run = Run(chosen, bench, keeper)
                try:
                    run.go()
                except KeyboardInterrupt:
                    # What took minutes to measure is shown; the rest counts as failed.
                    run.failures.append("interrupted")
                run.finish()
        finally:
            _save_logs(keeper.directory)
            keeper.close()
        if not chosen.only:
            run.measure_streams(directory)
    results = run.results
    results["musts"] = report.judge(results)
    results["failures"] = run.failures
    results["seconds"] = time.monotonic() - begin
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1))
    print(report.table(results))
    print()
    print(report.verdict(results["musts"]))
    for failure in run.failures:
        print(f"FAILED {failure}")
    say(f"written to {RESULTS.relative_to(REPOSITORY)} after {results['seconds']:.0f} s")
    missed = any(one["ok"] is False for one in results["musts"])
    unmeasured = not chosen.only and any(one["ok"] is None for one in results["musts"])
    return 1 if missed or unmeasured or run.failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; everything was taken down")
        sys.exit(130)
