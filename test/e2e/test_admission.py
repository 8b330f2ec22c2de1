"""config/admission on the real API server: who gets the tolerations of a burst pod, and who is left alone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from test.cluster import Cluster, wait_for
from test.cluster.cluster import REPOSITORY

PROVIDER = {
    "key": "virtual-kubelet.io/provider",
    "operator": "Equal",
    "value": "spillway",
    "effect": "NoSchedule",
}
GPU = {"limits": {"nvidia.com/gpu": "1"}}


def leaving(seconds: int, *keys: str) -> list[dict[str, Any]]:
    """The tolerations of nodes that do not answer, in the order of the API server."""
    return [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": seconds,
        }
        for key in keys or ("not-ready", "unreachable")
    ]


@pytest.fixture(scope="module")
def policy(cluster: Cluster) -> Iterator[None]:
    folder = str(REPOSITORY / "config" / "admission")
    cluster.kubectl("apply", "-k", folder)
    yield
    cluster.kubectl("delete", "-k", folder)


@pytest.fixture(scope="module")
def places(cluster: Cluster, policy: None) -> Iterator[tuple[str, str]]:
    """Two namespaces: one that opted in, and has been seen to, and one that did not."""
    names = []
    for labels in ({"spillway.dev/burst": "allow"}, {"spillway.dev/burst": "no"}):
        names.append(f"admission-{uuid.uuid4().hex[:6]}")
        body = {"metadata": {"name": names[-1], "labels": labels}}
        assert cluster.api("POST", "/api/v1/namespaces", body)[0] == 201
        path = f"/api/v1/namespaces/{names[-1]}/serviceaccounts/default"
        wait_for(lambda: cluster.api("GET", path)[0] == 200, "the default ServiceAccount")
    seen = lambda: PROVIDER in admitted(cluster, names[0], resources=GPU)  # noqa: E731
    wait_for(seen, "the policy is in force", timeout=30)
    yield names[0], names[1]
    for name in names:
        cluster.api("DELETE", f"/api/v1/namespaces/{name}")


def admitted(
    cluster: Cluster,
    namespace: str,
    *,
    resources: dict[str, Any] | None = None,
    owner: str = "",
    labels: dict[str, str] | None = None,
    init: list[dict[str, Any]] | None = None,
    **spec: Any,
) -> list[dict[str, Any]]:
    """The tolerations of a pod as the API server would store it; nothing is stored."""
    metadata: dict[str, Any] = {"generateName": "p-", "labels": labels or {}}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": str(uuid.uuid4())}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    container = {"name": "c", "image": "x", "resources": resources or {}}
    body = {"metadata": metadata, "spec": {"containers": [container], **spec}}
    if init:
        body["spec"]["initContainers"] = init
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    status, answer = cluster.api("POST", path, body)
    assert status == 201, answer
    return answer["spec"].get("tolerations", [])


@pytest.mark.parametrize("owner", ["", "ReplicaSet", "Job"])
def test_gpu_pods_of_a_namespace_that_opted_in(
    cluster: Cluster, places: tuple[str, str], owner: str
) -> None:
    # The server's own 300 s are gone: of several the smallest would win.
    assert admitted(cluster, places[0], resources=GPU, owner=owner) == [
        *leaving(3600),
        PROVIDER,
    ]


def test_an_amd_gpu_counts(cluster: Cluster, places: tuple[str, str]) -> None:
    assert PROVIDER in admitted(cluster, places[0], resources={"limits": {"amd.com/gpu": "1"}})


def test_a_gpu_of_an_init_container_counts(cluster: Cluster, places: tuple[str, str]) -> None:
    init = [{"name": "i", "image": "x", "resources": GPU}]
    assert PROVIDER in admitted(cluster, places[0], init=init)


@pytest.mark.parametrize(
    "pod",
    [
        {"resources": {"limits": {"cpu": "1"}}},
        {"resources": {}},
        {"resources": GPU, "owner": "DaemonSet"},
        {"resources": GPU, "labels": {"spillway.dev/burst": "never"}},
    ],
    ids=["no GPU", "no resources", "DaemonSet", "opted out"],
)
def test_others_are_left_alone(
    cluster: Cluster, places: tuple[str, str], pod: dict[str, Any]
) -> None:
    assert admitted(cluster, places[0], **pod) == leaving(300)


def test_a_namespace_that_did_not_opt_in(cluster: Cluster, places: tuple[str, str]) -> None:
    assert admitted(cluster, places[1], resources=GPU) == leaving(300)
    assert admitted(cluster, "default", resources=GPU) == leaving(300)


def test_what_a_pod_says_itself_stands(cluster: Cluster, places: tuple[str, str]) -> None:
    own = [
        {"key": "virtual-kubelet.io/provider", "operator": "Exists"},
        *leaving(60, "unreachable"),
        *leaving(7200, "not-ready"),
    ]
    assert admitted(cluster, places[0], resources=GPU, tolerations=own) == own
    # Half of it is its own: only the half that the server added changes.
    mine = [*leaving(60, "unreachable"), PROVIDER]
    expected = [*mine, *leaving(3600, "not-ready")]
    assert admitted(cluster, places[0], resources=GPU, tolerations=mine) == expected
    # A toleration of everything is one of ours, too.
    everything = [{"operator": "Exists"}]
    assert admitted(cluster, places[0], resources=GPU, tolerations=everything) == everything
    # One that looks like it but does not fit our taint is none.
    other = [{**PROVIDER, "value": "azure"}]
    expected = [*other, *leaving(3600), PROVIDER]
    assert admitted(cluster, places[0], resources=GPU, tolerations=other) == expected


def test_it_does_nothing_twice(cluster: Cluster, places: tuple[str, str]) -> None:
    once = admitted(cluster, places[0], resources=GPU)
    assert admitted(cluster, places[0], resources=GPU, tolerations=once) == once


def test_a_deployment_and_a_real_pod(cluster: Cluster, places: tuple[str, str]) -> None:
    labels = {"app": "burst"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": GPU}]},
    }
    body = {
        "metadata": {"name": "burst"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{places[0]}/deployments"
    status, answer = cluster.api("POST", path, body)
    assert status == 201, answer
    # The template is not touched: only its pods are.
    assert "tolerations" not in answer["spec"]["template"]["spec"]
    pods = f"/api/v1/namespaces/{places[0]}/pods?labelSelector=app=burst"
    wait_for(lambda: cluster.get(pods)["items"], "a pod of the Deployment")
    found = cluster.get(pods)["items"][0]["spec"]["tolerations"]
    assert found == [*leaving(3600), PROVIDER]
    cluster.api("DELETE", f"{path}/burst?propagationPolicy=Background")
