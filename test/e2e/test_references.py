"""What pods refer to: themselves, their node, services, and what is not there."""

from __future__ import annotations

from typing import Any

from test.cluster import wait_for

from .conftest import Worlds
from .world import World, container_state


def environment(world: World, uid: str) -> dict[str, str]:
    entries = world.backend.container_of(uid)["Config"]["Env"]
    return dict(entry.split("=", 1) for entry in entries)


def field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resource(name: str, resource: str, divisor: str | None = None) -> dict[str, Any]:
    ref = {"resource": resource, **({"divisor": divisor} if divisor else {})}
    return {"name": name, "valueFrom": {"resourceFieldRef": ref}}


def test_what_a_pod_knows_of_itself(make_world: Worlds) -> None:
    world = make_world("docker")
    env = [
        field("NAME", "metadata.name"),
        field("NAMESPACE", "metadata.namespace"),
        field("UID", "metadata.uid"),
        field("NOTE", "metadata.annotations['example.com/note']"),
        field("NO_LABEL", "metadata.labels['nobody']"),
        field("NODE", "spec.nodeName"),
        field("ACCOUNT", "spec.serviceAccountName"),
        field("HOST", "status.hostIP"),
        resource("MEMORY", "limits.memory", "1Mi"),
        resource("CPU", "requests.cpu"),
        resource("NODE_CPU", "limits.cpu"),
        {"name": "ALL", "value": "$(NAME)/$(MEMORY)"},
    ]
    resources = {"limits": {"memory": "65M"}, "requests": {"cpu": "10m"}}
    uid = world.create_pod(
        "known",
        container={"env": env, "resources": resources},
        annotations={"example.com/note": 'of "two"\nlines'},
    )
    world.wait_ready("known")
    given = environment(world, uid)
    node = world.cluster.get(f"/api/v1/nodes/{world.node}")
    assert node["status"]["allocatable"]["cpu"] == "1k"
    pod = world.pod("known")
    assert pod is not None
    expected = {
        "NAME": "known",
        "NAMESPACE": world.namespace,
        "UID": uid,
        "NOTE": 'of "two"\nlines',
        "NO_LABEL": "",
        "NODE": world.node,
        "ACCOUNT": "default",
        "HOST": pod["status"]["hostIP"],
        "MEMORY": "62",  # 65,000,000 bytes are 61.99 MiB
        "CPU": "1",
        "NODE_CPU": "1000",
        "ALL": "known/62",
    }
    assert {key: given.get(key) for key in expected} == expected


def test_services_are_told_as_by_a_kubelet(make_world: Worlds) -> None:
    world = make_world("docker")
    path = f"/api/v1/namespaces/{world.namespace}/services"
    ports = [{"name": "my-web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    for name, spec in (("super-duper", {"ports": ports}), ("headless", {"clusterIP": "None"})):
        status, answer = world.cluster.api("POST", path, {"metadata": {"name": name}, "spec": spec})
        assert status == 201, answer
    address = world.cluster.get(f"{path}/super-duper")["spec"]["clusterIP"]
    api = world.cluster.get("/api/v1/namespaces/default/services/kubernetes")["spec"]["clusterIP"]
    env = [{"name": "URL", "value": "http://$(SUPER_DUPER_SERVICE_HOST)"}]
    linked = world.create_pod("linked", container={"env": env})
    unlinked = world.create_pod("unlinked", container={"env": env}, enableServiceLinks=False)
    world.wait_ready("linked", "unlinked")
    given = environment(world, linked)
    assert given["URL"] == f"http://{address}"
    assert given["SUPER_DUPER_SERVICE_PORT"] == "80"
    assert given["SUPER_DUPER_SERVICE_PORT_DNS"] == "53"
    assert given["SUPER_DUPER_PORT_53_UDP"] == f"udp://{address}:53"
    assert given["KUBERNETES_SERVICE_HOST"] == api
    assert not [key for key in given if key.startswith("HEADLESS")]
    given = environment(world, unlinked)
    assert given["KUBERNETES_SERVICE_HOST"] == api
    assert not [key for key in given if key.startswith("SUPER_DUPER")]
    assert given["URL"] == "http://$(SUPER_DUPER_SERVICE_HOST)"


def test_what_is_missing_is_named_by_kind(make_world: Worlds) -> None:
    world = make_world("fake")
    optional = {"name": "none", "optional": True}
    container = {
        "envFrom": [{"configMapRef": optional}, {"secretRef": optional}],
        "env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}],
    }
    uid = world.create_pod("p", container=container)
    wanted = {
        "OptionalConfigMapNotFound",
        "OptionalSecretNotFound",
        "MandatorySecretNotFound",
        "Failed",
    }
    wait_for(lambda: {e["reason"] for e in world.events(uid)} == wanted, "an event for each")
    pod = world.pod("p")
    assert pod is not None
    assert container_state(pod)[1]["reason"] == "CreateContainerConfigError"
    path = f"/api/v1/namespaces/{world.namespace}/secrets"
    secret: dict[str, Any] = {"metadata": {"name": "keys"}, "stringData": {"other": "1"}}
    assert world.cluster.api("POST", path, secret)[0] == 201
    wait_for(
        lambda: "MandatorySecretKeyNotFound" in {e["reason"] for e in world.events(uid)},
        "the key is missing now",
        timeout=30,
    )
    assert world.tags() == []
    secret["stringData"] = {"k": "v"}
    assert world.cluster.api("PUT", f"{path}/keys", secret)[0] == 200
    world.wait_ready("p", timeout=40)
    world.assert_made_once([uid])
