"""Faults between the daemon and its providers: what could not be asked is never taken for gone."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from test.cluster import matching, wait_for
from test.cluster.gate import Exchange, after, answer, delay, delay_answer, drop_after, drop_before
from test.cluster.http1 import Request

from .conftest import Worlds
from .world import World, condition, is_ready, phase


def snapshot(world: World, *names: str) -> dict[str, Any]:
    return {name: world.pod(name)["status"] for name in names}


def observe(seconds: float, holds: Any, what: str) -> None:
    """Absence has to be watched: `holds` all the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert holds(), what
        time.sleep(0.25)


def node_of(world: World) -> dict[str, Any]:
    return world.cluster.get(f"/api/v1/nodes/{world.node}")


# Create


@pytest.mark.parametrize("how", ["lost", "not at all", "late", "very late", "twice"])
def test_a_create_that_is_answered_badly_buys_once(
    lasting_world: World, how: str
) -> None:
    world = lasting_world
    gate, create = world.backend.gate, world.backend.step("create")
    if how == "lost":
        rule = gate.on(create, drop_after())
    elif how == "not at all":
        rule = gate.on(create, drop_before())
    elif how == "late":
        # The deadline of a create is 5 s here: the daemon gives up before it hears of success.
        rule = gate.on(create, delay_answer(7))
    elif how == "very late":
        # The daemon gives up before the provider has even heard of it, and may ask again meanwhile.
        rule = gate.on(create, delay(9))
    else:
        rule = gate.on(create, after(lambda exchange: repeat(world, exchange)))
    uid = world.create_pod("p")
    rule.wait(30)
    world.wait_ready("p", timeout=60)
    world.assert_one_instance_each(uid)
    if how == "very late":
        # Whatever the late one has done would be there by now.
        observe(3, lambda: len(world.tags()) == 1, "a second instance")
    world.assert_made_once([uid])
    assert world.pod("p")["status"]["containerStatuses"][0]["restartCount"] == 0


def repeat(world: World, exchange: Exchange) -> None:
    """Sends a request a second time, past the gate."""
    from test.cluster.dockerd import UnixConnection

    request = exchange.request
    upstream = (
        world.backend.cloud.socket if world.backend.kind == "fake" else world.backend.engine.socket
    )
    connection = UnixConnection(upstream)
    connection.request(
        request.method, request.target, request.body, {"Content-Type": "application/json"}
    )
    assert connection.getresponse().status in (200, 201, 409)
    connection.close()


@pytest.mark.parametrize("kind", ["fake"], indirect=True)
def test_a_ghost_of_a_failed_create_is_found_or_ended(lasting_world: World) -> None:
    world = lasting_world
    cloud = world.backend.cloud
    # An internal error is answered, and the instance appears five settle times later.
    cloud.fault("ghost", call="create", times=1, duration="5s")
    uid = world.create_pod("p")
    world.wait_ready("p", timeout=60)
    observe(6, lambda: len(world.tags()) <= 2, "more than one ghost")
    wait_for(lambda: len(world.tags()) == 1, "one instance is left", timeout=30)
    world.assert_one_instance_each(uid)
    assert is_ready(world.pod("p"))
    cloud.clear_faults()


@pytest.mark.parametrize("kind", ["fake"], indirect=True)
def test_sold_out_offers_are_passed_over(lasting_world: World) -> None:
    world = lasting_world
    cloud = world.backend.cloud
    cloud.fault("error", call="create", kind="no_capacity", times=1)
    uid = world.create_pod("p")
    world.wait_ready("p")
    tags = [tag for tag, calls in cloud.audit()["creates"].items() if calls]
    assert len(tags) >= 1
    world.assert_one_instance_each(uid)
    cloud.clear_faults()


# Lists


def distorted(request: Request) -> bool:
    """The list of all instances, not the look for one of them."""
    filters = json.loads(request.query.get("filters", "{}"))
    labels = filters.get("label", [])
    labels = list(labels) if isinstance(labels, dict) else labels
    return request.path.endswith("/containers/json") and labels == ["spillway.dev/tag"]


# The list of an engine is whole or fails, so there are fewer ways for docker.
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("fake", "incomplete"),
        ("fake", "empty"),
        ("fake", "lagging"),
        ("fake", "failing"),
        ("docker", "empty"),
        ("docker", "failing"),
    ],
    indirect=["kind"],
)
def test_a_listing_that_is_wrong_changes_nothing(lasting_world: World, how: str) -> None:
    world = lasting_world
    uids = [world.create_pod(name) for name in ("a", "b", "c")]
    world.wait_ready("a", "b", "c")
    before = snapshot(world, "a", "b", "c")
    if world.backend.kind == "fake":
        cloud = world.backend.cloud
        if how == "failing":
            cloud.fault("error", call="list_owned", kind="unavailable")
        else:
            words = {"incomplete": "partial", "empty": "empty", "lagging": "lagging"}
            cloud.fault(f"{words[how]}_list", call="list_owned", duration="1h")
    else:
        lists = matching(where=distorted)
        bad = answer(500, {"message": "ill"}) if how == "failing" else answer(200, "[]")
        world.backend.gate.on(lists, bad, times=None)
    seen = world.backend.gate.count()
    # A deletion makes the daemon look often.
    world.delete_pod("c")
    observe(
        8,
        lambda: snapshot(world, "a", "b") == {name: before[name] for name in ("a", "b")},
        "a status changed",
    )
    assert world.backend.gate.count() > seen
    if world.backend.kind == "fake":
        cloud.clear_faults()
    world.backend.gate.clear()
    world.wait_gone("c")
    wait_for(lambda: len(world.tags()) == 2, "only the deleted one is gone")
    world.assert_one_instance_each(*uids[:2])
    world.assert_made_once(uids)
    assert snapshot(world, "a", "b") == {name: before[name] for name in ("a", "b")}


@pytest.mark.parametrize("kind", ["fake"], indirect=True)
def test_instances_of_others_are_never_touched(lasting_world: World) -> None:
    world = lasting_world
    cloud = world.backend.cloud
    world.create_pod("p")
    world.wait_ready("p")
    tag = world.tags()[0]
    strangers = [
        cloud.add_foreign(),
        cloud.add_foreign("somebody-else"),
        # Another installation's, and one that only looks like ours.
        cloud.add_foreign("spw-aaaaaaaaaaaaa-" + tag.split("-")[2] + "-1"),
        cloud.add_foreign("-".join(tag.split("-")[:2]) + "-not-a-pod"),
    ]
    observe(6, lambda: True, "")
    left = {i["id"]: i for i in cloud.audit()["instances"] if i["foreign"]}
    assert all(left[one]["gone"] is None for one in strangers)
    assert all(left[one]["terminateCalls"] == 0 for one in strangers)


@pytest.mark.parametrize("kind", ["fake"], indirect=True)
def test_orphans_of_ours_are_ended(lasting_world: World) -> None:
    world = lasting_world
    cloud = world.backend.cloud
    world.create_pod("p")
    world.wait_ready("p")
    ours = world.tags()[0]
    # Of a pod that does not exist, with our installation's part in its tag.
    orphan = cloud.add_foreign(f"{'-'.join(ours.split('-')[:2])}-{'a' * 26}-1")

    def gone() -> bool:
        found = next(i for i in cloud.audit()["instances"] if i["id"] == orphan)
        return found["gone"] is not None

    wait_for(gone, "the orphan is ended", timeout=40)
    assert world.tags() == [ours]


# Outages


@pytest.fixture
def both(make_world: Worlds) -> World:
    """Two nodes: what is bound to the first is rented at the fake cloud, the other's at docker."""
    profiles = [{"offers": {"providers": [name]}} for name in ("fake", "docker")]
    return make_world("fake", "docker", profiles=profiles)


def on_both(world: World, name: str) -> list[str]:
    """Creates a pod at each node; their names."""
    names = []
    for backend, node in zip(world.backends, world.nodes, strict=True):
        names.append(f"{name}-{backend.kind}")
        world.create_pod(names[-1], backend.workload(), nodeName=node)
    return names


def test_providers_that_are_unreachable_for_a_minute_heal(both: World) -> None:
    world = both
    kept, go = on_both(world, "kept"), on_both(world, "goes")
    world.wait_ready(*kept, *go)
    before = snapshot(world, *kept)
    for backend in world.backends:
        backend.gate.block()
    blocked = time.monotonic()
    for name in go:
        world.delete_pod(name)
    come = on_both(world, "comes")

    def shown() -> bool:
        return condition(node_of(world), "SpillwayProvidersReachable") == "False"

    wait_for(shown, "the node's condition says so", timeout=45)
    print(f"shown {time.monotonic() - blocked:.1f} s after the cut")

    def told() -> list[dict[str, Any]]:
        items = world.cluster.get("/api/v1/namespaces/default/events?limit=500")["items"]
        mine = (e for e in items if e["involvedObject"]["name"] == world.node)
        return [e for e in mine if e["type"] == "Warning" and "reach" in e["reason"].lower()]

    wait_for(told, "an event of the node says so", timeout=20)

    def calm() -> bool:
        found = node_of(world)
        return condition(found, "Ready") == "True" and snapshot(world, *kept) == before

    observe(max(0.0, 60 - (time.monotonic() - blocked)), calm, "node or pod changed")
    assert [phase(world.pod(name)) for name in come] == ["Pending", "Pending"]
    assert all(world.pod(name) is not None for name in go)
    for backend in world.backends:
        backend.gate.unblock()
    healed = time.monotonic()
    world.wait_gone(*go, timeout=90)
    world.wait_ready(*come, timeout=150)
    wait_for(
        lambda: condition(node_of(world), "SpillwayProvidersReachable") == "True",
        "the condition is good again",
        timeout=60,
    )
    print(f"healed {time.monotonic() - healed:.1f} s after the return")
    assert snapshot(world, *kept) == before
    uids = [world.pod(name)["metadata"]["uid"] for name in [*kept, *come]]
    world.assert_one_instance_each(*uids)
    world.assert_made_once(uids)


def test_an_engine_that_hangs_holds_nothing_else_up(both: World) -> None:
    world = both
    world.backends[1].gate.on(matching(), delay(20), times=None)
    uid = world.create_pod("p", world.backends[0].workload())
    world.wait_ready("p", timeout=10)
    assert condition(node_of(world), "Ready") == "True"
    world.backends[1].gate.clear()
    world.assert_made_once([uid])


def test_an_engine_without_power_loses_its_instances(
    make_world: Worlds, new_engine: Any
) -> None:
    engine = new_engine()
    world = make_world("docker", engine=engine)
    world.create_pod("p")
    world.wait_ready("p")
    engine.kill()
    engine.start_again()
    # The sandbox with the pod's network is gone for good: that is no container to be restarted.
    pod = world.wait_phase("p", "Failed", timeout=60)
    assert pod["status"]["reason"] == "InstanceLost"
    assert world.state_of("p")["attempt"] == 1
    world.delete_pod("p")
    world.wait_gone("p")
    world.wait_clean()
    assert engine.leftovers() == {"containers": [], "volumes": [], "networks": []}
