"""Pods on real containers: how they are made, and what their containers say."""

from __future__ import annotations

import datetime
import json
import pathlib
import urllib.parse
from collections.abc import Iterable
from typing import Any

from .backends import IMAGE, DockerBackend, tag_part
from .world import World


def sh(name: str, script: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", script], **more}


def create(world: World, name: str, spec: dict[str, Any], **metadata: Any) -> str:
    body = {
        "metadata": {"name": name, **metadata},
        "spec": {"nodeName": world.node, "terminationGracePeriodSeconds": 5, **spec},
    }
    status, answer = world.cluster.api("POST", world.pods_path(), body)
    assert status == 201, answer
    return answer["metadata"]["uid"]


def create_object(world: World, kind: str, name: str, **fields: Any) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/{kind}"
    status, answer = world.cluster.api("POST", path, {"metadata": {"name": name}, **fields})
    assert status == 201, answer


def container_ids(world: World, uid: str) -> dict[str, str]:
    """The engine's containers of a pod, by the names that the pod gives them."""
    assert isinstance(world.backend, DockerBackend)
    part = tag_part(uid)
    found = {}
    for one in world.backend.containers("container"):
        if part in one["Labels"]["spillway.dev/tag"]:
            found[one["Labels"]["spillway.dev/container"]] = one["Id"]
    return found


def output(world: World, uid: str, container: str) -> str:
    assert isinstance(world.backend, DockerBackend)
    return world.backend.logs(container_ids(world, uid)[container])


def status_of(pod: dict[str, Any], container: str) -> dict[str, Any]:
    statuses = [
        *pod["status"].get("initContainerStatuses", ()),
        *pod["status"]["containerStatuses"],
    ]
    return next(one for one in statuses if one["name"] == container)


def inspect(world: World, uid: str, container: str) -> dict[str, Any]:
    """Docker's word about a container of a pod."""
    assert isinstance(world.backend, DockerBackend)
    path = f"/containers/{container_ids(world, uid)[container]}/json"
    status, answer = world.backend.engine.api("GET", path)
    assert status == 200, answer
    return answer


def deaths(world: World, uid: str, since: float, until: float) -> list[str]:
    """The containers of a pod in the order in which they ended, as the engine remembers it."""
    assert isinstance(world.backend, DockerBackend)
    filters = json.dumps({"type": ["container"], "event": ["die"]})
    span = {"since": f"{since:.3f}", "until": f"{until:.3f}"}
    query = urllib.parse.urlencode({**span, "filters": filters})
    status, answer = world.backend.engine.api("GET", f"/events?{query}")
    assert status == 200, answer
    found = []
    lines = [answer] if isinstance(answer, dict) else map(json.loads, answer.splitlines())
    for event in lines:
        labels = event["Actor"]["Attributes"]
        if tag_part(uid) in labels.get("spillway.dev/tag", "") and "spillway.dev/container" in labels:
            found.append(labels["spillway.dev/container"])
    return found


def reasons(world: World, uid: str) -> set[str]:
    """Of the daemon's events about a pod."""
    return {event["reason"] for event in world.events(uid)}


def seconds_between(earlier: str, later: str) -> float:
    """Between two times of the API or of the engine."""
    moment = datetime.datetime.fromisoformat
    return (moment(later) - moment(earlier)).total_seconds()


def all_cmdlines() -> Iterable[tuple[int, bytes]]:
    """Of every process on this machine: pid and command line."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes()
            except OSError:
                continue
