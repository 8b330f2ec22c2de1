"""The gate asks a real Prometheus, with the default queries; and each way in which that may go wrong.

The exporter shows home as kube-state-metrics does. Its home and that of the API server are told different things, so
that a test can see to whom the gate listens.
"""

from __future__ import annotations

import pathlib
import signal
import time
from typing import Any

import pytest

from test.cluster import wait_for
from test.cluster.prometheus import Exporter, Prometheus

from .conftest import Worlds
from .home import SOFT_TAINT, WORLD_LABEL, Home, HomeKubelet, add_burst_pod, gate_config
from .test_gate import is_open
from .world import World, condition, start

#: Answers come from a process that shares the machine with the rest of the tests.
POLL = {"interval": "1s", "timeout": "2s", "maxSampleAge": "6s"}


def page(free: float | str, *, at: float | None = None) -> str:
    """Home by kube-state-metrics: so many GPUs of eight are free, and a virtual node has 64."""
    when = "" if at is None else f" {int(at * 1000)}"
    rows: list[tuple[str, float | str]] = [
        ('kube_node_status_allocatable{node="vn",resource="nvidia_com_gpu"}', 64),
        ('kube_node_spec_taint{node="vn",key="virtual-kubelet.io/provider"}', 1),
        ('kube_node_status_condition{node="vn",condition="Ready",status="true"}', 1),
        ('kube_node_status_condition{node="h1",condition="Ready",status="true"}', 1),
        ('kube_pod_status_phase{namespace="n",pod="p",phase="Running"}', 1),
        ('kube_pod_status_phase{namespace="n",pod="ended",phase="Succeeded"}', 1),
        ('kube_pod_container_resource_requests{node="h1",namespace="n",pod="ended",resource="nvidia_com_gpu"}', 8),
    ]
    home = 'kube_node_status_allocatable{node="h1",resource="nvidia_com_gpu"}'
    held = 'kube_pod_container_resource_requests{node="h1",namespace="n",pod="p",resource="nvidia_com_gpu"}'
    if isinstance(free, str):
        rows += [(home, free), (held, 0)]
    else:
        rows += [(home, 8), (held, 8 - free)]
    return "".join(f"{series} {value}{when}\n" for series, value in rows)


class Scene:
    """A world whose gate asks a real Prometheus, which scrapes an exporter of the test."""

    def __init__(self, worlds: Worlds, folder: pathlib.Path, mode: str, free: float) -> None:
        self.world: World = worlds.bare("fake")
        self.world.profiles[0]["labels"] = {WORLD_LABEL: self.world.id}
        self.exporter = Exporter(page(free))
        self.prometheus = Prometheus(folder)
        self.world.on_close += [self.prometheus.close, self.exporter.close]
        self.targets = {"kube-state-metrics": [self.exporter.target]}
        self.prometheus.start(self.targets)
        self.home = Home(self.world)
        self.kubelet = HomeKubelet(self.home)
        gate = gate_config(
            self.world,
            mode=mode,
            # The default query knows no selector. There are no other nodes with GPUs while this runs.
            homeSelector={},
            prometheus={"url": self.prometheus.url, **POLL},
            openLevelAfter="1s",
            minClosed="1s",
        )
        start(self.world, gate=gate)
        wait_for(lambda: SOFT_TAINT in self.world.taints(self.world.node), "the gate works")

    def wait_open(self, wanted: bool, timeout: float = 40.0) -> None:
        what = f"the gate is {'open' if wanted else 'closed'}"
        wait_for(lambda: is_open(self.world) == wanted, what, timeout=timeout)

    def bad_polls(self, *reasons: str) -> float:
        name = "spillway_gate_bad_polls_total"
        return sum(self.world.daemon.metric(name, reason=reason) for reason in reasons)

    def told(self, reason: str) -> int:
        """How often an event came about the node."""
        items = self.world.cluster.get("/api/v1/namespaces/default/events?limit=500")["items"]
        ours = (e for e in items if e["involvedObject"].get("name") == self.world.node)
        return sum(e.get("count") or 1 for e in ours if e["reason"] == reason)

    def wait_bad(self, *reasons: str, more: int = 3, timeout: float = 40.0) -> None:
        """Waits until a few more answers were no data for one of these reasons, and for no other."""
        before, all_before = self.bad_polls(*reasons), self.bad_all()
        what = f"{more} answers are {reasons}"
        wait_for(lambda: self.bad_polls(*reasons) >= before + more, what, timeout=timeout)
        others = (self.bad_all() - all_before) - (self.bad_polls(*reasons) - before)
        # The last answer of the fault before may still have been on its way.
        assert others <= 1, self.world.daemon.metrics()

    def bad_all(self) -> float:
        return self.world.daemon.metric("spillway_gate_bad_polls_total")

    def wait_told(self, reason: str, times: int) -> None:
        what = f"{reason} was told {times} times"
        wait_for(lambda: self.told(reason) >= times, what, timeout=20)

    def wait_blind(self, wanted: bool) -> None:
        what = f"the gate is {'blind' if wanted else 'not blind'}"
        daemon = self.world.daemon
        wait_for(lambda: daemon.metric("spillway_gate_blind") == wanted, what, timeout=20)


@pytest.mark.timeout(300)
def test_no_fault_of_prometheus_is_an_answer(make_world: Worlds, short_tmp: pathlib.Path) -> None:
    scene = Scene(make_world, short_tmp / "prometheus", "Prometheus", free=8)
    exporter, prometheus = scene.exporter, scene.prometheus
    scene.wait_blind(False)
    assert not is_open(scene.world)

    # Its word alone opens and closes: home by the API server is empty all the time.
    exporter.samples = page(0)
    scene.wait_open(True)
    scene.wait_told("GateOpened", 1)
    exporter.samples = page(8)
    scene.wait_open(False)
    scene.wait_told("GateClosed", 1)

    # Each of these would open the gate at once if it were taken for zero. It stays as it is, and says so.
    missing = scene.told("GateDataMissing")
    restored = scene.told("GateDataRestored")

    def check(*reasons: str, timeout: float = 40.0) -> None:
        nonlocal missing
        scene.wait_bad(*reasons, timeout=timeout)
        scene.wait_blind(True)
        missing += 1
        scene.wait_told("GateDataMissing", missing)
        assert not is_open(scene.world), reasons

    def heal() -> None:
        nonlocal restored
        exporter.samples = page(8)
        scene.wait_blind(False)
        restored += 1
        scene.wait_told("GateDataRestored", restored)

    exporter.samples = None
    check("empty")
    heal()
    exporter.samples = page("NaN")
    check("nan")
    heal()
    # Somebody in between brings old samples: they are shown for five minutes, and count for six seconds here.
    exporter.samples = page(8, at=time.time())
    prometheus.wait_value("count(kube_node_status_allocatable)", 2)
    check("stale")
    heal()
    prometheus.child.send_signal(signal.SIGSTOP)
    check("connection")
    prometheus.child.send_signal(signal.SIGCONT)
    heal()
    prometheus.stop()
    check("connection")
    assert scene.world.daemon.metric("spillway_gate_transitions_total") == 2
    prometheus.start(scene.targets)
    heal()

    # Zero is an answer, again; and what is open stays open without one.
    exporter.samples = page(0)
    scene.wait_open(True)
    exporter.samples = ""
    scene.wait_bad("empty")
    scene.wait_blind(True)
    assert is_open(scene.world)


@pytest.mark.timeout(240)
def test_the_api_server_decides_while_prometheus_is_away(
    make_world: Worlds, short_tmp: pathlib.Path
) -> None:
    scene = Scene(make_world, short_tmp / "prometheus", "PrometheusThenKubernetes", free=8)
    world, prometheus = scene.world, scene.prometheus
    path = f"/api/v1/nodes/{world.node}"

    def says() -> dict[str, Any]:
        conditions = world.cluster.get(path)["status"]["conditions"]
        return next(c for c in conditions if c["type"] == "SpillwayGate")

    # Prometheus is believed: it says that nothing is free, while the API server's home is empty.
    scene.exporter.samples = page(0)
    scene.wait_open(True)
    scene.exporter.samples = page(8)
    scene.wait_open(False)
    restored = scene.told("GateDataRestored")

    # Without it the API server's objects decide, both ways, and the gate is never blind.
    prometheus.stop()
    scene.wait_told("GateDataMissing", 1)
    assert world.daemon.metric("spillway_gate_blind") == 0
    scene.home.fill()
    scene.wait_open(True)
    add_burst_pod(world, "inference")
    world.wait_ready("inference")
    assert world.pod("inference")["spec"]["nodeName"] == world.node
    scene.home.empty()
    scene.wait_open(False)

    # Back again, and believed again: home by the API server is empty, and it opens nevertheless.
    scene.exporter.samples = page(0)
    prometheus.start(scene.targets)
    scene.wait_told("GateDataRestored", restored + 1)
    scene.wait_open(True)
    wait_for(lambda: condition(world.cluster.get(path), "SpillwayGate") == "True", says()["message"])
    assert scene.kubelet.error is None
