"""The Node: what it says, what of it is others', and who may have it."""

from __future__ import annotations

import json
import time
from typing import Any

from test.cluster import wait_for

from .conftest import Worlds
from .world import PROVIDER_TAINT, World, condition

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def node(world: World, name: str = "") -> dict[str, Any] | None:
    status, answer = world.cluster.api("GET", f"/api/v1/nodes/{name or world.node}")
    assert status in (200, 404), answer
    return answer if status == 200 else None


def patch(world: World, path: str, body: dict[str, Any], kind: str = MERGE) -> None:
    data = json.dumps(body).encode()
    status, answer = world.cluster.api("PATCH", path, data, content_type=kind)
    assert status == 200, answer


def lease_owner(world: World) -> str:
    """The UID of the node to which the node's lease belongs; empty while there is none."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{world.node}"
    status, answer = world.cluster.api("GET", path)
    return answer["metadata"]["ownerReferences"][0]["uid"] if status == 200 else ""


def test_the_node_says_what_it_is(make_world: Worlds) -> None:
    world = make_world(
        "fake",
        profile={
            "labels": {"example.com/team": "blue"},
            "annotations": {"example.com/note": "rented"},
            "capacity": {"cpu": "12", "memory": "64Gi", "pods": "33", "nvidia.com/gpu": "4"},
        },
    )
    found = node(world)
    assert found["spec"]["taints"] == [
        {"key": PROVIDER_TAINT, "value": "spillway", "effect": "NoSchedule"}
    ]
    assert found["spec"]["providerID"] == f"spillway://{world.installation}/{world.node}"
    labels = found["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == world.node
    assert labels["spillway.dev/installation"] == world.installation
    assert labels["example.com/team"] == "blue"
    assert labels["kubernetes.io/os"] == "linux"
    assert found["metadata"]["annotations"]["example.com/note"] == "rented"
    conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert conditions == {
        "Ready": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "NetworkUnavailable": "False",
        "SpillwayProvidersReachable": "True",
    }
    for resources in (found["status"]["capacity"], found["status"]["allocatable"]):
        assert resources["cpu"] == "12"
        assert resources["memory"] == "64Gi"
        assert resources["pods"] == "33"
        assert resources["nvidia.com/gpu"] == "4"
    assert found["status"]["addresses"] == [{"type": "InternalIP", "address": "127.0.0.1"}]
    assert found["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.36.")


def test_the_taint_is_left_out_if_the_profile_says_so(make_world: Worlds) -> None:
    world = make_world("fake", profile={"providerTaint": False})
    assert "taints" not in node(world)["spec"]
    # So an ordinary pod may be scheduled to it.
    name = "plain"
    body = {
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "busybox:test"}],
        },
    }
    assert world.cluster.api("POST", world.pods_path(), body)[0] == 201
    assert world.wait_ready(name)["spec"]["nodeName"] == world.node


def test_the_lease_belongs_to_the_node(make_world: Worlds) -> None:
    world = make_world("fake")
    wait_for(lambda: lease_owner(world), "the node has a lease")
    assert lease_owner(world) == node(world)["metadata"]["uid"]


def test_a_deleted_node_comes_back_and_its_pods_stay(make_world: Worlds) -> None:
    world = make_world("fake")
    uid = world.create_pod("p")
    world.wait_ready("p")
    old = node(world)["metadata"]["uid"]
    assert world.cluster.api("DELETE", f"/api/v1/nodes/{world.node}")[0] == 200

    def back() -> bool:
        found = node(world)
        return (
            found is not None
            and found["metadata"]["uid"] != old
            and condition(found, "Ready") == "True"
            and bool(found["spec"].get("taints"))
        )

    wait_for(back, "the node is back with status and taint", timeout=15)
    wait_for(
        lambda: lease_owner(world) == node(world)["metadata"]["uid"],
        "the lease has the new owner",
        timeout=15,
    )
    assert world.pod("p")["metadata"]["uid"] == uid
    world.assert_one_instance_each(uid)


def test_what_others_put_on_the_node_survives(make_world: Worlds) -> None:
    world = make_world("fake")
    path = f"/api/v1/nodes/{world.node}"
    theirs = {"key": "example.com/keep-out", "value": "yes", "effect": "NoSchedule"}
    ours = node(world)["spec"]["taints"]
    patch(world, path, {"spec": {"taints": [*ours, theirs], "unschedulable": True}})
    patch(
        world,
        path,
        {"metadata": {"labels": {"example.com/a": "1"}, "annotations": {"example.com/b": "2"}}},
    )
    foreign = {"type": "example.com/Fine", "status": "True", "reason": "SoItIs", "message": "m"}
    patch(world, path + "/status", {"status": {"conditions": [foreign]}}, STRATEGIC)
    # Something of ours is removed meanwhile: it comes back, and takes nothing of theirs along.
    patch(world, path, {"metadata": {"labels": {"type": None}}})
    wait_for(
        lambda: node(world)["metadata"]["labels"].get("type") == "virtual-kubelet",
        "our label is back",
        timeout=15,
    )
    # The scheduler's side adds a taint of its own for `unschedulable`.
    patch(world, path, {"spec": {"taints": [theirs]}})

    def restored() -> bool:
        keys = {t["key"] for t in node(world)["spec"].get("taints", ())}
        return {PROVIDER_TAINT, theirs["key"]} <= keys

    wait_for(restored, "our taint is back beside theirs", timeout=15)
    code, _ = world.daemon.sigterm()
    assert code == 0
    world.daemon.restart()
    found = node(world)
    assert theirs in found["spec"]["taints"]
    assert found["spec"]["unschedulable"] is True
    assert found["metadata"]["labels"]["example.com/a"] == "1"
    assert found["metadata"]["annotations"]["example.com/b"] == "2"
    assert condition(found, "example.com/Fine") == "True"


def test_a_restart_adopts_the_node_without_a_flap(make_world: Worlds) -> None:
    world = make_world("fake")
    before = node(world)
    ready = next(c for c in before["status"]["conditions"] if c["type"] == "Ready")
    code, _ = world.daemon.sigterm()
    assert code == 0
    # The clock of the condition has whole seconds: a flap would show.
    stopped = time.monotonic()
    wait_for(lambda: time.monotonic() - stopped > 1.5, "a second has passed")
    world.api.reset()
    world.daemon.restart()
    after = node(world)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    again = next(c for c in after["status"]["conditions"] if c["type"] == "Ready")
    assert (again["status"], again["lastTransitionTime"]) == ("True", ready["lastTransitionTime"])
    assert after["spec"]["taints"] == before["spec"]["taints"]
    assert world.api.count(verb="create", resource="nodes") == 0


def test_a_node_of_somebody_else_is_left_alone(make_world: Worlds) -> None:
    world = make_world.bare("fake")
    theirs = {
        "metadata": {"name": world.node, "labels": {"example.com/real": "machine"}},
        "spec": {"providerID": "example://1"},
    }
    status, made = world.cluster.api("POST", "/api/v1/nodes", theirs)
    assert status == 201
    daemon = world.add_daemon().start()
    refused = daemon.wait_logged(world.node, where=lambda e: e["level"] in ("error", "warning"))
    assert "installation" in json.dumps(refused)
    assert daemon.admin("/readyz")[0] == 503
    assert world.node in daemon.admin("/readyz")[1]
    found = node(world)
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"] or (
        "spillway.dev/installation" not in found["metadata"]["labels"]
        and found["spec"]["providerID"] == "example://1"
    )
    writes = world.api.requests(lambda s: s.resource.startswith("nodes") and s.verb != "get")
    assert not [s for s in writes if s.verb in ("patch", "update", "delete") and s.status < 300]
    assert daemon.running


def test_two_profiles_are_two_nodes_of_one_process(make_world: Worlds) -> None:
    profiles = [{"maxPricePerHour": 0.5}, {"labels": {"example.com/second": "yes"}}]
    world = make_world("fake", profiles=profiles)
    for name in world.nodes:
        assert condition(node(world, name), "Ready") == "True"
    assert node(world, world.nodes[1])["metadata"]["labels"]["example.com/second"] == "yes"
    uids = [world.create_pod(f"p{i}", nodeName=name) for i, name in enumerate(world.nodes)]
    world.wait_ready("p0", "p1")
    world.assert_one_instance_each(*uids)
    lists = world.api.requests(lambda s: s.resource == "pods" and s.verb in ("list", "watch"))
    selectors = {s.query.get("fieldSelector") for s in lists}
    assert selectors == {f"spec.nodeName={name}" for name in world.nodes}
