"""What the figures have to be, and the tables that people read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

Results = dict[str, Any]

_COLUMNS = (
    ("bare", "bare loader"),
    ("kwok", "kwok"),
    ("virtual-kubelet", "VK tuned"),
    ("spillway", "Spillway"),
)


@dataclasses.dataclass(frozen=True)
class Must:
    """One promise. `check` returns what was found and whether it holds; a KeyError means that a
    part which it compares was not measured.
    """

    title: str
    check: Callable[[Results], tuple[str, bool]]


def _ratio(found: float, other: float, limit: float) -> tuple[str, bool]:
    ratio = found / other if other > 0 else float("inf")
    return f"{ratio:.2f} x (limit {limit:g} x)", ratio <= limit


def _writes(r: Results) -> tuple[str, bool]:
    """What is asked for each pod, and what is asked for all together: one list of services per
    second, and what they cost in one row of the ledger each, in one object per second.
    """
    requests, pods = r["spillway"]["requests"], r["pods"]
    patches, events = requests.get("patch pods/status", 0), requests.get("create events", 0)
    other = {
        what: n
        for what, n in requests.items()
        if what not in ("patch pods/status", "create events", "patch nodes/status")
        and not what.endswith(" leases")
        and not what.startswith("watch ")
    }
    shared = ("list ", "get ", "create configmaps", "update configmaps")
    together = sum(n for what, n in other.items() if what.startswith(shared))
    text = f"{patches / pods:.3f} PATCH and {events / pods:.3f} events per pod"
    if other:
        text += f", and {other}"
    few = together == sum(other.values()) and together <= pods / 50
    return text, patches == 2 * pods and events <= pods and few


def _rest(r: Results) -> tuple[str, bool]:
    excess = r["spillway"]["rest_excess"]
    return f"{excess or 'none'} in {r['rest_s']:.0f} s", not excess


def _restart(r: Results) -> tuple[str, bool]:
    writes = r["restart"]["spillway"]["status_writes"]
    return f"{writes} of {r['pods']} pods", writes == 0


def _latency(r: Results) -> tuple[str, bool]:
    difference = r["spillway"]["one"]["p50_ms"] - r["kwok"]["one"]["p50_ms"]
    return f"{difference:+.1f} ms (limit +5 ms)", difference <= 5


def _probes(r: Results) -> tuple[str, bool]:
    figures = r["probes"]
    shown = ", ".join(f"{kind} {one['cpu_percent']:.1f} %" for kind, one in figures.items())
    return f"{shown} (limit 10 %)", all(one["cpu_percent"] < 10 for one in figures.values())


def _log_rate(r: Results) -> tuple[str, bool]:
    figures = r["streams"]
    log, file = figures["fake_mib_s"], figures["nginx_mib_s"]
    docker, engine = figures["log_mib_s"], figures["engine_mib_s"]
    shown = f"{log:.0f} of {file:.0f} MiB/s (limit 90 %); docker: {docker:.0f} of its engine's {engine:.0f}"
    return shown, log >= 0.9 * file


def _round_trip(r: Results) -> tuple[str, bool]:
    figures = r["streams"]
    difference = figures["exec_ms"] - figures["engine_ms"]
    return f"{difference:+.2f} ms (limit +2 ms)", difference <= 2


def _stream_memory(r: Results) -> tuple[str, bool]:
    figures = r["streams"]
    log, shell = figures["log_kib"], figures["exec_kib"]
    return f"{log:.0f} and {shell:.0f} KiB (limits 64 and 160 KiB)", log < 64 and shell < 160


def _resource_metrics(r: Results) -> tuple[str, bool]:
    spent = r["streams"]["resource_metrics_ms"]
    return f"{spent:.1f} ms (limit 50 ms)", spent < 50


MUSTS = (
    Must(
        "bound to Running: exactly two PATCHes, at most one event, a request for 50 pods together",
        _writes,
    ),
    Must("at rest: nothing but leases, watches and one node report", _rest),
    Must("status writes after a restart: none", _restart),
    Must(
        "all Running and Ready, against the bare loader",
        lambda r: _ratio(r["spillway"]["fill_s"], r["bare"]["fill_s"], 1.2),
    ),
    Must(
        "delete of all until all are gone, against kwok",
        lambda r: _ratio(r["spillway"]["drain_s"], r["kwok"]["drain_s"], 1.5),
    ),
    Must("p50 from bound to Running, against kwok", _latency),
    Must(
        "CPU seconds per pod, against virtual-kubelet",
        lambda r: _ratio(
            r["spillway"]["cpu_per_pod_ms"], r["virtual-kubelet"]["cpu_per_pod_ms"], 0.5
        ),
    ),
    Must(
        "memory per pod, against virtual-kubelet",
        lambda r: _ratio(
            r["spillway"]["rss_per_pod_kib"], r["virtual-kubelet"]["rss_per_pod_kib"], 0.1
        ),
    ),
    Must("5000 pods with a readiness probe every 10 s, of a core", _probes),
    Must("a followed log through the API server, against a file of nginx", _log_rate),
    Must("p50 of an exec's round trip, against the engine's own", _round_trip),
    Must("memory of each of 200 streams, log and exec", _stream_memory),
    Must("/metrics/resource of 5000 pods", _resource_metrics),
)


def judge(results: Results) -> list[dict[str, Any]]:
    """Every must with what was found: ok is None if a part was not measured."""
    judged = []
    for must in MUSTS:
        try:
            found, ok = must.check(results)
        except KeyError as missing:
            judged.append({"must": must.title, "found": f"not measured: {missing}", "ok": None})
        else:
            judged.append({"must": must.title, "found": found, "ok": ok})
    return judged


def _number(path: str, digits: int, scale: float = 1.0) -> Callable[[Results], str]:
    def show(figures: Results) -> str:
        value: Any = figures
        for key in path.split("."):
            if not isinstance(value, dict) or key not in value:
                return "-"
            value = value[key]
        return f"{value * scale:.{digits}f}"

    return show


def _requests(key: str, pods: float) -> Callable[[Results], str]:
    def show(figures: Results) -> str:
        if key not in figures:
            return "-"
        shown = [
            f"{n / pods:.2f} {what}"
            for what, n in figures[key].items()
            if n >= pods / 100 and not what.startswith("watch") and not what.endswith(" leases")
        ]
        return "; ".join(shown) or "none"

    return show


def _rows(results: Results) -> list[tuple[str, str, Callable[[Results], str]]]:
    pods = results["pods"]
    standing = results["standing"]
    rest = results["rest_s"]
    return [
        ("", f"{pods} pods, first create to all Running and Ready, s", _number("fill_s", 2)),
        ("", "the same: p50 of bound to Running under that load, ms", _number("loaded.p50_ms", 0)),
        ("", "one pod at a time, bound to Running: p50, ms", _number("one.p50_ms", 1)),
        ("", "one pod at a time, bound to Running: p99, ms", _number("one.p99_ms", 1)),
        ("", f"delete of {pods + standing} until all are gone, s", _number("drain_s", 2)),
        ("", "the same with grace 0, s", _number("forced_drain_s", 2)),
        ("", "requests per pod to Running", _requests("requests", pods)),
        ("", "requests per deleted pod", _requests("drain_requests", pods + standing)),
        ("", "CPU per pod to Running, ms", _number("cpu_per_pod_ms", 3)),
        ("", "CPU per deleted pod, ms", _number("drain_cpu_per_pod_ms", 3)),
        ("", f"CPU at rest over {rest:.0f} s, % of a core", _number("idle_cpu_percent", 2)),
        ("", "RSS with no pod, MiB", _number("rss_empty_kib", 1, 1 / 1024)),
        ("", f"RSS with {pods + standing} pods, MiB", _number("rss_full_kib", 1, 1 / 1024)),
        (
            "",
            f"RSS per pod, from {standing} to {pods + standing}, KiB",
            _number("rss_per_pod_kib", 2),
        ),
        ("restart", f"restart with {pods} pods: serving again, s", _number("ready_s", 2)),
        ("restart", "restart: pod created meanwhile Running, s", _number("new_pod_s", 2)),
        ("restart", "restart: status writes for old pods", _number("status_writes", 0)),
    ]


def table(results: Results) -> str:
    """The figures side by side, as a table of Markdown."""
    columns = [(key, title) for key, title in _COLUMNS if key in results]
    lines = ["| figure | " + " | ".join(title for _, title in columns) + " |"]
    lines.append("| --- |" + " --- |" * len(columns))
    for section, title, show in _rows(results):
        place = results.get(section, {}) if section else results
        cells = [show(place.get(key, {})) for key, _ in columns]
        if any(cell != "-" for cell in cells):
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def verdict(judged: list[dict[str, Any]]) -> str:
    words = {True: "ok", False: "MISSED", None: "-"}
    width = max(len(one["must"]) for one in judged)
    lines = [f"{words[one['ok']]:7}{one['must']:{width}}  {one['found']}" for one in judged]
    return "\n".join(lines)
