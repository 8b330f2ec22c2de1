"""Pods of more than one plain container, on real containers: order, files, probes, hooks, rights."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from test.cluster import wait_for

from .backends import FOREVER, DockerBackend
from .conftest import Worlds
from .pods import container_ids, create, create_object, output, sh, status_of
from .world import World, condition, is_ready, phase


@pytest.fixture
def world(make_world: Worlds) -> World:
    return make_world("docker")


def test_init_containers_run_in_order_before_the_others_and_share_their_files(world: World) -> None:
    work = {"mounts": [{"name": "work", "mountPath": "/work"}]}
    uid = create(
        world,
        "ordered",
        {
            "restartPolicy": "Never",
            "volumes": [{"name": "work", "emptyDir": {}}],
            "initContainers": [
                sh("first", "echo first >>/work/log", volumeMounts=work["mounts"]),
                sh("second", "echo second >>/work/log", volumeMounts=work["mounts"]),
            ],
            "containers": [
                sh("left", "cat /work/log; touch /work/left", volumeMounts=work["mounts"]),
                sh(
                    "right",
                    "while [ ! -e /work/left ]; do sleep 0.1; done; echo saw left",
                    volumeMounts=work["mounts"],
                ),
            ],
        },
    )
    pod = world.wait_phase("ordered", "Succeeded")
    assert output(world, uid, "left") == "first\nsecond"
    assert output(world, uid, "right") == "saw left"
    assert [one["name"] for one in pod["status"]["initContainerStatuses"]] == ["first", "second"]
    assert condition(pod, "Initialized") == "True"
    for name in ("first", "second", "left", "right"):
        assert status_of(pod, name)["state"]["terminated"]["exitCode"] == 0


def test_a_failed_init_container_ends_a_pod_that_is_never_restarted(world: World) -> None:
    create(
        world,
        "broken",
        {
            "restartPolicy": "Never",
            "initContainers": [sh("check", "exit 7")],
            "containers": [sh("main", "echo never")],
        },
    )
    pod = world.wait_phase("broken", "Failed")
    assert status_of(pod, "check")["state"]["terminated"]["exitCode"] == 7
    assert "waiting" in status_of(pod, "main")["state"]


def test_a_sidecar_starts_first_and_does_not_keep_a_job_from_ending(world: World) -> None:
    create(
        world,
        "job",
        {
            "restartPolicy": "Never",
            "initContainers": [
                sh(
                    "proxy",
                    f"mkdir /www; httpd -p 127.0.0.1:8080 -h /www; {FOREVER}",
                    restartPolicy="Always",
                )
            ],
            "containers": [
                sh(
                    "main",
                    "for i in 1 2 3 4 5 6 7 8 9; do nc 127.0.0.1 8080 </dev/null && exit 0; sleep 0.3; done; exit 1",
                )
            ],
        },
    )
    pod = world.wait_phase("job", "Succeeded")
    assert status_of(pod, "main")["state"]["terminated"]["exitCode"] == 0


def test_files_of_configmaps_and_secrets_arrive_byte_for_byte(world: World) -> None:
    raw = bytes(range(256)) * 64
    create_object(
        world,
        "configmaps",
        "settings",
        data={"app.yaml": 'größe: 1\n$HOME "quoted"\n', "empty": ""},
        binaryData={"blob": base64.b64encode(raw).decode()},
    )
    create_object(world, "secrets", "keys", stringData={"token": "canary-7f3a"})
    script = (
        "md5sum /etc/app/blob | cut -d' ' -f1; cat /etc/app/app.yaml; wc -c </etc/app/empty;"
        "cat /srv/one.yaml; stat -c %a /keys/sub/token; cat /keys/sub/token; echo;"
        "cat /info/labels; echo; touch /etc/app/x 2>/dev/null || echo read-only"
    )
    uid = create(
        world,
        "files",
        {
            "restartPolicy": "Never",
            "volumes": [
                {"name": "app", "configMap": {"name": "settings"}},
                {
                    "name": "keys",
                    "projected": {
                        "sources": [
                            {
                                "secret": {
                                    "name": "keys",
                                    "items": [{"key": "token", "path": "sub/token", "mode": 0o400}],
                                }
                            }
                        ]
                    },
                },
                {
                    "name": "info",
                    "downwardAPI": {
                        "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
                    },
                },
            ],
            "containers": [
                sh(
                    "main",
                    script,
                    volumeMounts=[
                        {"name": "app", "mountPath": "/etc/app"},
                        {"name": "app", "mountPath": "/srv/one.yaml", "subPath": "app.yaml"},
                        {"name": "keys", "mountPath": "/keys"},
                        {"name": "info", "mountPath": "/info"},
                    ],
                )
            ],
        },
        labels={"team": "vision"},
    )
    world.wait_phase("files", "Succeeded")
    yaml = 'größe: 1\n$HOME "quoted"\n'
    assert output(world, uid, "main") == (
        f'{hashlib.md5(raw).hexdigest()}\n{yaml}0\n{yaml}400\ncanary-7f3a\nteam="vision"\nread-only'
    )
    assert "canary-7f3a" not in world.daemon.log.read_text()
    assert "canary-7f3a" not in json.dumps(world.events(uid))


def test_a_missing_configmap_keeps_the_pod_waiting_until_it_appears(world: World) -> None:
    uid = create(
        world,
        "patient",
        {
            "restartPolicy": "Never",
            "volumes": [{"name": "app", "configMap": {"name": "late"}}],
            "containers": [
                sh(
                    "main",
                    "cat /etc/app/key",
                    volumeMounts=[{"name": "app", "mountPath": "/etc/app"}],
                )
            ],
        },
    )
    wait_for(
        lambda: any("late" in event["message"] for event in world.events(uid)), "an event names it"
    )
    assert world.backend.ever_made(uid) == 0
    create_object(world, "configmaps", "late", data={"key": "value"})
    world.wait_phase("patient", "Succeeded")
    assert output(world, uid, "main") == "value"


def test_readiness_follows_the_probe_and_liveness_restarts_the_container(world: World) -> None:
    # A machine that is busy for a second must not fail it.
    probe = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 20}
    uid = create(
        world,
        "probed",
        {
            "containers": [
                sh(
                    "main",
                    "touch /alive; mkdir /www; " + FOREVER,
                    readinessProbe={"exec": {"command": ["test", "-e", "/ready"]}, **probe},
                    livenessProbe={
                        "exec": {"command": ["test", "-e", "/alive"]},
                        **probe,
                        "initialDelaySeconds": 2,
                    },
                ),
                sh(
                    "web",
                    "mkdir /www; echo ok >/www/healthz; exec httpd -f -p 127.0.0.1:8080 -h /www",
                    readinessProbe={"httpGet": {"path": "/healthz", "port": 8080}, **probe},
                ),
            ]
        },
    )
    pod = world.wait_pod(
        "probed",
        lambda p: phase(p) == "Running" and bool(p) and status_of(p, "web")["ready"],
        "Running, with web ready",
    )
    assert not status_of(pod, "main")["ready"] and condition(pod, "Ready") == "False"
    main = container_ids(world, uid)["main"]
    assert isinstance(world.backend, DockerBackend)
    world.backend.engine.docker("exec", main, "touch", "/ready")
    world.wait_pod("probed", is_ready, "Ready")
    world.backend.engine.docker("exec", main, "rm", "/alive", "/ready")
    pod = world.wait_pod(
        "probed", lambda p: bool(p) and status_of(p, "main")["restartCount"] == 1, "restarted", 60
    )
    assert status_of(pod, "web")["restartCount"] == 0
    assert {"Unhealthy", "Killing"} <= {event["reason"] for event in world.events(uid)}


def test_hooks_run_after_the_start_and_before_the_end(world: World) -> None:
    mount = [{"name": "work", "mountPath": "/work"}]
    uid = create(
        world,
        "hooked",
        {
            "terminationGracePeriodSeconds": 20,
            "volumes": [{"name": "work", "emptyDir": {}}],
            "containers": [
                sh(
                    "main",
                    "trap 'cat /work/log; exit 0' TERM; while :; do sleep 0.1; done",
                    volumeMounts=mount,
                    lifecycle={
                        "postStart": {
                            "exec": {"command": ["sh", "-c", "echo started >>/work/log"]}
                        },
                        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping >>/work/log"]}},
                    },
                ),
                sh(
                    "watch",
                    # It stays for a moment, so that it can be read.
                    "trap '' TERM; while ! grep -q stopping /work/log; do sleep 0.1; done;"
                    "cat /work/log; sleep 5",
                    volumeMounts=mount,
                ),
            ],
        },
    )
    world.wait_ready("hooked")
    watch = container_ids(world, uid)["watch"]
    world.delete_pod("hooked")
    seen: list[str] = []

    def look() -> bool:
        assert isinstance(world.backend, DockerBackend)
        if watch in container_ids(world, uid).values():
            seen.append(world.backend.logs(watch))
        return bool(seen) and "started\nstopping" in seen[-1]

    wait_for(look, "both hooks have run", timeout=20, interval=0.1)
    world.wait_gone("hooked")


def test_rights_names_and_last_words(world: World) -> None:
    uid = create(
        world,
        "modest",
        {
            "restartPolicy": "Never",
            "hostname": "modest-host",
            "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["db.internal"]}],
            "securityContext": {"runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456},
            "volumes": [
                {"name": "scratch", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
            ],
            "containers": [
                sh(
                    "main",
                    "id -u; id -g; hostname; grep -c db.internal /etc/hosts; echo $POD_NAME $CPU;"
                    "touch /scratch/x && stat -c %g /scratch/x; df /dev/shm | grep -c tmpfs;"
                    "touch /no 2>/dev/null || echo read-only; echo done >/dev/termination-log",
                    env=[
                        {
                            "name": "POD_NAME",
                            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                        },
                        {
                            "name": "CPU",
                            "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}},
                        },
                    ],
                    resources={"limits": {"cpu": "2"}},
                    volumeMounts=[
                        {"name": "scratch", "mountPath": "/scratch"},
                        {"name": "shm", "mountPath": "/dev/shm"},
                    ],
                    securityContext={
                        "readOnlyRootFilesystem": True,
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                )
            ],
        },
    )
    pod = world.wait_phase("modest", "Succeeded")
    assert output(world, uid, "main").split("\n") == [
        "1234", "2345", "modest-host", "1", "modest 2", "3456", "1", "read-only",
    ]  # fmt: skip
    assert status_of(pod, "main")["state"]["terminated"]["message"] == "done\n"


def test_a_token_of_the_service_account_is_sent_only_where_the_pod_says_so(world: World) -> None:
    at = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = f"cut -d. -f2 {at}/token 2>/dev/null || echo none; cat {at}/namespace 2>/dev/null || :"
    spec = {"restartPolicy": "Never", "containers": [sh("main", script)]}
    sent = create(
        world, "sent", spec, annotations={"spillway.dev/send-service-account-token": "true"}
    )
    withheld = create(world, "withheld", spec)
    world.wait_phase("sent", "Succeeded")
    world.wait_phase("withheld", "Succeeded")
    assert output(world, withheld, "main") == "none"
    payload, namespace = output(world, sent, "main").split("\n")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["kubernetes.io"]["pod"] == {"name": "sent", "uid": sent}
    assert namespace == world.namespace
