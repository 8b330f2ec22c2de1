"""The procedure: what is done to each subject, in which order, and what is read off it."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import statistics
import subprocess
import time
from collections.abc import Iterable
from typing import Any

from test.cluster import Cluster, binaries, wait_for

from .audit import AuditLog, by_kind
from .process import usage
from .subjects import Spillway, Subject

# Long enough for garbage collectors to hand back what a load left behind.
SETTLE = 5.0
REST = 30.0
# What a virtual node may ask for when nothing happens.
ALLOWED_AT_REST = re.compile(r"^((get|update|patch|create) leases|watch .*)$")


class LoaderError(RuntimeError):
    """The load generator gave up; the message is its own."""


@dataclasses.dataclass
class Bench:
    """What all measurements of one run share."""

    cluster: Cluster
    audit: AuditLog
    pods: int
    samples: int
    rest: float = REST

    @property
    def standing(self) -> int:
        """Pods that run before a load is measured."""
        return self.pods // 5

    def loader(self, verb: str, subject: Subject, *flags: str) -> dict[str, Any]:
        done = subprocess.run(
            [
                binaries.binary("loader", "loader"),
                verb,
                f"--kubeconfig={self.cluster.kubeconfig}",
                f"--namespace={subject.namespace}",
                f"--node={subject.node}",
                *flags,
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise LoaderError(f"{subject.title}: {verb}: {done.stderr.strip()} {done.stdout}")
        return json.loads(done.stdout)

    def fill(self, subject: Subject, *flags: str) -> dict[str, Any]:
        return self.loader("fill", subject, f"--count={self.pods}", *flags)


def measure_bare(bench: Bench, subject: Subject) -> dict[str, Any]:
    """Create and two status PATCHes of every pod, by the loader itself."""
    subject.start()
    try:
        fill = bench.fill(subject, "--patches=2")
        return {"fill_s": fill["seconds"]} | _drain(bench, subject, force=True)
    finally:
        subject.stop()


def measure_round(bench: Bench, subject: Subject, *, long: bool) -> dict[str, Any]:
    """One round of one subject. `long` adds what needs no repetition: the rest, and a slow drain.

    A fifth of the pods stand before the clock starts: connections, caches and heaps are those of a
    program at work, and what a pod needs is the slope between two loads.
    """
    subject.start()
    try:
        time.sleep(SETTLE / 2)
        empty = usage(subject.pid)
        bench.loader("fill", subject, f"--count={bench.standing}", "--prefix=standing")
        time.sleep(SETTLE)
        standing = usage(subject.pid)
        mark = bench.audit.position()
        fill = bench.fill(subject)
        time.sleep(SETTLE)
        full = usage(subject.pid)
        result: dict[str, Any] = {
            "fill_s": fill["seconds"],
            "loaded": fill["bound_to_running"],
            "requests": by_kind(bench.audit.since(mark, subject.user)),
            "rss_empty_kib": empty.rss,
            "rss_full_kib": full.rss,
            "rss_peak_kib": full.peak,
            "rss_per_pod_kib": (full.rss - standing.rss) / bench.pods,
            "cpu_per_pod_ms": (full.cpu - standing.cpu) * 1000 / bench.pods,
        }
        if long:
            result |= _rest(bench, subject)
        mark, before = bench.audit.position(), usage(subject.pid)
        result |= _drain(bench, subject, force=subject.slow_to_delete and not long)
        time.sleep(1)
        result["drain_requests"] = by_kind(bench.audit.since(mark, subject.user))
        drained = bench.pods + bench.standing
        result["drain_cpu_per_pod_ms"] = (usage(subject.pid).cpu - before.cpu) * 1000 / drained
        result |= _one_by_one(bench, subject)
        return result
    finally:
        subject.stop()


def _rest(bench: Bench, subject: Subject) -> dict[str, Any]:
    mark, before = bench.audit.position(), usage(subject.pid)
    time.sleep(bench.rest)
    after = usage(subject.pid)
    requests = bench.audit.since(mark, subject.user)
    return {
        "idle_cpu_percent": (after.cpu - before.cpu) * 100 / bench.rest,
        "rest_requests": by_kind(requests),
        "rest_excess": _excess(r.what for r in requests),
    }


def _excess(requests: Iterable[str]) -> list[str]:
    """What was asked at rest and should not have been. One report of the node per window of at
    most five minutes is due at some time, so one is let pass.
    """
    reports = 1
    found = []
    for what in requests:
        if ALLOWED_AT_REST.match(what):
            continue
        if what == "patch nodes/status" and reports > 0:
            reports -= 1
            continue
        found.append(what)
    return found


def _drain(bench: Bench, subject: Subject, *, force: bool) -> dict[str, Any]:
    flags = ["--force"] if force else []
    drain = bench.loader("drain", subject, *flags)
    return {"forced_drain_s" if force else "drain_s": drain["seconds"]}


def _one_by_one(bench: Bench, subject: Subject) -> dict[str, Any]:
    """One pod at a time on an idle cluster."""
    before = subject.metrics() if isinstance(subject, Spillway) else ""
    one = bench.loader("one", subject, f"--count={bench.samples}", "--prefix=one")
    result = {"one": one["bound_to_running"]}
    if isinstance(subject, Spillway):
        result["steps"] = _steps(before, subject.metrics())
    _drain(bench, subject, force=subject.slow_to_delete)
    return result


def _steps(before: str, after: str) -> dict[str, dict[str, float]]:
    """Spillway's own view of the way to Running: p50 and p99 of each step in milliseconds."""
    first, last = _histograms(before), _histograms(after)
    result = {}
    for step, buckets in last.items():
        counts = [(b, n - dict(first.get(step, ())).get(b, 0)) for b, n in buckets]
        if counts and counts[-1][1] > 0:
            result[step] = {
                "p50_ms": _quantile(counts, 0.5) * 1000,
                "p99_ms": _quantile(counts, 0.99) * 1000,
            }
    return result


_BUCKET = re.compile(r"^spillway_pod_step_seconds_bucket\{([^}]*)\} (\S+)", re.MULTILINE)


def _histograms(text: str) -> dict[str, list[tuple[float, float]]]:
    """Cumulated counts by upper bound, of the steps that went well."""
    found: dict[str, list[tuple[float, float]]] = {}
    for labels, value in _BUCKET.findall(text):
        label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if label.get("outcome") == "ok":
            bound = float(label["le"].replace("+Inf", "inf"))
            found.setdefault(label["step"], []).append((bound, float(value)))
    return {step: sorted(buckets) for step, buckets in found.items()}


def _quantile(buckets: list[tuple[float, float]], q: float) -> float:
    """As Prometheus does it: linear inside the bucket."""
    wanted = q * buckets[-1][1]
    below, low = 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted:
            if bound == float("inf") or count == below:
                return low
            return low + (bound - low) * (wanted - below) / (count - below)
        below, low = count, bound
    return low


def measure_restart(bench: Bench, subject: Subject) -> dict[str, Any]:
    """Restart with all pods Running, one pod created meanwhile; then how much is written."""
    subject.start()
    try:
        fill = bench.fill(subject)
        time.sleep(SETTLE)
        subject.end_process()
        pod = _a_pod(subject)
        pods = f"/api/v1/namespaces/{subject.namespace}/pods"
        bench.cluster.api("POST", pods, pod)
        mark = bench.audit.position()
        begin = time.monotonic()
        subject.launch()
        result: dict[str, Any] = {"fill_s": fill["seconds"]}
        if isinstance(subject, Spillway):
            what = f"{subject.title} serves again"
            wait_for(subject.is_serving, what, timeout=120, interval=0.005)
            result["ready_s"] = time.monotonic() - begin
        new = f"{pods}/{pod['metadata']['name']}"
        wait_for(
            lambda: bench.cluster.get(new)["status"].get("phase") == "Running",
            f"the pod that was created meanwhile runs on {subject.title}",
            timeout=120,
            interval=0.005,
        )
        result["new_pod_s"] = time.monotonic() - begin
        time.sleep(max(SETTLE, bench.rest / 2))
        requests = bench.audit.since(mark, subject.user)
        old = [r for r in requests if r.name != pod["metadata"]["name"]]
        writes = [r for r in old if r.resource == "pods/status" and r.verb in ("patch", "update")]
        result |= {"requests": by_kind(requests), "status_writes": len(writes)}
        _drain(bench, subject, force=subject.slow_to_delete)
        return result
    finally:
        subject.stop()


def _a_pod(subject: Subject) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/bench:1"}
    return {
        "metadata": {"name": "meanwhile"},
        "spec": {
            "nodeName": subject.node,
            "automountServiceAccountToken": False,
            "containers": [container],
        },
    }


def measure_probes(program: pathlib.Path) -> dict[str, Any]:
    """What 5000 pods with a readiness probe every ten seconds cost the thread that runs them, on
    real sockets of loopback; by kind of probe.
    """
    found = {}
    for kind in ("http", "tcp"):
        # The limit is a must, and judged with the others.
        command = [program, "--kind", kind, "--limit", "100"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{program.name}: {(done.stderr or done.stdout).strip()}")
        found[kind] = json.loads(done.stdout)
    return found


def medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers become their medians over the rounds in which they were measured; what is measured
    once, or is no number, stays as the last round has it.
    """
    result: dict[str, Any] = {}
    for key in dict.fromkeys(key for one in rounds for key in one):
        values = [one[key] for one in rounds if key in one]
        if all(isinstance(value, int | float) for value in values):
            result[key] = statistics.median(values)
        elif all(isinstance(value, dict) for value in values) and _all_numbers(values):
            result[key] = medians(values)
        else:
            result[key] = values[-1]
    return result


def _all_numbers(values: list[dict[str, Any]]) -> bool:
    same_keys = all(value.keys() == values[0].keys() for value in values)
    return same_keys and all(isinstance(n, int | float) for value in values for n in value.values())
