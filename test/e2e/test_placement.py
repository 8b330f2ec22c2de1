"""Where pods go, by what they say and by what their node promises, and the caps on money."""

from __future__ import annotations

from typing import Any

from test.cluster import wait_for

from .conftest import Worlds
from .test_money import GPU, offer
from .world import World, container_state, is_ready, phase

MARKET = [
    offer("h100", 2.5, gpuModel="H100", gpuCount=1),
    offer("l4", 0.7, gpuModel="L4", gpuCount=1),
    offer("l4-us", 0.6, gpuModel="L4", gpuCount=1, region="us"),
    offer("l4-spot", 0.2, gpuModel="L4", gpuCount=1, region="us", capacityType="spot"),
]


def offer_of(world: World, name: str) -> str:
    return world.state_of(name)["offer"]


def test_of_two_hundred_pods_at_once_a_cap_lets_through_what_it_allows(make_world: Worlds) -> None:
    world = make_world(
        "fake",
        cloud={"offers": [offer("l4", 0.7, gpuModel="L4", gpuCount=1)]},
        daemon={"spend": {"installation": {"perHour": "21.699999"}}},
    )
    cloud = world.backend.cloud
    for i in range(200):
        world.create_pod(f"p{i}", container=GPU)

    def pods() -> list[dict[str, Any]]:
        return [pod for pod in world.pods() if pod["metadata"]["name"].startswith("p")]

    def held() -> list[dict[str, Any]]:
        states = [container_state(pod) for pod in pods() if phase(pod) == "Pending"]
        return [state for _, state in states if state.get("reason") == "BudgetExceeded"]

    # 31 would come to $21.70.
    wait_for(lambda: len(held()) == 170, "170 wait for money", timeout=120, interval=0.5)
    assert sum(is_ready(pod) for pod in pods()) == 30
    assert len(cloud.audit()["instances"]) == 30
    assert "installation: $21.70 of at most $21.699999 per hour" in held()[0]["message"]
    assert world.daemon.metric("spillway_burn_dollars_per_hour") == 21

    # A daemon that knows only what the pods say keeps to it, too.
    world.daemon.kill9()
    world.daemon.restart()
    running = next(pod["metadata"]["name"] for pod in pods() if is_ready(pod))
    world.delete_pod(running)
    world.wait_gone(running)
    wait_for(lambda: len(cloud.audit()["instances"]) == 31, "one takes its place", timeout=60)
    wait_for(lambda: sum(is_ready(pod) for pod in pods()) == 30, "it runs")
    assert len(cloud.instances()) == 30


def test_labels_of_four_profiles_lead_pods_to_what_they_promise(make_world: Worlds) -> None:
    def profile(promise: dict[str, str], filtered: dict[str, Any]) -> dict[str, Any]:
        return {"labels": promise, "offers": filtered}

    world = make_world(
        "fake",
        cloud={"offers": MARKET},
        profiles=[
            profile({"spillway.dev/gpu-model": "H100"}, {"gpuModels": ["H100"]}),
            profile({"spillway.dev/gpu-model": "L4"}, {"gpuModels": ["L4"]}),
            profile({"topology.kubernetes.io/region": "eu"}, {"regions": ["eu"]}),
            profile({"spillway.dev/capacity-type": "spot"}, {"capacityTypes": ["spot"]}),
        ],
    )
    wanted = {
        "big": ({"spillway.dev/gpu-model": "H100"}, "h100"),
        "small": ({"spillway.dev/gpu-model": "L4"}, "l4-us"),
        "near": ({"topology.kubernetes.io/region": "eu"}, "l4"),
        "bold": ({"spillway.dev/capacity-type": "spot"}, "l4-spot"),
    }
    for name, (selector, _) in wanted.items():
        # All four nodes are ours, and no other node fits.
        selector = {**selector, "spillway.dev/installation": world.installation}
        world.create_pod(name, container=GPU, scheduled=True, nodeSelector=selector)
    world.wait_ready(*wanted)
    for i, (name, (_, bought)) in enumerate(wanted.items()):
        pod = world.pod(name)
        assert pod is not None and pod["spec"]["nodeName"] == world.nodes[i]
        assert offer_of(world, name) == bought

    # What no node promises is nobody's, and the scheduler says so.
    world.create_pod(
        "vain",
        container=GPU,
        scheduled=True,
        nodeSelector={"spillway.dev/gpu-model": "B200"},
    )
    world.wait_pod(
        "vain",
        lambda p: "didn't match Pod's node affinity" in str(p and p["status"].get("conditions")),
        "unschedulable",
    )


def test_a_pod_says_what_it_wants_and_misspelt_wishes_cost_nothing(make_world: Worlds) -> None:
    # Spot is for those that name it, where the node has it at all.
    profile = {"offers": {"capacityTypes": ["on-demand", "spot"]}}
    world = make_world("fake", cloud={"offers": MARKET}, profile=profile)
    wishes = {
        "any": ({}, "l4-us"),
        "model": ({"gpu-model": "H100"}, "h100"),
        "region": ({"regions": "eu"}, "l4"),
        "spot": ({"capacity-type": "spot,on-demand"}, "l4-spot"),
    }
    for name, (wish, _) in wishes.items():
        annotations = {f"spillway.dev/{key}": value for key, value in wish.items()}
        world.create_pod(name, container=GPU, annotations=annotations)
    world.wait_ready(*wishes)
    assert {name: offer_of(world, name) for name in wishes} == {n: o for n, (_, o) in wishes.items()}

    for name, key, value, told in (
        ("typo", "max-prise", "1", "spillway.dev/max-price"),
        ("words", "max-price", "cheap", "spillway.dev/max-price"),
        ("huge", "min-vram", "1e30", "spillway.dev/min-vram"),
    ):
        world.create_pod(name, container=GPU, annotations={f"spillway.dev/{key}": value})
        pod = world.wait_pod(
            name,
            lambda p: bool(p) and container_state(p)[1].get("reason") == "UnsupportedPodSpec",
            "refused",
        )
        assert told in container_state(pod)[1]["message"]
    assert len(world.backend.cloud.audit()["instances"]) == len(wishes)
