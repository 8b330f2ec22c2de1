"""The daemon is killed at each step of a pod's life. Afterwards a living pod has exactly one
instance, a deleted one has none, and no pod is lost or bought twice.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from test.cluster import wait_for
from test.cluster.gate import answer, delay

from . import kills
from .backends import Workload
from .kills import BIRTH, DEATH, DOCKER_BIRTH, DOCKER_DEATH, Kill
from .world import World, container_state

ids = {"ids": lambda kill: kill.name.replace(" ", "_").replace(",", "")}


def settle(world: World, *names: str) -> None:
    """After a restart: each pod is Running with one instance, which is its first."""
    world.wait_ready(*names, timeout=60)
    pods = [world.pod(name) for name in names]
    uids = [pod["metadata"]["uid"] for pod in pods]
    world.assert_one_instance_each(*uids)
    world.assert_made_once(uids)
    for pod in pods:
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def birth(world: World, kill: Kill) -> None:
    rule = kill.arm(world, "newborn")
    world.create_pod("newborn")
    rule.wait()
    world.daemon.restart()
    settle(world, "newborn")


def death(world: World, kill: Kill) -> None:
    uid = world.create_pod("dying")
    world.wait_ready("dying")
    rule = kill.arm(world, "dying")
    world.delete_pod("dying")
    rule.wait()
    world.daemon.restart()
    world.wait_gone("dying")
    world.wait_clean()
    world.assert_made_once([uid])


@pytest.mark.parametrize("kill", BIRTH, **ids)
def test_killed_while_a_pod_is_born(lasting_world: World, kill: Kill) -> None:
    birth(lasting_world, kill)


@pytest.mark.parametrize("kill", DEATH, **ids)
def test_killed_while_a_pod_ends(lasting_world: World, kill: Kill) -> None:
    death(lasting_world, kill)


@pytest.mark.parametrize("kind", ["docker"], indirect=True)
@pytest.mark.parametrize("kill", DOCKER_BIRTH, **ids)
def test_killed_while_docker_brings_a_pod_up(lasting_world: World, kill: Kill) -> None:
    birth(lasting_world, kill)


@pytest.mark.parametrize("kind", ["docker"], indirect=True)
@pytest.mark.parametrize("kill", DOCKER_DEATH, **ids)
def test_killed_while_docker_removes_a_pod(lasting_world: World, kill: Kill) -> None:
    death(lasting_world, kill)


def test_killed_after_running_was_answered_and_after_the_pod_is_gone(lasting_world: World) -> None:
    world = lasting_world
    world.create_pod("kept")
    world.create_pod("removed")
    world.wait_ready("kept", "removed")
    world.daemon.kill9()
    world.daemon.restart()
    settle(world, "kept", "removed")
    world.delete_pod("removed")
    world.wait_gone("removed")
    world.daemon.kill9()
    world.daemon.restart()
    settle(world, "kept")


def stage_of(world: World, name: str) -> str:
    pods = [pod for pod in world.daemon.debug_pods() if pod["name"] == name]
    return pods[0]["stage"] if pods else ""


def slow(world: World) -> Workload:
    """A pod that takes seconds to start."""
    if world.backend.kind == "fake":
        return world.backend.slow_image()
    pull = world.backend.step("pull")
    world.backend.gate.on(pull, delay(2), times=None)
    world.backend.gate.on(pull, answer(200, '{"status":"done"}'), times=None)
    work = world.backend.workload()
    work.container["imagePullPolicy"] = "Always"
    return work


def test_killed_while_an_instance_boots(lasting_world: World) -> None:
    world = lasting_world
    world.create_pod("slow", slow(world))
    wait_for(lambda: stage_of(world, "slow") == "booting", "it boots", timeout=20)
    world.daemon.kill9()
    assert len(world.tags()) == 1
    world.daemon.restart()
    settle(world, "slow")


def test_killed_while_listing(lasting_world: World) -> None:
    world = lasting_world
    world.create_pod("slow", slow(world))
    wait_for(lambda: stage_of(world, "slow") == "booting", "it boots", timeout=20)
    rule = Kill("list", kills.provider("list"), lost=True).arm(world, "slow")
    rule.wait()
    world.daemon.restart()
    settle(world, "slow")


def test_killed_while_it_writes_its_lease(lasting_world: World) -> None:
    world = lasting_world
    rule = Kill("lease", kills.lease_write, lost=True).arm(world, "")
    world.create_pod("p")
    rule.wait()
    world.daemon.restart()
    settle(world, "p")


def test_killed_again_while_it_recovers(lasting_world: World) -> None:
    world = lasting_world
    first = Kill("create", kills.provider("create"), lost=True).arm(world, "p")
    world.create_pod("p")
    first.wait()
    second = Kill("list", kills.provider("list"), lost=True).arm(world, "p")
    world.daemon.start()
    second.wait(90)
    world.daemon.restart()
    settle(world, "p")


def test_killed_with_ten_pods_on_their_way_in(lasting_world: World) -> None:
    world = lasting_world
    names = [f"p{i}" for i in range(10)]
    rule = Kill("create", kills.provider("create"), lost=True, nth=5).arm(world, "")
    for name in names:
        world.create_pod(name)
    rule.wait()
    world.daemon.restart()
    settle(world, *names)


def test_killed_with_ten_pods_on_their_way_out(lasting_world: World) -> None:
    world = lasting_world
    names = [f"p{i}" for i in range(10)]
    uids = [world.create_pod(name) for name in names]
    world.wait_ready(*names)
    rule = Kill("terminate", kills.provider("terminate"), lost=True, nth=5).arm(world, "")
    for name in names:
        world.delete_pod(name)
    rule.wait()
    world.daemon.restart()
    world.wait_gone(*names)
    world.wait_clean()
    world.assert_made_once(uids)


@pytest.mark.parametrize("lost", [False, True], ids=["before_the_restart", "answer_lost"])
def test_killed_while_it_restarts_a_container(lasting_world: World, lost: bool) -> None:
    world = lasting_world
    work = world.backend.workload(run_for=5, exit_code=1)
    uid = world.create_pod("crasher", work)
    world.wait_pod(
        "crasher",
        lambda pod: pod and container_state(pod)[1].get("reason") == "CrashLoopBackOff",
        "in CrashLoopBackOff",
    )
    # The first back-off may be over when its end is seen.
    before = world.pod("crasher")["status"]["containerStatuses"][0]["restartCount"]
    rule = Kill("restart", kills.provider("restart"), lost=lost).arm(world, "crasher")
    rule.wait()
    world.daemon.restart()

    pod = world.wait_ready("crasher", timeout=60)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == before + 1
    assert container_state(pod)[0] == "running"
    world.assert_one_instance_each(uid)
    world.assert_made_once([uid])


# Soak


class Chaos:
    """Random kills among random creations and deletions. One seed, one run."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.living: dict[str, str] = {}
        self.made: list[str] = []
        self.count = 0
        self.points = BIRTH + DEATH
        if world.backend.kind == "docker":
            self.points += DOCKER_BIRTH + DOCKER_DEATH

    def strike(self) -> None:
        """Some pods come, some go, and the daemon dies at a random step of one of them."""
        world = self.world
        kill = self.random.choice(self.points)
        number = min(len(self.living), self.random.randint(0, 2))
        doomed = self.random.sample(sorted(self.living), number)
        names = [f"p{self.count + i}" for i in range(self.random.randint(1, 3))]
        self.count += len(names)
        rule = kill.arm(world, self.random.choice(doomed + names))
        for name in names:
            self.living[name] = world.create_pod(name)
            self.made.append(self.living[name])
        for name in doomed:
            world.delete_pod(name)
            del self.living[name]
        latest = time.monotonic() + self.random.uniform(0.05, 3)
        while rule.fired == 0 and time.monotonic() < latest:
            time.sleep(0.01)
        if rule.fired:
            rule.wait()
        world.api.clear()
        world.backend.gate.clear()
        if world.daemon.running:
            world.daemon.kill9()
        world.daemon.restart()

    def check(self) -> None:
        world = self.world
        try:
            world.wait_ready(*self.living, timeout=90)
            number = len(self.living)
            wait_for(lambda: len(world.pods()) == number, "deleted pods are gone", timeout=60)
            wait_for(lambda: len(world.tags()) == number, "their instances are gone", timeout=60)
        finally:
            print(f"of {self.count} pods {len(self.living)} should live: {len(world.tags())} do")
        world.assert_one_instance_each(*self.living.values())
        world.assert_made_once(self.living.values())
        for uid in self.made:
            assert sum(backend.ever_made(uid) for backend in world.backends) <= 1


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_two_hundred_random_kills(lasting_world: World, kind: str) -> None:
    seed = int(os.environ.get("SOAK_SEED", "1"))
    kills_wanted = int(os.environ.get("SOAK_KILLS", "200"))
    print(f"SOAK_SEED={seed} SOAK_KILLS={kills_wanted}")
    chaos = Chaos(lasting_world, seed)
    for number in range(kills_wanted):
        chaos.strike()
        if number % 10 == 9:
            chaos.check()
            for name in list(chaos.living)[:-3]:
                lasting_world.delete_pod(name)
                del chaos.living[name]
    chaos.check()
