"""The way home with the real descheduler: what the shipped policy does, and what other policies would do.

The tests run the policy of config/descheduler with one number changed, the age that a pod must have, and with cycles
that follow one another faster than the Deployment says.
"""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from test.cluster import Cluster, binaries, wait_for
from test.cluster.descheduler import SHIPPED, Descheduler, evictor_args, shipped_policy

from .conftest import Worlds
from .home import GATE_TAINT, SOFT_TAINT, WORLD_LABEL, Home, HomeKubelet, gate_config, patch
from .world import PROVIDER_TAINT, World, is_ready, start

#: Not below the number in the shipped policy.
TRAINING_PRIORITY = 10000


@pytest.fixture
def descheduler(
    cluster: Cluster, rights: pathlib.Path, short_tmp: pathlib.Path
) -> Iterator[Descheduler]:
    del rights  # made the namespace
    program = Descheduler(cluster, short_tmp / "descheduler")
    yield program
    print(f"---- the end of its log\n{program.said[-4000:]}")  # shown if the test failed
    program.stop()


def make(worlds: Worlds) -> tuple[World, Home, HomeKubelet]:
    """A world whose home is full of training, and whose gate is open or will open for who waits."""
    # Real containers: the fake cloud has no memory to mount at /dev/shm. The GPUs are a variable of the environment.
    gpus = {"gpuModel": "RTX-4090", "gpuCount": 16, "gpuRequest": "environment"}
    world = worlds.bare("docker", host={**gpus, "pricePerGpuHour": 0.1})
    world.profiles[0]["labels"] = {WORLD_LABEL: world.id}
    home = Home(world)
    home.fill()
    kubelet = HomeKubelet(home)
    start(world, gate=gate_config(world))
    wait_for(lambda: SOFT_TAINT in world.taints(world.node), "the gate works")
    return world, home, kubelet


def post(world: World, path: str, body: dict[str, Any]) -> None:
    status, answer = world.cluster.api("POST", path, body)
    assert status == 201, answer


def add_service(
    world: World, name: str, replicas: int, *, guarded: bool = True, priority: str = ""
) -> None:
    """A Deployment that may burst, of pods with a /dev/shm; `guarded` by a budget, as its label promises."""
    container = {
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    spec = world.pod_spec(
        container=container,
        nodeName=None,
        nodeSelector={WORLD_LABEL: world.id},
        tolerations=[{"key": PROVIDER_TAINT, "operator": "Exists"}],
        volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}],
        **({"priorityClassName": priority} if priority else {}),
    )
    match = {"app": name}
    labels = {**match, "spillway.dev/walk-home": "true"} if guarded else match
    body = {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": match},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    post(world, f"/apis/apps/v1/namespaces/{world.namespace}/deployments", body)
    if guarded:
        budget = {"maxUnavailable": 1, "selector": {"matchLabels": match}}
        path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
        post(world, path, {"metadata": {"name": name}, "spec": budget})


def add_priority(world: World, value: int) -> str:
    name = f"p{value}-{world.id}"
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    # They wait like the others: home is held by pods without a priority.
    body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"}
    post(world, path, body)
    world.on_close.append(lambda: world.cluster.api("DELETE", f"{path}/{name}"))
    return name


def standing(pods: list[dict[str, Any]], app: str) -> list[dict[str, Any]]:
    """The pods of a service that serve: Ready, and not told to go."""
    ours = (p for p in pods if p["metadata"].get("labels", {}).get("app") == app)
    return [p for p in ours if is_ready(p) and "deletionTimestamp" not in p["metadata"]]


def on_nodes(world: World, app: str, nodes: list[str]) -> set[str]:
    """UIDs of the service's standing pods on these nodes."""
    found = standing(world.pods(), app)
    return {p["metadata"]["uid"] for p in found if p["spec"]["nodeName"] in nodes}


def wait_standing(world: World, app: str, count: int, nodes: list[str], timeout: float = 30) -> None:
    where = f"{count} pods of {app} stand on {nodes}"
    wait_for(lambda: len(on_nodes(world, app, nodes)) == count, where, timeout=timeout)


def order(world: World, state: str) -> None:
    """Sets the gate by hand, and waits for it."""
    body = {"metadata": {"annotations": {"spillway.dev/gate": state}}}
    patch(world, f"/api/v1/nodes/{world.node}", body)
    closed = state == "closed"
    what = f"the gate is {state} by order"
    wait_for(lambda: (GATE_TAINT in world.taints(world.node)) == closed, what, timeout=20)


@pytest.mark.timeout(240)
def test_the_shipped_policy_walks_pods_home_one_at_a_time(
    make_world: Worlds, descheduler: Descheduler
) -> None:
    world, home, kubelet = make(make_world)
    training = add_priority(world, TRAINING_PRIORITY)
    add_service(world, "served", 4)
    add_service(world, "other", 2)
    add_service(world, "unguarded", 2, guarded=False)
    add_service(world, "important", 2, priority=training)
    services = {"served": 4, "other": 2, "unguarded": 2, "important": 2}
    for app, replicas in services.items():
        wait_standing(world, app, replicas, world.nodes)
    stay = {app: on_nodes(world, app, world.nodes) for app in ("unguarded", "important")}
    for pod in world.pods():
        # Without it a pod has no age, and none of the policy's cycles would ever see it.
        assert "startTime" in pod["status"], pod["metadata"]["name"]

    home.empty()
    wait_for(lambda: GATE_TAINT in world.taints(world.node), "the gate is closed", timeout=40)
    floor = {"served": 4, "other": 2}

    def watch(pods: list[dict[str, Any]]) -> None:
        for app in floor:
            floor[app] = min(floor[app], len(standing(pods, app)))

    kubelet.watchers.append(watch)
    descheduler.start(shipped_policy(min_age="1s"), interval="3s")
    for app in floor:
        wait_standing(world, app, services[app], home.names, timeout=90)
    # One cycle more, which finds nobody.
    cycles = len(descheduler.evicted())
    wait_for(lambda: len(descheduler.evicted()) > cycles + 1, "another cycle", timeout=20)
    kubelet.watchers.clear()
    assert kubelet.error is None
    print(f"evicted by cycle: {descheduler.evicted()}, standing at least: {floor}")
    assert floor == {"served": 3, "other": 1}
    # Two budgets would have allowed two in a cycle: the policy's limit per node does not.
    assert sum(descheduler.evicted()) == 6 and max(descheduler.evicted()) == 1
    assert {app: on_nodes(world, app, world.nodes) for app in stay} == stay
    assert "forbidden" not in descheduler.said
    heard = world.cluster.get(f"/api/v1/namespaces/{world.namespace}/events?limit=500")["items"]
    assert [e for e in heard if e["reason"] == "RemovePodsViolatingNodeTaints"]


@pytest.mark.timeout(240)
def test_policies_that_go_wrong(make_world: Worlds, descheduler: Descheduler) -> None:
    world, home, kubelet = make(make_world)
    add_service(world, "served", 4, guarded=False)
    wait_standing(world, "served", 4, world.nodes)
    first = on_nodes(world, "served", world.nodes)
    order(world, "open")

    # A balancing plugin takes replicas on one virtual node for duplicates. Home is full, so that all come back, rented
    # anew: three nodes could hold four replicas, two on each at most.
    balancing = shipped_policy(min_age="1s")
    del balancing["maxNoOfPodsToEvictPerNode"], balancing["maxNoOfPodsToEvictTotal"]
    balancing["profiles"] = [
        {
            "name": "balance",
            "pluginConfig": [
                {
                    "name": "DefaultEvictor",
                    "args": {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}},
                },
                {"name": "RemoveDuplicates", "args": {}},
            ],
            "plugins": {"balance": {"enabled": ["RemoveDuplicates"]}},
        }
    ]
    assert descheduler.run_once(balancing) == 2
    wait_for(lambda: len(on_nodes(world, "served", world.nodes) - first) == 2, "two rented anew")
    wait_standing(world, "served", 4, world.nodes)
    # With a look at what fits, or without the virtual node in its sight, it lets them be.
    balancing["profiles"][0]["pluginConfig"][0]["args"]["nodeFit"] = True
    assert descheduler.run_once(balancing) == 0
    balancing["profiles"][0]["pluginConfig"][0]["args"]["nodeFit"] = False
    balancing["nodeSelector"] = "type!=virtual-kubelet"
    assert descheduler.run_once(balancing) == 0

    # The gate closes, with room for one pod at home.
    order(world, "closed")
    world.delete_pod(f"training-{home.names[0]}", grace=0)
    world.wait_gone(f"training-{home.names[0]}")
    home.add_training("training-rest", home.names[0], gpus=3)
    second = on_nodes(world, "served", world.nodes)

    # The shipped policy leaves pods alone that do not say that they may go.
    assert descheduler.run_once(shipped_policy(min_age="1s")) == 0
    unguarded = shipped_policy(min_age="1s")
    del evictor_args(unguarded)["labelSelector"]

    # Scoped to the virtual node, a policy has one node left, and does nothing.
    scoped = {**unguarded, "nodeSelector": "type=virtual-kubelet"}
    assert descheduler.run_once(scoped) == 0
    assert "requires >=2 nodes" in descheduler.said

    # With the default protection of local storage no pod with a /dev/shm moves.
    protected = copy.deepcopy(unguarded)
    del evictor_args(protected)["podProtections"]["defaultDisabled"]
    assert descheduler.run_once(protected) == 0
    # With the protection of pods without a budget no pod moves at all, in this release: those with one neither.
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "served"}}}
    budgets = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    post(world, budgets, {"metadata": {"name": "served"}, "spec": budget})
    blocked = copy.deepcopy(unguarded)
    evictor_args(blocked)["podProtections"]["extraEnabled"].append("PodsWithoutPDB")
    assert descheduler.run_once(blocked) == 0
    world.cluster.api("DELETE", f"{budgets}/served")
    assert on_nodes(world, "served", world.nodes) == second

    # Without a limit and without a budget, one free GPU lets all of them go: one stands at home, three wait.
    unlimited = {k: v for k, v in unguarded.items() if not k.startswith("maxNoOfPods")}
    assert descheduler.run_once(unlimited) == 4
    wait_standing(world, "served", 1, home.names)
    waiting = [p for p in world.pods("app=served") if not p["spec"].get("nodeName")]
    assert len(waiting) == 3
    assert kubelet.error is None


def test_a_pod_without_a_start_time_never_moves(
    make_world: Worlds, descheduler: Descheduler
) -> None:
    """A node of somebody else that leaves it out: the policy's minPodAge finds no age. Ours tells it (above)."""
    world = make_world.bare("fake")
    home = Home(world)
    kubelet = HomeKubelet(home, tells_start=False)
    away, near = (f"/api/v1/nodes/{name}" for name in home.names)
    patch(world, near, {"spec": {"unschedulable": True}})
    add_service(world, "served", 2)
    wait_standing(world, "served", 2, [home.names[0]])
    patch(world, near, {"spec": {"unschedulable": False}})
    patch(world, away, {"spec": {"taints": [{"key": GATE_TAINT, "effect": "NoSchedule"}]}})
    taints = lambda: world.cluster.get(near)["spec"].get("taints")  # noqa: E731
    wait_for(lambda: not taints(), "the other node takes pods")
    assert descheduler.run_once(shipped_policy(min_age="1s")) == 0
    for pod in world.pods("app=served"):
        path = world.pods_path(pod["metadata"]["name"]) + "/status"
        patch(world, path, {"status": {"startTime": pod["metadata"]["creationTimestamp"]}})
    assert descheduler.run_once(shipped_policy(min_age="1s")) == 1
    assert kubelet.error is None
    # No daemon is there to end what finish() would clear, and none has bought anything.
    world.clear()


def test_the_manifests_run_what_was_tested(cluster: Cluster, descheduler: Descheduler) -> None:
    del descheduler  # made its namespace and its account
    cluster.kubectl("apply", "-k", str(SHIPPED), "--dry-run=server")
    deployment = yaml.safe_load((SHIPPED / "deployment.yaml").read_text())
    template = deployment["spec"]["template"]
    image = template["spec"]["containers"][0]["image"]
    module = (binaries.MODULES["descheduler"].source / "go.mod").read_text()
    assert f"sigs.k8s.io/descheduler {image.rpartition(':')[2]} " in module
    # The namespace admits restricted pods only.
    pod = {"metadata": {"name": "descheduler"}, "spec": template["spec"]}
    status, answer = cluster.api("POST", "/api/v1/namespaces/spillway-system/pods?dryRun=All", pod)
    assert status == 201, answer
