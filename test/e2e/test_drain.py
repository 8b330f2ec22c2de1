"""The drain home: pods leave the rented node when the home cluster has room again."""

from __future__ import annotations

import threading
import time
from typing import Any

from test.cluster import matching, wait_for
from test.cluster.gate import after

from .conftest import Worlds
from .home import (
    GATE_TAINT,
    SOFT_TAINT,
    WORLD_LABEL,
    Home,
    HomeKubelet,
    add_burst_pod,
    allow_surge,
    apply_rights,
    gate_config,
)
from .home import patch as patch_object
from .world import World, is_ready, start

APP = "inference"
DRAIN = {"interval": "1s", "minAge": "0s"}


class Watcher:
    """Samples how many pods of the application are Ready, and which stand on the rented node."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.floor = 1000
        self.away: list[set[str]] = []
        self._ended = threading.Event()
        world.on_close.insert(0, self.close)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.1):
            pods = pods_of(self.world)
            ready = [p for p in pods if is_ready(p) and "deletionTimestamp" not in p["metadata"]]
            self.floor = min(self.floor, len(ready))
            self.away.append({p["metadata"]["uid"] for p in pods if is_away(self.world, p)})

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def check(self, floor: int) -> None:
        self.close()
        assert self.floor == floor
        # Who has left the rented node does not come back to it.
        for earlier, later in zip(self.away, self.away[1:], strict=False):
            assert later <= earlier


def pods_of(world: World) -> list[dict[str, Any]]:
    return world.pods(f"app={APP}")


def is_away(world: World, pod: dict[str, Any]) -> bool:
    return pod["spec"].get("nodeName") == world.node


def away(world: World) -> list[dict[str, Any]]:
    return [p for p in pods_of(world) if is_away(world, p)]


def add_deployment(world: World, replicas: int) -> None:
    work = world.backend.workload()
    spec = world.pod_spec(
        work, container={"resources": {"limits": {"nvidia.com/gpu": "1"}}}, scheduled=True
    )
    spec["nodeSelector"] = {WORLD_LABEL: world.id}
    template = {
        "metadata": {"labels": {"app": APP}, "annotations": work.annotations},
        "spec": spec,
    }
    body = {
        "metadata": {"name": APP},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": APP}},
            "template": template,
        },
    }
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    status, answer = world.cluster.api("POST", path, body)
    assert status == 201, answer


def add_budget(world: World, name: str = APP, **rule: int) -> None:
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    spec = {"selector": {"matchLabels": {"app": APP}}, **rule}
    status, answer = world.cluster.api("POST", path, {"metadata": {"name": name}, "spec": spec})
    assert status == 201, answer
    wait_for(
        lambda: "currentHealthy" in world.cluster.get(f"{path}/{name}").get("status", {}),
        "the budget is in force",
    )


def remove_budget(world: World, name: str) -> None:
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets/{name}"
    assert world.cluster.api("DELETE", path)[0] == 200


def may(world: World, account: str, verb: str, resource: str, group: str = "") -> bool:
    name, _, sub = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": name, "subresource": sub}
    user = f"system:serviceaccount:spillway-system:{account}"
    body = {"spec": {"user": user, "resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    status, answer = world.cluster.api("POST", path, body)
    assert status == 201, answer
    return bool(answer["status"]["allowed"])


def heard(world: World, reason: str) -> list[dict[str, Any]]:
    items = world.cluster.get(f"/api/v1/namespaces/{world.namespace}/events?limit=500")["items"]
    return [e for e in items if e["reason"] == reason]


def wait_heard(world: World, reason: str, timeout: float = 20) -> dict[str, Any]:
    return wait_for(lambda: heard(world, reason), f"event {reason}", timeout=timeout)[0]


def burst(
    worlds: Worlds,
    replicas: int,
    *,
    nodes: int = 2,
    drain: dict[str, Any],
    budget: dict[str, int] | None = None,
) -> tuple[World, Home, HomeKubelet]:
    """A world whose application had to leave a full home: all replicas run on the rented node."""
    world = worlds.bare("fake")
    world.profiles[0]["labels"] = {WORLD_LABEL: world.id}
    home = Home(world, nodes=nodes)
    home.fill()
    kubelet = HomeKubelet(home)
    start(world, gate=gate_config(world, drain={**DRAIN, **drain}))
    wait_for(lambda: SOFT_TAINT in world.taints(world.node), "the gate works")
    add_deployment(world, replicas)
    wait_for(
        lambda: sum(map(is_ready, away(world))) == replicas, "all replicas are away", timeout=60
    )
    if budget is None:
        budget = {"maxUnavailable": 1}
    if budget:
        add_budget(world, **budget)
    return world, home, kubelet


def wait_home(world: World, replicas: int, timeout: float = 90) -> None:
    def all_home() -> bool:
        pods = pods_of(world)
        return len(pods) == replicas and all(is_ready(p) and not is_away(world, p) for p in pods)

    wait_for(all_home, "all replicas are home", timeout=timeout)


def moves(world: World, result: str) -> float:
    return world.daemon.metric("spillway_drain_moves_total", gate="gpu", result=result)


def test_pods_go_home_one_by_one(make_world: Worlds) -> None:
    world, home, _ = burst(make_world, 3, drain={"mode": "evict"})
    watcher = Watcher(world)
    home.empty()
    wait_home(world, 3)
    watcher.check(floor=2)
    world.wait_clean()
    wait_heard(world, "DrainStarted")
    wait_heard(world, "DrainDone")
    wait_for(lambda: moves(world, "home") == 3, "three moves have ended")
    assert world.daemon.metric("spillway_drain_seconds_count", gate="gpu", mode="evict") == 3
    assert moves(world, "returned") == 0
    assert world.daemon.metric("spillway_drain_saved_dollars_per_hour", gate="gpu") > 0
    assert GATE_TAINT in world.taints(world.node)


def test_the_drain_stops_at_the_reserve(make_world: Worlds) -> None:
    world, home, _ = burst(make_world, 5, nodes=1, drain={"mode": "evict"})
    watcher = Watcher(world)
    home.empty()
    wait_for(lambda: len(away(world)) == 2, "three are home", timeout=90)
    time.sleep(6)
    assert len(away(world)) == 2
    watcher.check(floor=4)
    wait_for(lambda: moves(world, "home") == 3, "three moves have ended")
    assert GATE_TAINT in world.taints(world.node)
    assert world.daemon.metric("spillway_pods_waiting_to_drain", gate="gpu") == 0


def test_a_budget_that_allows_nothing_is_obeyed(make_world: Worlds) -> None:
    world, home, _ = burst(make_world, 2, drain={"mode": "evict"}, budget={"minAvailable": 2})
    watcher = Watcher(world)
    home.empty()
    event = wait_heard(world, "DrainBlocked", timeout=60)
    assert f"PodDisruptionBudget {APP}" in event["message"]
    time.sleep(3)
    watcher.check(floor=2)
    assert len(away(world)) == 2
    assert world.daemon.metric("spillway_drain_blocked", reason="pdb") == 2
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets/{APP}"
    patch_object(world, path, {"spec": {"minAvailable": 1}})
    wait_home(world, 2)
    wait_for(lambda: moves(world, "home") == 2, "two moves have ended")


def test_pods_without_a_budget_and_those_told_to_stay(make_world: Worlds) -> None:
    world, home, _ = burst(make_world, 2, drain={"mode": "evict"}, budget={})
    stays = away(world)[0]["metadata"]["name"]
    annotations = {"annotations": {"spillway.dev/do-not-drain": "true"}}
    patch_object(world, world.pods_path(stays), {"metadata": annotations})
    home.empty()
    wait_for(lambda: GATE_TAINT in world.taints(world.node), "the gate is closed", timeout=40)
    wait_for(
        lambda: (
            world.daemon.metric("spillway_drain_blocked", reason="no-pdb") == 1
            and world.daemon.metric("spillway_drain_blocked", reason="do-not-drain") == 1
        ),
        "both are barred",
    )
    add_budget(world, maxUnavailable=1)
    wait_for(lambda: [p["metadata"]["name"] for p in away(world)] == [stays], "one is home", timeout=60)
    wait_for(lambda: moves(world, "home") == 1, "one move has ended")


def test_two_budgets_are_told(make_world: Worlds) -> None:
    world, home, _ = burst(make_world, 1, drain={"mode": "evict"})
    add_budget(world, "second", maxUnavailable=1)
    home.empty()
    event = wait_heard(world, "DrainBlocked", timeout=60)
    assert "more than one PodDisruptionBudget" in event["message"]
    assert len(away(world)) == 1
    assert world.daemon.metric("spillway_drain_blocked", reason="two-pdbs") == 1


def test_surge_never_has_one_replica_less(make_world: Worlds) -> None:
    world, home, _ = burst(make_world, 3, drain={"mode": "surge"}, budget={"minAvailable": 3})
    allow_surge(world)
    watcher = Watcher(world)
    home.empty()
    wait_home(world, 3)
    watcher.check(floor=3)
    world.wait_clean()
    wait_for(lambda: moves(world, "home") == 3, "three moves have ended")
    wait_heard(world, "DrainDetached")
    assert world.daemon.metric("spillway_drain_moves_total", mode="surge", result="home") == 3
    assert not [p for p in pods_of(world) if is_detached(p)]


def test_surge_without_its_right_changes_nothing(make_world: Worlds) -> None:
    world, home, _ = burst(make_world, 1, drain={"mode": "surge"}, budget={"minAvailable": 1})
    before = away(world)[0]["metadata"]
    home.empty()
    event = wait_heard(world, "DrainBlocked", timeout=60)
    assert "cannot patch resource" in event["message"]
    after_all = away(world)[0]["metadata"]
    assert after_all["labels"] == before["labels"]
    assert after_all["uid"] == before["uid"]


def is_detached(pod: dict[str, Any]) -> bool:
    metadata = pod["metadata"]
    return "spillway.dev/draining" in metadata.get("annotations", {}) and not metadata.get(
        "ownerReferences"
    )


def detached(world: World) -> list[dict[str, Any]]:
    return [p for p in pods_of(world) if is_detached(p)]


def test_a_killed_gate_finishes_what_it_began(make_world: Worlds) -> None:
    world, home, kubelet = burst(make_world, 2, drain={"mode": "surge"}, budget={"minAvailable": 2})
    allow_surge(world)
    made = {p["metadata"]["uid"] for p in away(world)}
    watcher = Watcher(world)
    kubelet.held = True
    taken_away = matching(verb="patch", resource="pods", body="spillway.dev/draining")
    # It dies before it hears that the pod was taken from its ReplicaSet.
    world.api.on(taken_away, after(lambda _: world.daemon.kill9()))
    home.empty()
    wait_for(lambda: not world.daemon.running, "the daemon is dead", timeout=60)
    pod = wait_for(lambda: detached(world), "a pod has no owner", timeout=20)[0]
    world.daemon.restart()
    time.sleep(5)
    # The daemon runs it on, and the drain waits for the replacement.
    assert [p["metadata"]["uid"] for p in detached(world)] == [pod["metadata"]["uid"]]
    assert is_ready(world.pod(pod["metadata"]["name"]))
    world.assert_made_once(made)
    kubelet.held = False
    wait_home(world, 2)
    watcher.check(floor=2)
    world.wait_clean()
    world.assert_made_once(made)
    wait_for(lambda: moves(world, "home") == 2, "both moves have ended")


def test_a_gate_that_opens_gives_the_pod_back(make_world: Worlds) -> None:
    world, home, kubelet = burst(make_world, 2, drain={"mode": "surge"}, budget={"minAvailable": 2})
    allow_surge(world)
    before = {p["metadata"]["uid"]: p["metadata"] for p in away(world)}
    watcher = Watcher(world)
    kubelet.held = True
    home.empty()
    pod = wait_for(lambda: detached(world), "a pod has no owner", timeout=60)[0]
    # Training comes, and with it a pod that has no place at home any more.
    home.fill()
    add_burst_pod(world, "more")
    wait_for(lambda: GATE_TAINT not in world.taints(world.node), "the gate is open", timeout=30)
    opened = time.monotonic()

    def is_back() -> bool:
        now = world.pod(pod["metadata"]["name"])
        return now is not None and bool(now["metadata"].get("ownerReferences"))

    wait_for(is_back, "its ReplicaSet has it again", timeout=10, interval=0.05)
    print(f"given back {time.monotonic() - opened:.2f} s after the gate was seen open")
    wait_for(lambda: len(pods_of(world)) == 2, "the surplus is gone", timeout=20)
    now = {p["metadata"]["uid"]: p["metadata"] for p in pods_of(world)}
    assert now.keys() == before.keys()
    for uid, metadata in now.items():
        assert metadata["labels"] == before[uid]["labels"]
        assert "spillway.dev/draining" not in metadata.get("annotations", {})
        assert "state.spillway.dev/drain" not in metadata["annotations"]
    watcher.check(floor=2)
    wait_heard(world, "DrainAborted")
    wait_for(lambda: moves(world, "aborted") == 1, "the move has ended")
    kubelet.held = False


def test_the_rights_are_the_least(make_world: Worlds) -> None:
    world = make_world.bare("fake")
    apply_rights(world, "gate")
    accounts = ("spillway", "spillway-gate")
    for account in accounts:
        assert may(world, account, "create", "pods/eviction")
        assert may(world, account, "watch", "poddisruptionbudgets", "policy")
        assert not may(world, account, "patch", "pods")
    assert not may(world, "spillway-gate", "delete", "pods")
    allow_surge(world)
    wait_for(lambda: all(may(world, a, "patch", "pods") for a in accounts), "surge may patch pods")
    for account in accounts:
        assert not may(world, account, "update", "pods")
        assert not may(world, account, "update", "poddisruptionbudgets", "policy")
    world.add_daemon().start().wait_ready()
