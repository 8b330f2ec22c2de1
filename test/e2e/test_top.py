"""What pods use, as the real metrics-server reads it from the node: `kubectl top`, and an autoscaler."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
import yaml

from test.cluster import Cluster, wait_for
from test.cluster.cluster import REPOSITORY
from test.cluster.metrics_server import MetricsServer

from .conftest import Worlds
from .kubelet import CERTIFIED, approve, kubectl
from .world import World

#: Burns what it is allowed to until somebody makes the file; and holds 64 MiB, which never end.
BUSY = "head -c 67108864 /dev/zero | tail -c 67108864 | sleep 3600 & while :; do [ ! -e /tmp/idle ] || sleep 1; done"
LIMITS = {"limits": {"cpu": "200m", "memory": "200Mi"}, "requests": {"cpu": "100m"}}


@pytest.fixture
def metrics_server(cluster: Cluster, short_tmp: pathlib.Path) -> Iterator[MetricsServer]:
    server = MetricsServer(cluster).start(short_tmp / "metrics-server")
    yield server
    server.stop()


def used(world: World, *arguments: str) -> tuple[float, float]:
    """(milli-CPUs, MiB) of the first row of `kubectl top`; raises nothing while there is none: (-1, -1)."""
    done = kubectl(world, "top", *arguments, "--no-headers")
    if done.code != 0 or not done.text.split():
        return -1.0, -1.0
    cells = done.text.splitlines()[0].split()
    cpu = next(cell for cell in cells[1:] if cell.endswith("m") or cell == "<unknown>")
    memory = next((cell for cell in cells[1:] if cell.endswith("Mi")), "-1Mi")
    return float(cpu.removesuffix("m").replace("<unknown>", "-1")), float(memory.removesuffix("Mi"))


def make_busy(world: World, replicas: int) -> None:
    pod = world.pod_spec(
        world.backend.workload(),
        container={"command": ["sh", "-c", BUSY], "resources": LIMITS},
    )
    labels = {"app": "busy"}
    body = {
        "metadata": {"name": "busy"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**pod, "restartPolicy": "Always"}},
        },
    }
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    status, answer = world.cluster.api("POST", path, body)
    assert status == 201, answer


def wait_replicas(world: World, count: int, timeout: float) -> None:
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments/busy"

    def reached() -> bool:
        status = world.cluster.get(path)["status"]
        return status.get("readyReplicas", 0) == count == status.get("replicas", 0)

    wait_for(reached, f"{count} busy pods", timeout=timeout)


@pytest.mark.timeout(300)
def test_top_is_right_and_an_autoscaler_follows_it(
    make_world: Worlds, metrics_server: MetricsServer
) -> None:
    world = make_world("docker", daemon={"kubelet": {"port": 0, **CERTIFIED}})
    approve(world)
    make_busy(world, 1)
    wait_replicas(world, 1, timeout=30)

    # A known load: what its limit leaves, 200m, and 64 MiB.
    def close_to(found: tuple[float, float]) -> bool:
        return abs(found[0] - 200) <= 20 and abs(found[1] - 64) <= 6.4

    wait_for(lambda: close_to(used(world, "pod")), "top pod tells 200m and 64Mi", timeout=90)
    assert close_to(used(world, "pod", "--containers", "-l", "app=busy"))
    wait_for(lambda: close_to(used(world, "node", world.node)), "top node agrees", timeout=60)

    scale = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"}}
    target = {"type": "Utilization", "averageUtilization": 100}
    spec = {
        **scale,
        "minReplicas": 1,
        "maxReplicas": 2,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    path = f"/apis/autoscaling/v2/namespaces/{world.namespace}/horizontalpodautoscalers"
    status, answer = world.cluster.api("POST", path, {"metadata": {"name": "busy"}, "spec": spec})
    assert status == 201, answer
    wait_replicas(world, 2, timeout=90)
    for pod in world.cluster.get(world.pods_path())["items"]:
        name = pod["metadata"]["name"]
        done = kubectl(world, "exec", name, "--", "touch", "/tmp/idle")
        assert done.code == 0, done.err
    wait_replicas(world, 1, timeout=120)


def test_the_recipe_of_the_docs_is_accepted(cluster: Cluster) -> None:
    text = (REPOSITORY / "vk-provider/docs/autoscaling.md").read_text()
    recipe = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?dryRun=All"
    status, answer = cluster.api("POST", path + "&fieldValidation=Strict", recipe)
    assert status == 201, answer
    assert answer["spec"]["metrics"][0]["external"]["target"]["type"] == "AverageValue"
