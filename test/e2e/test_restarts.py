"""SIGTERM and what comes after it; and a daemon with nothing to do."""

from __future__ import annotations

import itertools
import json
import time

import pytest

from test.cluster import wait_for
from test.cluster.gate import delay_answer

from .conftest import Worlds
from .world import STATE, World, condition


def pause(seconds: float) -> None:
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > seconds, "time has passed", timeout=seconds + 5)


def test_sigterm_leaves_everything_and_a_second_start_writes_nothing(lasting_world: World) -> None:
    world = lasting_world
    names = ["a", "b", "c"]
    uids = [world.create_pod(name) for name in names]
    world.wait_ready(*names)
    pause(1.5)
    before = {name: world.pod(name) for name in names}
    code, spent = world.daemon.sigterm()
    assert code == 0
    assert spent < 10
    world.assert_one_instance_each(*uids)
    assert {name: world.pod(name) for name in names} == before
    node = world.cluster.get(f"/api/v1/nodes/{world.node}")
    assert condition(node, "Ready") == "True"
    assert not world.cluster.get(world.lease_path)["spec"].get("holderIdentity")

    world.api.reset()
    world.backend.gate.reset()
    world.daemon.restart(timeout=15)
    pause(5)
    assert world.writes() == 0
    assert world.api.count(verb="create", resource="events") == 0
    asked = world.backend.gate.requests(lambda s: s.verb not in ("get", "list"))
    assert asked == []
    assert {name: world.pod(name) for name in names} == before
    world.delete_pod("a")
    world.wait_gone("a")


def test_sigterm_lets_a_write_in_flight_finish(lasting_world: World) -> None:
    world = lasting_world
    rule = world.api.on(world.status_patch("p", body='"phase":"Running"'), delay_answer(2))
    uid = world.create_pod("p")
    wait_for(lambda: rule.fired, "the write is under way")
    code, spent = world.daemon.sigterm()
    assert code == 0
    assert spent < 10
    assert world.pod("p")["status"]["phase"] == "Running"
    world.daemon.restart()
    world.wait_ready("p")
    world.assert_one_instance_each(uid)
    world.assert_made_once([uid])


@pytest.mark.parametrize("kind", ["fake"], indirect=True)
def test_sigterm_ends_in_time_although_nobody_answers(lasting_world: World) -> None:
    world = lasting_world
    uid = world.create_pod("p")
    world.wait_ready("p")
    world.api.block()
    world.backend.gate.block()
    code, spent = world.daemon.sigterm()
    assert code == 0
    assert spent < 10
    world.api.unblock()
    world.backend.gate.unblock()
    world.daemon.restart()
    world.assert_one_instance_each(uid)


def test_at_rest_only_leases_are_written(make_world: Worlds) -> None:
    world = make_world("fake", "docker")
    names = ["a", "b", "c"]
    for name in names:
        world.create_pod(name, world.backends[1].workload())
    world.wait_ready(*names)
    pause(3)
    world.api.reset()
    pause(30)
    others = world.api.requests(lambda s: s.resource != "leases")
    # The watch of pods is renewed every 10 s, so that one that died without a word is found soon;
    # others every 5 to 10 minutes. The node reports every 5 minutes.
    renewals = [s for s in others if s.verb == "watch" and "sendInitialEvents" not in s.query]
    reports = [s for s in others if s.resource == "nodes/status" and s.verb == "patch"]
    assert len(renewals) <= 4
    assert len(reports) <= 1
    rest = [s for s in others if s not in renewals and s not in reports]
    assert rest == [], world.api.summary()
    leases = world.api.requests(lambda s: s.resource == "leases")
    assert all(s.verb == "update" and s.status == 200 for s in leases)
    for namespace, every in (("kube-node-lease", 10), ("spillway-system", 5)):
        times = [s.at for s in leases if f"/{namespace}/" in s.path]
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert len(times) >= 30 // every - 1
        assert all(0.7 * every < gap < 1.3 * every for gap in gaps), gaps


def test_the_daemon_says_what_it_does(make_world: Worlds) -> None:
    world = make_world("fake")
    world.create_pod("p")
    world.wait_ready("p")
    (record,) = world.daemon.debug_pods()
    assert (record["name"], record["stage"], record["node"]) == ("p", "running", world.node)
    assert record["placement"]["tag"] == world.tags()[0]
    assert world.daemon.admin("/healthz")[0] == 200

    def counted(*steps: str) -> bool:
        name = "spillway_pod_step_seconds_count"
        return all(world.daemon.metric(name, step=step) == 1 for step in steps)

    # The daemon hears of its last write a moment after us.
    steps = ("chosen", "created", "booted", "running", "ready")
    wait_for(lambda: counted(*steps), "its steps are counted")
    world.delete_pod("p")
    world.wait_gone("p")
    wait_for(lambda: counted("gone"), "its end is counted")
    entries = world.daemon.log_lines()
    assert all("level" in entry and "msg" in entry for entry in entries)
    assert not [e for e in entries if e["level"] == "unparsed"], "a line of the log is no JSON"
    assert not [e for e in entries if e["level"] == "error"]


def test_secrets_are_in_no_log_and_no_status(make_world: Worlds) -> None:
    world = make_world("docker")
    secret = "hunter2-5f3a"
    body = {"metadata": {"name": "s"}, "stringData": {"PASSWORD": secret}}
    path = f"/api/v1/namespaces/{world.namespace}/secrets"
    assert world.cluster.api("POST", path, body)[0] == 201
    uid = world.create_pod("p", container={"envFrom": [{"secretRef": {"name": "s"}}]})
    world.wait_ready("p")
    assert f"PASSWORD={secret}" in world.backend.container_of(uid)["Config"]["Env"]
    # The plain pod of the cluster itself does not hold it either.
    assert secret not in json.dumps(world.pod("p"))
    assert secret not in world.daemon.log.read_text()
    wait_for(lambda: world.events(uid), "its events are written")
    assert secret not in json.dumps(world.events(uid))
    assert secret not in world.daemon.admin("/debug/pods")[1]
    assert secret not in world.daemon.admin("/metrics")[1]
    assert STATE in world.pod("p")["metadata"]["annotations"]
