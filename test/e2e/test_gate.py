"""The capacity gate: pods stay at home while there is room, and leave when there is none."""

from __future__ import annotations

import time
from typing import Any

from test.cluster import wait_for
from test.cluster.gate import anything, drop_before

from .conftest import Worlds
from .home import (
    GATE_TAINT,
    SOFT_TAINT,
    WORLD_LABEL,
    Home,
    Prometheus,
    add_burst_pod,
    gate_config,
    patch,
)
from .world import World, condition, phase, start

FOREIGN = {"key": "example.com/team", "value": "blue", "effect": "PreferNoSchedule"}


def make(worlds: Worlds, *, filled: bool = True, **gate: Any) -> tuple[World, Home]:
    """A world with a home and a gate, which is closed; the home is full unless told otherwise."""
    world = worlds.bare("fake")
    world.profiles[0]["labels"] = {WORLD_LABEL: world.id}
    home = Home(world)
    if filled:
        home.fill()
    start(world, gate=gate_config(world, **gate))
    wait_for(lambda: SOFT_TAINT in world.taints(world.node), "the gate works")
    return world, home


def is_open(world: World) -> bool:
    return GATE_TAINT not in world.taints(world.node)


def raw_taint(world: World, key: str) -> dict[str, Any]:
    taints = world.cluster.get(f"/api/v1/nodes/{world.node}")["spec"]["taints"]
    return next(taint for taint in taints if taint["key"] == key)


def edit_taints(world: World, *, without: str = "", add: dict[str, Any] | None = None) -> None:
    path = f"/api/v1/nodes/{world.node}"
    taints = world.cluster.get(path)["spec"]["taints"]
    kept = [taint for taint in taints if taint["key"] != without]
    patch(world, path, {"spec": {"taints": kept + ([add] if add else [])}})


def annotate(world: World, **values: str | None) -> None:
    annotations = {f"spillway.dev/{key.replace('_', '-')}": v for key, v in values.items()}
    patch(world, f"/api/v1/nodes/{world.node}", {"metadata": {"annotations": annotations}})


def heard(world: World, reason: str) -> bool:
    items = world.cluster.get("/api/v1/namespaces/default/events?limit=500")["items"]
    ours = (e for e in items if e["involvedObject"].get("name") == world.node)
    return any(event["reason"] == reason for event in ours)


def wait_heard(world: World, reason: str) -> None:
    wait_for(lambda: heard(world, reason), f"the event {reason}", timeout=20)


def wait_unschedulable(world: World, name: str) -> None:
    world.wait_pod(name, lambda p: p and condition(p, "PodScheduled") == "False", "unschedulable")


def test_pods_leave_a_full_home_and_the_gate_closes_when_there_is_room(make_world: Worlds) -> None:
    world, home = make(make_world)
    edit_taints(world, add=FOREIGN)
    foreign = raw_taint(world, FOREIGN["key"])
    add_burst_pod(world, "inference")
    wait_unschedulable(world, "inference")
    begin = time.monotonic()
    wait_for(lambda: is_open(world), "the gate is open", timeout=15, interval=0.05)
    spent = time.monotonic() - begin
    print(f"need to open: {spent:.2f} s after the first unschedulable pod")
    # 6 s are promised; the machine of a test is shared.
    assert spent < 9
    world.wait_ready("inference")
    assert world.pod("inference")["spec"]["nodeName"] == world.node
    path = f"/api/v1/nodes/{world.node}"
    says = "the condition says open"
    wait_for(lambda: condition(world.cluster.get(path), "SpillwayGate") == "True", says)
    wait_heard(world, "GateOpened")
    assert raw_taint(world, FOREIGN["key"]) == foreign
    home.empty()
    home.beat()
    wait_for(lambda: not is_open(world), "the gate is closed", timeout=40)
    wait_heard(world, "GateClosed")
    assert raw_taint(world, FOREIGN["key"]) == foreign
    # It goes on running where it is; new ones go home.
    assert phase(world.pod("inference")) == "Running"
    add_burst_pod(world, "second", terminationGracePeriodSeconds=0)
    world.wait_pod("second", lambda p: p and p["spec"].get("nodeName"), "bound")
    assert world.pod("second")["spec"]["nodeName"] in home.names
    assert world.daemon.metric("spillway_gate_transitions_total", gate="gpu") == 2


def test_a_new_node_has_the_taint_from_its_first_moment(make_world: Worlds) -> None:
    world, _ = make(make_world, filled=False)
    created = world.api.requests(lambda s: s.resource == "nodes" and s.verb == "create")
    patched = world.api.requests(lambda s: s.resource == "nodes" and s.verb == "patch")
    assert len(created) == 1
    assert not is_open(world)
    # Nobody had to add it afterwards: the one write of taints is that of the soft one.
    assert len([seen for seen in patched if "spillway-gate" in str(seen.query)]) == 1


def test_an_order_on_the_node_wins(make_world: Worlds) -> None:
    world, _ = make(make_world, filled=False)
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 12))
    annotate(world, gate="open", gate_until=until)
    wait_for(lambda: is_open(world), "open by order")
    wait_heard(world, "GateOverride")
    wait_for(lambda: not is_open(world), "the order has ended", timeout=40)


def test_a_fight_over_the_taint_ends(make_world: Worlds) -> None:
    world, _ = make(make_world, filled=False)
    for _ in range(3):
        edit_taints(world, without=GATE_TAINT)
        wait_for(lambda: not is_open(world), "the taint is back", timeout=20)
    wait_heard(world, "GateContested")
    edit_taints(world, without=GATE_TAINT)
    time.sleep(12)
    assert is_open(world)


def test_the_gate_alone_and_its_standby(make_world: Worlds) -> None:
    world = make_world.bare("fake")
    world.profiles[0]["labels"] = {WORLD_LABEL: world.id}
    home = Home(world)
    home.fill()
    options = {"gate": gate_config(world, inDaemon=False)}
    start(world, **options)
    first = world.add_daemon("gate-1", command="gate", **options).start()
    wait_for(lambda: SOFT_TAINT in world.taints(world.node), "the first gate works")
    second = world.add_daemon("gate-2", command="gate", **options).start()
    second.wait_logged("standing by")
    assert not is_open(world)
    first.kill9()
    add_burst_pod(world, "inference")
    home.beat()
    # The holder is known to be dead, on the same machine: no lease has to run out.
    wait_for(lambda: is_open(world), "the second gate has opened", timeout=40)
    world.wait_ready("inference")


def test_an_absent_api_server_changes_nothing(make_world: Worlds) -> None:
    world, home = make(make_world)
    away = world.api.on(anything, drop_before(), times=None)
    add_burst_pod(world, "inference")
    wait_unschedulable(world, "inference")
    time.sleep(10)
    assert not is_open(world)
    away.remove()
    home.beat()
    wait_for(lambda: is_open(world), "the gate has caught up", timeout=40)
    world.wait_ready("inference")


def test_prometheus_without_data_is_not_a_full_home(make_world: Worlds) -> None:
    prometheus = Prometheus()
    world, home = make(
        make_world,
        filled=False,
        prometheus={"url": prometheus.url, "interval": "1s", "timeout": "500ms"},
        freeQuery="free",
        openLevelAfter="1s",
    )
    world.on_close.append(prometheus.close)
    wait_heard(world, "GateDataMissing")
    for status, delay, values in ((503, 0, ()), (200, 0, ("NaN",)), (200, 2, ("0",))):
        prometheus.status, prometheus.delay = status, delay
        prometheus.say(*values)
        time.sleep(4)
        assert not is_open(world), (status, delay, values)
    prometheus.status, prometheus.delay = 200, 0
    prometheus.say("0")
    home.beat()
    wait_for(lambda: is_open(world), "zero is data", timeout=20)
    wait_heard(world, "GateDataRestored")
    assert world.daemon.metric("spillway_gate_bad_polls_total", reason="nan") > 0
    assert world.daemon.metric("spillway_gate_bad_polls_total", reason="http") > 0
    assert world.daemon.metric("spillway_gate_bad_polls_total", reason="connection") > 0
