"""What pods refer to and what is secret: it arrives, it may come late, and it shows up nowhere else."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from test.cluster import matching, wait_for
from test.cluster.gate import answer

from .backends import FOREVER, DockerBackend
from .conftest import Worlds
from .pods import (
    all_cmdlines,
    container_ids,
    create,
    create_object,
    inspect,
    output,
    reasons,
    sh,
    status_of,
)
from .registry import PASSWORD, Registry
from .world import World, phase


@pytest.fixture
def world(make_world: Worlds) -> World:
    return make_world("docker")


def put(world: World, kind: str, name: str, **fields: Any) -> None:
    path = f"/api/v1/namespaces/{world.namespace}/{kind}/{name}"
    status, said = world.cluster.api("PUT", path, {"metadata": {"name": name}, **fields})
    assert status == 200, said


def wait_config_error(world: World, name: str) -> str:
    """The message of a pod whose container cannot be made."""

    def holds(pod: dict[str, Any] | None) -> bool:
        if pod is None or not pod["status"].get("containerStatuses"):
            return False
        waiting = status_of(pod, "main")["state"].get("waiting", {})
        return waiting.get("reason") == "CreateContainerConfigError"

    pod = world.wait_pod(name, holds, "CreateContainerConfigError")
    assert phase(pod) == "Pending"
    return status_of(pod, "main")["state"]["waiting"]["message"]


def test_broken_references_of_all_kinds_wait_and_heal(world: World) -> None:
    create_object(world, "configmaps", "half", data={"other": "x"})
    create_object(world, "secrets", "half", stringData={"other": "x"})
    create_object(world, "secrets", "closed", stringData={"k": "value"})
    closed = matching(verb="get", path=f"/api/v1/namespaces/{world.namespace}/secrets/closed")
    forbidden = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not for you"}
    rule = world.api.on(closed, answer(403, forbidden), times=None)

    def key_of(kind: str, name: str) -> dict[str, Any]:
        ref = "configMapKeyRef" if kind == "configmaps" else "secretKeyRef"
        return {"name": "V", "valueFrom": {ref: {"name": name, "key": "k"}}}

    broken = {
        "no-map": (key_of("configmaps", "late"), "MandatoryConfigMapNotFound", 'configmap "late"'),
        "no-secret": (key_of("secrets", "late"), "MandatorySecretNotFound", 'secret "late"'),
        "no-map-key": (key_of("configmaps", "half"), "MandatoryConfigMapKeyNotFound", "key k"),
        "no-secret-key": (key_of("secrets", "half"), "MandatorySecretKeyNotFound", "key k"),
        "no-right": (key_of("secrets", "closed"), "FailedToReadMandatorySecret", "not for you"),
    }
    uids = {}
    for name, (env, _, _) in broken.items():
        main = sh("main", "echo $V", env=[env])
        uids[name] = create(world, name, {"restartPolicy": "Never", "containers": [main]})
    for name, (_, reason, words) in broken.items():
        assert words in wait_config_error(world, name)
        wait_for(lambda n=name, r=reason: r in reasons(world, uids[n]), f"the event {reason}")
        assert world.backend.ever_made(uids[name]) == 0
    create_object(world, "configmaps", "late", data={"k": "value"})
    create_object(world, "secrets", "late", stringData={"k": "value"})
    put(world, "configmaps", "half", data={"k": "value"})
    put(world, "secrets", "half", stringData={"k": "value"})
    rule.remove()
    for name, uid in uids.items():
        world.wait_phase(name, "Succeeded", timeout=40)
        assert output(world, uid, "main") == "value"
    world.assert_made_once(uids.values())


def test_the_service_accounts_pull_secrets_open_the_registry(world: World) -> None:
    assert isinstance(world.backend, DockerBackend)
    registry = Registry(world.keeper)
    image = registry.take(world.backend.engine, "busybox:test", "team/app:1")
    create_object(world, "secrets", "login", **registry.secret())
    create_object(world, "secrets", "wrong", **registry.secret("canary-that-is-wrong"))
    account = {"imagePullSecrets": [{"name": "login"}]}
    create_object(world, "serviceaccounts", "puller", **account)
    main = {**sh("main", FOREVER), "image": image}
    denied = create(
        world, "denied", {"imagePullSecrets": [{"name": "wrong"}], "containers": [main]}
    )
    wait_for(lambda: "Failed" in reasons(world, denied), "the registry denies it")
    [failed] = [event for event in world.events(denied) if event["reason"] == "Failed"]
    assert image in failed["message"] and "canary" not in failed["message"]
    world.delete_pod("denied")
    create(world, "pulled", {"serviceAccountName": "puller", "containers": [main]})
    pod = world.wait_ready("pulled")
    assert pod["spec"]["imagePullSecrets"] == [{"name": "login"}]
    assert status_of(pod, "main")["image"] == image
    assert PASSWORD not in world.daemon.log.read_text()


def test_a_token_is_its_users_and_its_groups(world: World) -> None:
    order = {"annotations": {"spillway.dev/send-service-account-token": "true"}}
    at = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    main = sh("main", f"stat -Lc '%a %u %g' {at}; [ -s {at} ] && cat {at} >/dev/null && echo read")
    users = {
        "anybody": ({}, "644 0 0"),
        "user": ({"runAsUser": 1234}, "600 1234 0"),
        "group": ({"fsGroup": 2345}, "640 0 2345"),
        "both": ({"runAsUser": 1234, "fsGroup": 2345}, "640 1234 2345"),
    }
    uids = {
        name: create(
            world,
            name,
            {"restartPolicy": "Never", "securityContext": security, "containers": [main]},
            **order,
        )
        for name, (security, _) in users.items()
    }
    for name, (_, wanted) in users.items():
        world.wait_phase(name, "Succeeded")
        assert output(world, uids[name], "main").split("\n") == [wanted, "read"]


CANARY = "canary-5f1c9b"


def shown_by_engine(world: World, uids: list[str]) -> str:
    """All that docker shows of the pods' containers, but for their environment."""
    assert isinstance(world.backend, DockerBackend)
    shown = []
    for uid in uids:
        for name in container_ids(world, uid):
            found = inspect(world, uid, name)
            # Whoever may use the engine sees these; providers/docker/README.md says so.
            del found["Config"]["Env"]
            shown.append(found)
    for path in ("/containers/json?all=true", "/volumes"):
        shown.append(world.backend.engine.api("GET", path)[1])
    return json.dumps(shown)


def shown_by_daemon(world: World) -> str:
    child = world.daemon.child.pid
    assert child is not None
    process = pathlib.Path(f"/proc/{child}")
    return "\n".join(
        [
            world.daemon.log.read_text(errors="replace"),
            world.daemon.admin("/metrics")[1],
            world.daemon.admin("/debug/pods")[1],
            (process / "cmdline").read_text(errors="replace"),
            (process / "environ").read_text(errors="replace"),
        ]
    )


def test_secrets_show_up_nowhere_but_in_the_container(world: World) -> None:
    registry = Registry(world.keeper)
    assert isinstance(world.backend, DockerBackend)
    image = registry.take(world.backend.engine, "busybox:test", "team/canary:1")
    create_object(world, "secrets", "login", **registry.secret())
    create_object(world, "secrets", "keys", stringData={"k": f"{CANARY}-a", "n": f"{CANARY}-b\n"})
    create_object(
        world, "secrets", "raw", data={"k": "Y2FuYXJ5LTVmMWM5Yi3//g=="}
    )  # the canary, and two bytes that are no UTF-8
    env = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}]
    raw = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "raw", "key": "k"}}}]
    volumes = [
        {"name": "keys", "secret": {"secretName": "keys"}},
        {"name": "raw", "secret": {"secretName": "raw"}},
    ]
    mounts = [{"name": "keys", "mountPath": "/keys"}, {"name": "raw", "mountPath": "/raw"}]
    # It must not hold the canary itself.
    script = '[ "$K" = "$(cat /keys/k)" ] && [ ${#K} -eq 15 ] && wc -c </raw/k && sleep 2'
    order = {"annotations": {"spillway.dev/send-service-account-token": "true"}}
    reader = sh(
        "main", script, env=env, envFrom=[{"secretRef": {"name": "keys"}}], volumeMounts=mounts
    )
    reader["image"] = image
    reader["lifecycle"] = {"postStart": {"exec": {"command": ["sh", "-c", 'test -n "$K"']}}}
    ended = {"restartPolicy": "Never", "imagePullSecrets": [{"name": "login"}]}
    uids = {
        "reader": create(
            world, "reader", {**ended, "volumes": volumes, "containers": [reader]}, **order
        ),
        # Three that go wrong in words of ours, of the engine and of the runtime.
        "bytes": create(world, "bytes", {**ended, "containers": [sh("main", "true", env=raw)]}),
        "absent": create(
            world,
            "absent",
            {**ended, "containers": [{**sh("main", "true", env=env), "image": f"{image}2"}]},
        ),
        "broken": create(
            world,
            "broken",
            {**ended, "containers": [{**sh("main", "", env=env), "command": ["/no-such"]}]},
        ),
    }
    world.wait_phase("reader", "Succeeded")
    assert output(world, uids["reader"], "main") == "16"
    world.wait_phase("broken", "Failed")
    for name in ("bytes", "absent"):
        wait_for(
            lambda n=name: reasons(world, uids[n]) & {"Failed", "StartFailed"},
            f"an event about pod {name}",
        )
    [said] = [e["message"] for e in world.events(uids["bytes"]) if "UTF-8" in e["message"]][:1]
    assert "environment variable K" in said
    events = world.cluster.get(f"/api/v1/namespaces/{world.namespace}/events?limit=500")
    statuses = [one["status"] for one in world.pods()] + [
        one["metadata"].get("annotations") for one in world.pods()
    ]
    places = {
        "events": json.dumps(events),
        "status and annotations": json.dumps(statuses),
        "the daemon": shown_by_daemon(world),
        "the engine": shown_by_engine(world, list(uids.values())),
        "command lines": repr([line for _, line in all_cmdlines()]),
    }
    for place, text in places.items():
        for canary in (CANARY, PASSWORD, "eyJhbGciOi"):  # how every token begins
            assert canary not in text, f"{canary} shows up in {place}"
