"""Pods that nobody can run, and owners whose pods fail: neither pods nor purchases may loop."""

from __future__ import annotations

import time
from typing import Any

from test.cluster import wait_for

from .conftest import Worlds
from .world import World, container_state, phase

UNSUPPORTED = {"hostNetwork": True, "hostPID": True}
CONTAINER = {
    "securityContext": {"privileged": True},
    "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
}


def replicas(world: World, number: int) -> None:
    template = world.pod_spec(container=CONTAINER, scheduled=True, **UNSUPPORTED)
    body = {
        "metadata": {"name": "hopeless"},
        "spec": {
            "replicas": number,
            "selector": {"matchLabels": {"app": "hopeless"}},
            "template": {"metadata": {"labels": {"app": "hopeless"}}, "spec": template},
        },
    }
    path = f"/apis/apps/v1/namespaces/{world.namespace}/replicasets"
    status, answer = world.cluster.api("POST", path, body)
    assert status == 201, answer


def test_what_no_provider_can_honour_is_refused_before_anything_is_bought(
    make_world: Worlds,
) -> None:
    world = make_world("fake", "docker")
    begin = time.monotonic()
    uid = world.create_pod("single", container=CONTAINER, **UNSUPPORTED)
    replicas(world, 3)
    seen: set[str] = set()

    def all_seen() -> list[dict[str, Any]]:
        found = world.pods("app=hopeless")
        seen.update(pod["metadata"]["uid"] for pod in found)
        return found

    wait_for(lambda: world.events(uid), "an event says so", timeout=20)
    pod = world.wait_pod("single", lambda p: container_state(p)[0] == "waiting", "refused")
    kind, state = container_state(pod)
    assert (phase(pod), kind, state["reason"]) == ("Pending", "waiting", "UnsupportedPodSpec")
    for field in (
        "spec.hostNetwork",
        "spec.hostPID",
        "spec.containers[0].securityContext.privileged",
        "spec.containers[0].env[0].valueFrom.fieldRef",
    ):
        assert field in state["message"]
    while time.monotonic() - begin < 57:
        assert all(phase(one) == "Pending" for one in [*all_seen(), world.pod("single")])
        time.sleep(0.5)
    assert len(seen) == 3
    assert len(world.events(uid)) == 1
    assert world.events(uid)[0].get("count", 1) == 1
    pod = world.wait_phase("single", "Failed", timeout=10)
    assert 58 < time.monotonic() - begin < 67
    assert pod["status"]["reason"] == "UnsupportedPodSpec"
    assert "spec.hostNetwork" in pod["status"]["message"]
    wait_for(lambda: sum(phase(one) == "Failed" for one in all_seen()) == 3, "the replicas fail")
    # Their successors are held longer.
    wait_for(lambda: len(all_seen()) == 6, "the ReplicaSet makes three new ones")
    held = time.monotonic()
    while time.monotonic() - held < 5:
        assert sum(phase(one) == "Pending" for one in all_seen()) == 3
        time.sleep(0.5)
    assert len(seen) == 6
    assert world.backends[0].cloud.audit()["instances"] == []
    assert world.tags() == []


def test_a_misspelt_annotation_is_refused_with_the_nearest_name(make_world: Worlds) -> None:
    world = make_world("fake")
    uid = world.create_pod("typo", annotations={"spillway.dev/public-port": "80"})
    wait_for(lambda: world.events(uid), "an event says so")
    message = world.events(uid)[0]["message"]
    assert "spillway.dev/public-port" in message
    assert "spillway.dev/public-ports" in message
    assert phase(world.pod("typo")) == "Pending"
    assert world.tags() == []


def test_a_failing_owner_is_slowed_down(make_world: Worlds) -> None:
    world = make_world("fake")
    work = world.backend.workload(run_for=0.2, exit_code=1)
    path = f"/apis/batch/v1/namespaces/{world.namespace}/jobs"
    body = {
        "metadata": {"name": "failing"},
        "spec": {
            "backoffLimit": 100,
            "parallelism": 3,
            "completions": 3,
            "template": {
                "metadata": {"annotations": work.annotations},
                "spec": world.pod_spec(work, scheduled=True, restartPolicy="Never"),
            },
        },
    }
    assert world.cluster.api("POST", path, body)[0] == 201
    cloud = world.backend.cloud
    wait_for(lambda: len(cloud.audit()["instances"]) >= 3, "the first three are bought")
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 20, "twenty seconds have passed")
    # Three at once, one after 10 s, the next not before another 20 s.
    assert len(cloud.audit()["instances"]) <= 5


def test_a_missing_config_map_is_waited_for(make_world: Worlds) -> None:
    world = make_world("fake")
    container = {"envFrom": [{"configMapRef": {"name": "settings"}}]}
    uid = world.create_pod("p", container=container)
    wait_for(lambda: world.events(uid), "an event says so")
    assert "settings" in world.events(uid)[0]["message"]
    # The event may come before the status.
    world.wait_pod(
        "p",
        lambda p: bool(p) and container_state(p)[1].get("reason") == "CreateContainerConfigError",
        "CreateContainerConfigError",
    )
    assert world.tags() == []
    path = f"/api/v1/namespaces/{world.namespace}/configmaps"
    body = {"metadata": {"name": "settings"}, "data": {"A": "b"}}
    assert world.cluster.api("POST", path, body)[0] == 201
    world.wait_ready("p", timeout=40)
    world.assert_made_once([uid])
