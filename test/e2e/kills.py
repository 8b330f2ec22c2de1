"""Placed kills: the daemon ends by SIGKILL at one exact step of a pod's life."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from test.cluster import Gate, matching
from test.cluster.gate import Match, Rule, after, before, drop_before
from test.cluster.http1 import Request

from .world import STATE, World

#: The gate and the match of one request about the pod of that name.
Where = Callable[[World, str], tuple[Gate, Match]]


def intent(world: World, pod: str) -> tuple[Gate, Match]:
    return world.api, world.status_patch(pod, body=STATE)


def running_patch(world: World, pod: str) -> tuple[Gate, Match]:
    return world.api, world.status_patch(pod, body='"phase":"Running"')


def terminal_patch(world: World, pod: str) -> tuple[Gate, Match]:
    def ends(request: Request) -> bool:
        return b'"phase":"Succeeded"' in request.body or b'"phase":"Failed"' in request.body

    return world.api, world.status_patch(pod, where=ends)


def pod_delete(world: World, pod: str) -> tuple[Gate, Match]:
    return world.api, world.pod_delete(pod)


def lease_write(world: World, _: str) -> tuple[Gate, Match]:
    return world.api, matching(verb="update", path=world.lease_path)


def provider(step: str) -> Where:
    return lambda world, _: (world.backend.gate, world.backend.step(step))


@dataclasses.dataclass(frozen=True)
class Kill:
    """`lost`: the server has done it and the daemon dies before it hears so. Otherwise the daemon
    dies when it is about to ask: the request never arrives.
    """

    name: str
    where: Where
    lost: bool
    nth: int = 1

    def arm(self, world: World, pod: str) -> Rule:
        gate, match = self.where(world, pod)
        if self.lost:
            return gate.on(match, after(lambda _: world.daemon.kill9()), nth=self.nth)
        gate.on(match, before(lambda _: world.daemon.kill9()), nth=self.nth)
        return gate.on(match, drop_before(), nth=self.nth)


# The answer to one request is the last that the daemon hears before it is about to send the next.
BIRTH = (
    Kill("intent is about to be written", intent, lost=False),
    Kill("intent written, answer lost", intent, lost=True),
    Kill("intent answered", provider("create"), lost=False),
    Kill("created, answer lost", provider("create"), lost=True),
    Kill("create answered", running_patch, lost=False),
    Kill("running written, answer lost", running_patch, lost=True),
)

DEATH = (
    Kill("terminate is about to be asked", provider("terminate"), lost=False),
    Kill("terminated, answer lost", provider("terminate"), lost=True),
    Kill("terminate answered", provider("after terminate"), lost=False),
    Kill("terminal status written, answer lost", terminal_patch, lost=True),
    Kill("terminal status answered", pod_delete, lost=False),
    Kill("pod deleted, answer lost", pod_delete, lost=True),
)

DOCKER_BIRTH = (
    Kill("container made, answer lost", provider("create container"), lost=True),
    Kill("container made", provider("start container"), lost=False),
    Kill("container started, answer lost", provider("start container"), lost=True),
)

DOCKER_DEATH = (
    Kill("container removed, answer lost", provider("remove"), lost=True),
    Kill("container removed", provider("remove"), lost=False, nth=2),
    Kill("sandbox removed, answer lost", provider("remove"), lost=True, nth=2),
)
