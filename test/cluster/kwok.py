"""Home nodes of a test: kwok runs their pods, which are nothing but objects, and renews their leases."""

from __future__ import annotations

import json
from collections.abc import Mapping

from . import binaries
from .cluster import Cluster
from .processes import Keeper

_FAKE = {"kwok.x-k8s.io/node": "fake"}
_MERGE = "application/merge-patch+json"


class Kwok:
    """One kwok beside a cluster, and the nodes that were added to it."""

    def __init__(self, cluster: Cluster, keeper: Keeper) -> None:
        self._cluster = cluster
        self._names: list[str] = []
        folder = binaries.binary("kwok", "kwok").parent
        command = [
            folder / "kwok",
            f"--kubeconfig={cluster.kubeconfig}",
            f"--config={folder / 'stages.yaml'}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
        ]
        keeper.spawn("kwok", command, log=keeper.directory / "kwok.log")

    def add_node(self, name: str, *, gpus: int, labels: Mapping[str, str]) -> None:
        body = {"metadata": {"name": name, "annotations": _FAKE, "labels": dict(labels)}}
        status, answer = self._cluster.api("POST", "/api/v1/nodes", body)
        assert status == 201, answer
        self._names.append(name)
        resources = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        patch = json.dumps({"status": {"capacity": resources, "allocatable": resources}}).encode()
        path = f"/api/v1/nodes/{name}/status"
        status, answer = self._cluster.api("PATCH", path, patch, content_type=_MERGE)
        assert status == 200, answer

    def close(self) -> None:
        for name in self._names:
            self._cluster.api("DELETE", f"/api/v1/nodes/{name}")
