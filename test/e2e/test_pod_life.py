"""What becomes of containers on a real engine: restarts, sidecars, hooks, probes, and limits."""

from __future__ import annotations

import io
import tarfile
import time
from typing import Any

import pytest

from test.cluster import binaries, wait_for

from .backends import FOREVER, DockerBackend
from .conftest import Worlds
from .pods import container_ids, create, deaths, inspect, reasons, seconds_between, sh, status_of
from .world import World, condition, is_ready, phase, start

WORK = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
VOLUMES = {"volumes": [{"name": "work", "emptyDir": {}}]}

#: The module's world is docker's alone.
on_docker = pytest.mark.parametrize("kind", ["docker"])


def wait_for_state(world: World, pod: str, container: str, kind: str, **fields: Any) -> Any:
    """Waits until the container is waiting, running or terminated with these fields; its status."""

    def holds(found: dict[str, Any] | None) -> bool:
        if found is None or not found["status"].get("containerStatuses"):
            return False
        state = status_of(found, container)["state"].get(kind)
        return state is not None and all(state.get(k) == v for k, v in fields.items())

    found = world.wait_pod(pod, holds, f"{kind} {fields}", 60)
    return status_of(found, container)


@on_docker
def test_a_container_that_fails_comes_back_after_10_and_20_seconds(lasting_world: World) -> None:
    world = lasting_world
    script = "echo x >>/work/runs; [ $(wc -l </work/runs) -ge 3 ] || exit 3"
    spec = {**VOLUMES, "restartPolicy": "OnFailure", "containers": [sh("main", script, **WORK)]}
    create(world, "stubborn", spec)
    first = wait_for_state(world, "stubborn", "main", "waiting", reason="CrashLoopBackOff")
    assert first["restartCount"] == 0 and not first["ready"]
    ends = [first["lastState"]["terminated"]]
    second = world.wait_pod(
        "stubborn",
        lambda pod: bool(pod)
        and status_of(pod, "main")["restartCount"] == 1
        and "waiting" in status_of(pod, "main")["state"],
        "crashed again",
    )
    assert phase(second) == "Running" and condition(second, "Ready") == "False"
    ends.append(status_of(second, "main")["lastState"]["terminated"])
    last = world.wait_phase("stubborn", "Succeeded", timeout=40)
    ends.append(status_of(last, "main")["state"]["terminated"])
    assert status_of(last, "main")["restartCount"] == 2
    assert [end["exitCode"] for end in ends] == [3, 3, 0]
    assert [end["reason"] for end in ends] == ["Error", "Error", "Completed"]
    pauses = [
        seconds_between(before["finishedAt"], after["startedAt"])
        for before, after in zip(ends, ends[1:], strict=False)
    ]
    # The API has whole seconds, and a listing at rest may show an end 10 s late.
    assert 9 <= pauses[0] <= 15 and 19 <= pauses[1] <= 25, pauses


@on_docker
def test_a_container_above_its_memory_is_told_as_such(lasting_world: World) -> None:
    world = lasting_world
    hungry = sh("main", "exec dd if=/dev/zero of=/dev/null bs=200M count=1")
    hungry["resources"] = {"limits": {"memory": "24Mi"}}
    create(world, "hungry", {"restartPolicy": "Never", "containers": [hungry]})
    pod = world.wait_phase("hungry", "Failed")
    ended = status_of(pod, "main")["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


@on_docker
def test_sidecars_start_one_after_the_other_and_stop_last(lasting_world: World) -> None:
    world = lasting_world
    gate = {"exec": {"command": ["test", "-e", "/work/one"]}, "periodSeconds": 1}
    spec = {
        **VOLUMES,
        "terminationGracePeriodSeconds": 20,
        "initContainers": [
            sh(
                "one",
                f"sleep 2; touch /work/one; {FOREVER}",
                restartPolicy="Always",
                startupProbe={**gate, "failureThreshold": 30},
                **WORK,
            ),
            sh("two", FOREVER, restartPolicy="Always"),
        ],
        "containers": [sh("main", FOREVER)],
    }
    uid = create(world, "escorted", spec)
    world.wait_ready("escorted")
    began = [
        inspect(world, uid, name)["State"]["StartedAt"] for name in ("one", "two", "main")
    ]
    assert seconds_between(began[0], began[1]) >= 2
    assert seconds_between(began[1], began[2]) > 0
    before = time.time()
    world.delete_pod("escorted")
    world.wait_gone("escorted")
    assert deaths(world, uid, before, time.time()) == ["main", "two", "one"]


@on_docker
def test_a_job_ends_with_its_main_container_and_its_sidecars_after_it(lasting_world: World) -> None:
    world = lasting_world
    before = time.time()
    spec = {
        "restartPolicy": "Never",
        "initContainers": [
            sh("one", FOREVER, restartPolicy="Always"),
            sh("two", FOREVER, restartPolicy="Always"),
        ],
        "containers": [sh("main", "sleep 1")],
    }
    uid = create(world, "escorted-job", spec)
    world.wait_phase("escorted-job", "Succeeded")
    assert deaths(world, uid, before, time.time()) == ["main", "two", "one"]


@on_docker
def test_a_pre_stop_that_never_ends_is_cut_short_and_told(lasting_world: World) -> None:
    world = lasting_world
    hook = {"preStop": {"exec": {"command": ["sleep", "1000"]}}}
    uid = create(
        world,
        "clinging",
        {"terminationGracePeriodSeconds": 3, "containers": [sh("main", FOREVER, lifecycle=hook)]},
    )
    world.wait_ready("clinging")
    begin = time.monotonic()
    world.delete_pod("clinging")
    world.wait_gone("clinging")
    assert 3 <= time.monotonic() - begin < 15
    wait_for(lambda: "FailedPreStopHook" in reasons(world, uid), "an event says so")


@on_docker
def test_an_init_container_that_loops_holds_up_nobody_else(lasting_world: World) -> None:
    world = lasting_world
    loop = sh("setup", "while :; do sleep 1; done")
    main = [sh("main", FOREVER)]
    create(
        world,
        "endless",
        {"activeDeadlineSeconds": 12, "initContainers": [loop], "containers": main},
    )
    create(
        world,
        "crashing",
        {"initContainers": [sh("setup", "exit 4")], "containers": main},
    )
    create(world, "other", {"containers": main})
    world.wait_ready("other", timeout=12)
    pod = world.pod("endless")
    assert pod is not None and phase(pod) == "Pending"
    assert condition(pod, "Initialized") == "False"
    assert status_of(pod, "main")["state"]["waiting"]["reason"] == "PodInitializing"
    crashed = wait_for_state(world, "crashing", "setup", "waiting", reason="CrashLoopBackOff")
    assert crashed["lastState"]["terminated"]["exitCode"] == 4
    assert phase(world.pod("crashing")) == "Pending"
    pod = world.wait_phase("endless", "Failed", timeout=40)
    assert pod["status"]["reason"] == "DeadlineExceeded"


@on_docker
def test_a_deadline_that_is_lowered_while_the_pod_runs_holds(lasting_world: World) -> None:
    world = lasting_world
    spec = {"activeDeadlineSeconds": 3600, "containers": [sh("main", FOREVER)]}
    create(world, "late", spec)
    world.wait_ready("late")
    status, answer = world.cluster.api(
        "PATCH",
        world.pods_path("late"),
        {"spec": {"activeDeadlineSeconds": 1}},
        content_type="application/merge-patch+json",
    )
    assert status == 200, answer
    pod = world.wait_phase("late", "Failed", timeout=20)
    assert pod["status"]["reason"] == "DeadlineExceeded"


@on_docker
def test_a_probe_that_hangs_fails_in_time_and_leaves_few_processes(lasting_world: World) -> None:
    world = lasting_world
    assert isinstance(world.backend, DockerBackend)
    hanging = {"exec": {"command": ["sleep", "999"]}, "periodSeconds": 1, "timeoutSeconds": 1}
    uid = create(
        world, "stuck", {"containers": [sh("main", FOREVER, readinessProbe=hanging)]}
    )
    create(world, "lively", {"containers": [sh("main", FOREVER)]})
    world.wait_ready("lively")
    told = "earlier runs of the command have not ended yet"

    def says_so() -> bool:
        return any(told in event["message"] for event in world.events(uid))

    wait_for(says_so, "an event tells of the runs that were left", timeout=30)
    top = world.backend.engine.docker("top", container_ids(world, uid)["main"])
    assert top.count("sleep 999") == 5
    pod = world.pod("stuck")
    assert pod is not None and phase(pod) == "Running" and condition(pod, "Ready") == "False"
    assert not status_of(pod, "main")["ready"]


def import_etcd(backend: DockerBackend) -> str:
    """An image of etcd alone, which answers gRPC health checks; its name."""
    name = "etcd:test"
    if name in backend.engine.images():
        return name
    program = binaries.binary("controlplane", "etcd").read_bytes()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("etcd")
        entry.size, entry.mode = len(program), 0o755
        tar.addfile(entry, io.BytesIO(program))
    backend.engine.docker("import", "-", name, input=buffer.getvalue())
    return name


@on_docker
def test_grpc_probes_ask_a_real_health_service(lasting_world: World) -> None:
    world = lasting_world
    assert isinstance(world.backend, DockerBackend)
    # Each run of a probe is a process that the engine starts.
    fast = {"periodSeconds": 3, "timeoutSeconds": 10, "failureThreshold": 30}
    server = {
        "name": "server",
        "image": import_etcd(world.backend),
        "command": ["/etcd", "--data-dir=/data", "--unsafe-no-fsync"],
        "startupProbe": {"grpc": {"port": 2379}, **fast},
        "readinessProbe": {"grpc": {"port": 2379}, **fast},
        "livenessProbe": {"grpc": {"port": 2379}, **fast},
    }
    containers = [
        server,
        # They share the pod's network, so that each can ask of the other's port.
        sh("unknown", FOREVER, readinessProbe={"grpc": {"port": 2379, "service": "no"}, **fast}),
        sh("closed", FOREVER, readinessProbe={"grpc": {"port": 2377}, **fast}),
    ]
    uid = create(world, "health", {"containers": containers})
    pod = world.wait_pod(
        "health",
        lambda p: phase(p) == "Running" and bool(p) and status_of(p, "server")["ready"],
        "Running, with the server ready",
    )
    assert status_of(pod, "server")["started"]
    wait_for(
        lambda: sum("gRPC" in event["message"] for event in world.events(uid)) > 0,
        "an event tells what the service said",
    )
    pod = world.pod("health")
    assert pod is not None
    assert not status_of(pod, "unknown")["ready"] and not status_of(pod, "closed")["ready"]
    assert status_of(pod, "server")["restartCount"] == 0


def test_a_pod_above_its_limits_on_disk_space_is_evicted(make_world: Worlds) -> None:
    world = make_world.bare("docker")
    assert isinstance(world.backend, DockerBackend)
    world.backend.settings["diskUsageEvery"] = "1s"
    start(world)

    def fill(name: str, path: str, size: int, **more: Any) -> str:
        script = f"dd if=/dev/zero of={path} bs=1024 count={size}; {FOREVER}"
        volumes = [{"name": "work", "emptyDir": {"sizeLimit": "1Mi"}}]
        return create(
            world, name, {"volumes": volumes, "containers": [sh("main", script, **WORK, **more)]}
        )

    limits = {"limits": {"ephemeral-storage": "2Mi"}}
    evicted = {
        fill("large-volume", "/work/f", 3000): (
            'Usage of EmptyDir volume "work" exceeds the limit "1Mi".'
        ),
        fill("large-container", "/f", 3000, resources=limits): (
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi."
        ),
    }
    fill("modest", "/work/f", 500, resources=limits)
    world.wait_ready("modest")
    for name, (uid, message) in zip(
        ("large-volume", "large-container"), evicted.items(), strict=True
    ):
        pod = world.wait_phase(name, "Failed")
        assert (pod["status"]["reason"], pod["status"]["message"]) == ("Evicted", message)
        assert condition(pod, "DisruptionTarget") == ""
        assert "Evicted" in reasons(world, uid)
    assert is_ready(world.pod("modest"))


def test_a_part_of_a_shared_volume_is_refused_by_an_old_engine(make_world: Worlds) -> None:
    world = make_world("docker")
    assert isinstance(world.backend, DockerBackend)
    version = world.backend.engine.api("GET", "/version")[1]["ApiVersion"]
    mount = {"name": "work", "mountPath": "/data", "subPath": "a/b"}
    main = sh("main", f"echo here >/data/f; {FOREVER}", volumeMounts=[mount])
    uid = create(world, "partial", {**VOLUMES, "containers": [main]})
    if tuple(map(int, version.split("."))) >= (1, 45):
        world.wait_ready("partial")
        engine = world.backend.engine
        assert engine.docker("exec", container_ids(world, uid)["main"], "cat", "/data/f") == "here"
        return
    wait_for(lambda: world.events(uid), "an event says so")
    assert world.events(uid)[0]["reason"] == "UnsupportedPodSpec"
    message = world.events(uid)[0]["message"]
    assert "spec.containers[0].volumeMounts[0].subPath" in message and "1.45" in message
    assert world.tags() == []
