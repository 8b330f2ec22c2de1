"""Faults between the daemon and the API server: it catches up within 15 s of their end, and does
nothing twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from test.cluster import Cluster, matching, wait_for
from test.cluster.gate import (
    GONE_EVENT,
    Action,
    Exchange,
    answer,
    before,
    cut_mid_line,
    drop_after,
    end_with,
    silent,
    watch_gone,
)

from .conftest import Worlds
from .world import STATE, World, is_ready

CATCH_UP = 15.0

WATCH = matching(verb="watch", resource="pods")


def pod_lists(world: World) -> int:
    """How often the pods were listed as a whole, paged or streamed."""
    return len(
        world.api.requests(
            lambda s: s.resource == "pods"
            and (s.verb == "list" or (s.verb == "watch" and "sendInitialEvents" in s.query))
        )
    )


def settle(world: World) -> None:
    """Waits until the watch carries the daemon's own writes."""
    world.create_pod("before")
    world.wait_ready("before")


def expect_caught_up(world: World, begin: float, *names: str) -> None:
    left = CATCH_UP - (time.monotonic() - begin)
    assert left > 0, "the fault itself took too long"
    world.wait_ready(*names, timeout=left)
    uids = [world.pod(name)["metadata"]["uid"] for name in names]
    world.assert_made_once(uids)


@pytest.mark.parametrize(
    "action", [cut_mid_line(), end_with("")], ids=["cut_in_the_middle_of_a_line", "ended"]
)
def test_a_watch_that_breaks_is_resumed_without_a_list(make_world: Worlds, action: Action) -> None:
    world = make_world("fake")
    settle(world)
    lists = pod_lists(world)
    rule = world.api.on(WATCH, action)
    begin = time.monotonic()
    uid = world.create_pod("p")
    rule.wait(20)
    expect_caught_up(world, begin, "p")
    assert pod_lists(world) == lists
    world.assert_one_instance_each(uid, world.pod("before")["metadata"]["uid"])


@pytest.mark.parametrize("how", ["in_the_stream", "at_the_start", "as_a_status"])
def test_a_watch_that_is_too_old_leads_to_a_list(make_world: Worlds, how: str) -> None:
    world = make_world("fake")
    settle(world)
    lists = pod_lists(world)
    gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    # What goes on meanwhile is only seen by a list.
    if how == "in_the_stream":
        rule = world.api.on(WATCH, end_with(GONE_EVENT))
    else:
        world.api.on(WATCH, end_with(""))
        action = watch_gone() if how == "at_the_start" else answer(410, gone)
        renewal = matching(
            verb="watch", resource="pods", where=lambda r: "sendInitialEvents" not in r.query
        )
        rule = world.api.on(renewal, action)
    world.delete_pod("before")
    begin = time.monotonic()
    world.create_pod("p")
    rule.wait(20)
    expect_caught_up(world, begin, "p")
    world.wait_gone("before", timeout=CATCH_UP)
    assert lists < pod_lists(world) <= lists + 2


def test_a_watch_that_goes_silent_is_noticed_by_the_daemons_own_writes(make_world: Worlds) -> None:
    world = make_world("fake")
    settle(world)
    # The pod is seen; the echo of the intent and all after it are swallowed.
    rule = world.api.on(WATCH, silent(), nth=2)
    first = world.create_pod("first")
    rule.wait(20)
    begin = time.monotonic()
    second = world.create_pod("second")
    world.delete_pod("before")
    expect_caught_up(world, begin, "first", "second")
    world.wait_gone("before", timeout=CATCH_UP)
    world.assert_one_instance_each(first, second)


def test_a_watch_that_goes_silent_is_noticed_although_nothing_else_happens(
    make_world: Worlds,
) -> None:
    world = make_world("fake")
    settle(world)
    rule = world.api.on(WATCH, silent())
    begin = time.monotonic()
    uid = world.create_pod("p")
    rule.wait(20)
    expect_caught_up(world, begin, "p")
    world.assert_one_instance_each(uid, world.pod("before")["metadata"]["uid"])


def test_an_intent_that_conflicts_buys_nothing(make_world: Worlds) -> None:
    world = make_world("fake")

    def touch(exchange: Exchange) -> None:
        patch = b'{"metadata":{"labels":{"touched":"yes"}}}'
        path = exchange.request.path.removesuffix("/status")
        kind = "application/merge-patch+json"
        assert world.cluster.api("PATCH", path, patch, content_type=kind)[0] == 200
        assert world.backend.tags() == []

    world.api.on(world.status_patch("p", body=STATE), before(touch))
    uid = world.create_pod("p")
    world.wait_ready("p")

    def statuses() -> list[int]:
        return [s.status for s in world.api.requests(lambda s: s.resource == "pods/status")]

    # The watch may show the pod Ready before the answer to its write has passed the gate.
    wait_for(lambda: statuses().count(200) >= 2, "both writes are answered")
    assert statuses() == [409, 200, 200]
    world.assert_made_once([uid])


def test_retry_after_is_obeyed(make_world: Worlds) -> None:
    world = make_world("fake")
    world.api.on(world.status_patch("p", body=STATE), answer(429, retry_after=3))
    uid = world.create_pod("p")
    world.wait_ready("p")
    tries = world.api.requests(lambda s: s.resource == "pods/status")
    assert tries[0].status == 429
    assert tries[1].at - tries[0].at >= 2.9
    world.assert_made_once([uid])


def test_errors_of_the_server_are_retried(make_world: Worlds) -> None:
    world = make_world("fake")
    settle(world)
    intent, running = world.status_patch("p", body=STATE), '"phase":"Running"'
    world.api.on(intent, answer(500), times=2)
    world.api.on(world.status_patch("p", body=running), answer(503), times=2)
    world.api.on(world.pod_delete("before"), answer(500), times=2)
    world.api.on(WATCH, cut_mid_line())
    world.api.on(WATCH, answer(500), times=2)
    begin = time.monotonic()
    uid = world.create_pod("p")
    world.delete_pod("before")
    expect_caught_up(world, begin, "p")
    world.wait_gone("before", timeout=CATCH_UP)
    world.assert_one_instance_each(uid)


@pytest.mark.parametrize("step", ["intent", "running", "terminal", "delete"])
def test_an_answer_that_is_lost_does_nothing_twice(make_world: Worlds, step: str) -> None:
    world = make_world("fake")
    match = {
        "intent": world.status_patch("p", body=STATE),
        "running": world.status_patch("p", body='"phase":"Running"'),
        "terminal": world.status_patch(
            "p", where=lambda r: b'"Succeeded"' in r.body or b'"Failed"' in r.body
        ),
        "delete": world.pod_delete("p"),
    }[step]
    rule = world.api.on(match, drop_after())
    uid = world.create_pod("p")
    world.wait_ready("p", timeout=CATCH_UP)
    world.assert_one_instance_each(uid)
    world.delete_pod("p")
    world.wait_gone("p", timeout=CATCH_UP)
    assert rule.fired == 1
    world.assert_made_once([uid])
    audit = world.backend.cloud.audit()
    assert [i["terminateCalls"] for i in audit["instances"]] == [1]


def test_the_api_server_is_away_for_a_while(make_world: Worlds) -> None:
    world = make_world("fake")
    settle(world)
    kept = world.pod("before")["metadata"]["uid"]
    world.create_pod("goes")
    world.wait_ready("goes")
    world.api.block()
    world.delete_pod("goes")
    uid = world.create_pod("comes")
    blocked = time.monotonic()
    wait_for(lambda: time.monotonic() - blocked > 8, "eight seconds have passed")
    assert world.daemon.running
    world.api.unblock()
    begin = time.monotonic()
    expect_caught_up(world, begin, "comes")
    world.wait_gone("goes", timeout=CATCH_UP)
    world.assert_one_instance_each(kept, uid)


def test_the_api_server_restarts(make_world: Worlds, new_cluster: Callable[..., Cluster]) -> None:
    cluster = new_cluster()
    world = make_world("fake", cluster=cluster, rights=cluster.spillway_kubeconfig())
    settle(world)
    kept = world.pod("before")["metadata"]["uid"]
    world.create_pod("goes")
    world.wait_ready("goes")
    cluster.restart_apiserver()
    begin = time.monotonic()
    uid = world.create_pod("comes")
    world.delete_pod("goes")
    expect_caught_up(world, begin, "comes")
    world.wait_gone("goes", timeout=CATCH_UP)
    world.assert_one_instance_each(kept, uid)
    node = cluster.get(f"/api/v1/nodes/{world.node}")
    conditions: dict[str, Any] = {c["type"]: c["status"] for c in node["status"]["conditions"]}
    assert conditions["Ready"] == "True", json.dumps(conditions)
    assert is_ready(world.pod("before"))
