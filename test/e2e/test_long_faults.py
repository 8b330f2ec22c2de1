"""Faults that last: what is paid for meanwhile, and how it ends. For `make soak`."""

from __future__ import annotations

import time

import pytest

from test.cluster import wait_for

from .conftest import Worlds
from .test_lifecycle import deployment
from .test_money import offer
from .world import World, phase

pytestmark = pytest.mark.soak


def launches(world: World, backend: int = 0) -> int:
    return len(world.backends[backend].cloud.audit()["instances"])


def apply(world: World, name: str, replicas: int, **annotations: str) -> None:
    body = deployment(world, name, replicas)
    body["spec"]["template"]["metadata"].setdefault("annotations", {}).update(
        {f"fake.spillway.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    )
    world.cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", **body})


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("replicas", [1, 10])
def test_a_broken_image_is_not_rented_for_again_and_again(
    make_world: Worlds, replicas: int
) -> None:
    world = make_world("fake", cloud={"offers": [offer("only", 1)]})
    apply(world, "broken", replicas, image_error="manifest unknown")
    wait_for(lambda: launches(world) > 0, "the first launch", timeout=30)
    begin = time.monotonic()
    while time.monotonic() - begin < 600:
        time.sleep(5)
        # Replicas that begin together fail together; from then on they go one by one.
        assert launches(world) <= replicas - 1 + 7, f"after {time.monotonic() - begin:.0f} s"
    # None of it became a Failed pod that its ReplicaSet would replace.
    assert {phase(pod) for pod in world.pods()} == {"Pending"}
    assert len(world.pods()) == replicas
    world.wait_clean()
    print(f"{launches(world)} launches of {replicas} replicas in ten minutes")


@pytest.mark.timeout(2700)
def test_a_provider_that_is_away_for_half_an_hour(make_world: Worlds) -> None:
    world = make_world("fake", cloud={"offers": [offer("only", 1)]})
    cloud = world.backend.cloud
    apply(world, "before", 3)

    def running(name: str) -> int:
        ours = [p for p in world.pods() if p["metadata"]["name"].startswith(name)]
        return sum(phase(pod) == "Running" for pod in ours)

    wait_for(lambda: running("before") == 3, "three pods run", timeout=60)
    writes = world.writes()
    cloud.fault("error", lasts="30m")
    begin = time.monotonic()
    apply(world, "during", 2)
    while time.monotonic() - begin < 1795:
        time.sleep(5)
        assert running("before") == 3, f"after {time.monotonic() - begin:.0f} s"
        assert launches(world) == 3
        assert "node.kubernetes.io/not-ready" not in world.taints(world.node)
    # What ran is not written to; the two that wait say why, and no more.
    print(f"{world.writes() - writes} writes of status in half an hour")
    wait_for(lambda: running("during") == 2, "the others run as well", timeout=240, interval=1)
    assert launches(world) == 5
