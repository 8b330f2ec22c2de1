"""What users see of pods: Deployments, Jobs, restarts, missing images, ends of all kinds."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest

from test.cluster import wait_for

from .backends import IMAGE, Workload
from .conftest import Worlds
from .world import World, condition, container_state, is_ready, phase


def when(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


def deployment(world: World, name: str, replicas: int) -> dict[str, Any]:
    work = world.backend.workload()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": work.annotations},
                "spec": world.pod_spec(work, scheduled=True),
            },
        },
    }


def apply_deployment(world: World, body: dict[str, Any]) -> None:
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments"
    status, answer = world.cluster.api("POST", path, body)
    assert status == 201, answer


def scale(world: World, name: str, replicas: int) -> None:
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments/{name}"
    patch = f'{{"spec":{{"replicas":{replicas}}}}}'.encode()
    kind = "application/merge-patch+json"
    assert world.cluster.api("PATCH", path, patch, content_type=kind)[0] == 200


def wait_replicas(world: World, name: str, number: int) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]] | bool:
        pods = world.pods(f"app={name}")
        good = len(pods) == number and all(is_ready(pod) for pod in pods)
        return (pods or True) if good else False

    found = wait_for(look, f"{number} replicas run, no more exist", timeout=40, interval=0.1)
    return [] if found is True else found


def test_a_deployment_scales_up_and_down_through_the_real_scheduler(lasting_world: World) -> None:
    world = lasting_world
    apply_deployment(world, deployment(world, "web", 2))
    pods = wait_replicas(world, "web", 2)
    assert all(pod["spec"]["nodeName"] == world.node for pod in pods)
    world.assert_one_instance_each(*(pod["metadata"]["uid"] for pod in pods))
    scale(world, "web", 4)
    world.assert_made_once(pod["metadata"]["uid"] for pod in wait_replicas(world, "web", 4))
    assert len(world.tags()) == 4
    scale(world, "web", 1)
    left = wait_replicas(world, "web", 1)
    wait_for(lambda: len(world.tags()) == 1, "three instances are gone")
    world.assert_one_instance_each(left[0]["metadata"]["uid"])
    path = f"/apis/apps/v1/namespaces/{world.namespace}/deployments/web"
    wait_for(
        lambda: world.cluster.get(path)["status"].get("availableReplicas") == 1, "it is available"
    )


def test_a_running_pod_shows_what_a_kubelet_shows(lasting_world: World) -> None:
    world = lasting_world
    before = time.time()
    uid = world.create_pod("shown")
    status = world.wait_ready("shown")["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodScheduled": "True",
        "Initialized": "True",
        "PodReadyToStartContainers": "True",
        "ContainersReady": "True",
        "Ready": "True",
    }
    assert all(abs(when(c["lastTransitionTime"]) - before) < 60 for c in status["conditions"])
    assert status["hostIP"] == "127.0.0.1"
    assert status["hostIPs"] == [{"ip": "127.0.0.1"}]
    # The address of a rented container is not routable from the home cluster.
    assert "podIP" not in status
    assert before - 2 <= when(status["startTime"]) <= time.time() + 1
    (container,) = status["containerStatuses"]
    assert container["name"] == "main"
    assert container["image"] == IMAGE
    assert container["ready"] and container["started"]
    assert container["restartCount"] == 0
    started = when(container["state"]["running"]["startedAt"])
    assert before - 2 <= started <= time.time() + 1
    scheme, _, rest = container["containerID"].partition("://")
    assert (scheme, bool(rest)) == (world.backend.kind, True)
    if world.backend.kind == "docker":
        inspected = world.backend.container_of(uid)
        assert rest == inspected["Id"]
        assert container["imageID"].endswith(inspected["Image"])
        assert int(when(inspected["State"]["StartedAt"][:19] + "+00:00")) == int(started)


@pytest.mark.parametrize("code", [0, 3])
def test_a_job_ends_as_its_container_does(lasting_world: World, code: int) -> None:
    world = lasting_world
    work = world.backend.workload(run_for=1, exit_code=code)
    body = {
        "metadata": {"name": "job"},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": work.annotations},
                "spec": world.pod_spec(work, scheduled=True, restartPolicy="Never"),
            },
        },
    }
    path = f"/apis/batch/v1/namespaces/{world.namespace}/jobs"
    assert world.cluster.api("POST", path, body)[0] == 201
    wanted = "Complete" if code == 0 else "Failed"
    wait_for(
        lambda: condition(world.cluster.get(f"{path}/job"), wanted) == "True",
        f"the Job is {wanted}",
        timeout=40,
    )
    (pod,) = world.pods("job-name=job")
    assert phase(pod) == ("Succeeded" if code == 0 else "Failed")
    kind, ended = container_state(pod)
    assert (kind, ended["exitCode"]) == ("terminated", code)
    assert ended["reason"] == ("Completed" if code == 0 else "Error")
    assert 0 <= when(ended["finishedAt"]) - when(ended["startedAt"]) <= 10
    assert condition(pod, "Ready") == "False"
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_crashing_container_is_restarted_with_back_off(lasting_world: World) -> None:
    world = lasting_world
    uid = world.create_pod("crasher", world.backend.workload(run_for=0.5, exit_code=7))

    def waits(pod: dict[str, Any]) -> bool:
        return container_state(pod)[1].get("reason") == "CrashLoopBackOff"

    pod = world.wait_pod("crasher", waits, "in CrashLoopBackOff")
    assert phase(pod) == "Running"
    assert condition(pod, "Ready") == "False"
    (container,) = pod["status"]["containerStatuses"]
    assert container["restartCount"] == 0
    first = container["lastState"]["terminated"]
    assert first["exitCode"] == 7
    assert not container["ready"]
    pod = world.wait_pod(
        "crasher",
        lambda p: p["status"]["containerStatuses"][0]["restartCount"] == 1 and waits(p),
        "back in CrashLoopBackOff after one restart",
    )
    second = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert second["exitCode"] == 7
    # Whole seconds, of which each may have been rounded.
    assert when(second["startedAt"]) - when(first["finishedAt"]) >= 9
    world.assert_made_once([uid])
    wait_for(
        lambda: any(event["reason"] == "BackOff" for event in world.events(uid)),
        "an event says that it backs off",
    )
    if world.backend.kind == "docker":
        policy = world.backend.container_of(uid)["HostConfig"]["RestartPolicy"]["Name"]
        assert policy in ("", "no")


def test_a_missing_image_is_shown_and_costs_nothing_meanwhile(lasting_world: World) -> None:
    world = lasting_world
    uid = world.create_pod("absent", world.backend.missing_image())
    seen: set[str] = set()

    def shown(pod: dict[str, Any]) -> bool:
        seen.add(container_state(pod)[1].get("reason", ""))
        return "ImagePullBackOff" in seen

    pod = world.wait_pod("absent", shown, "in ImagePullBackOff", timeout=60)
    assert phase(pod) == "Pending"
    world.wait_clean()
    assert condition(pod, "Ready") == "False"
    wait_for(
        lambda: any(
            e["type"] == "Warning" and "image" in e["message"].lower() for e in world.events(uid)
        ),
        "an event says so",
    )


def test_a_bad_command_fails_like_on_a_kubelet(lasting_world: World) -> None:
    world = lasting_world
    world.create_pod("bad", world.backend.bad_command(), restartPolicy="Never")
    pod = world.wait_phase("bad", "Failed")
    kind, ended = container_state(pod)
    assert kind == "terminated"
    assert ended["exitCode"] in (127, 128)
    assert "no-such-program" in ended["message"]


def test_an_instance_that_vanishes_fails_its_pod_and_is_replaced(lasting_world: World) -> None:
    world = lasting_world
    apply_deployment(world, deployment(world, "web", 1))
    (pod,) = wait_replicas(world, "web", 1)
    uid = pod["metadata"]["uid"]
    world.backend.remove(world.tags()[0])

    def replaced() -> Any:
        others = [p for p in world.pods("app=web") if p["metadata"]["uid"] != uid]
        return next((p for p in others if is_ready(p)), None)

    new = wait_for(replaced, "the ReplicaSet's new pod runs", timeout=60, interval=0.2)
    old = world.pod(pod["metadata"]["name"])
    assert phase(old) == "Failed"
    assert old["status"]["reason"] == "InstanceLost"
    assert "gone" in old["status"]["message"]
    assert condition(old, "DisruptionTarget") == "True"
    world.assert_one_instance_each(new["metadata"]["uid"])
    world.assert_made_once([uid, new["metadata"]["uid"]])


def test_a_graceful_end_reads_the_exit_code(lasting_world: World) -> None:
    world = lasting_world
    uid = world.create_pod("polite", terminationGracePeriodSeconds=20)
    world.wait_ready("polite")
    world.delete_pod("polite")
    begin = time.monotonic()
    world.wait_gone("polite")
    # The container ends at its SIGTERM; the grace is a limit, not a wait.
    assert time.monotonic() - begin < 15
    world.wait_clean()
    world.assert_made_once([uid])


@pytest.mark.parametrize("kind", ["docker"], indirect=True)
def test_a_container_that_ignores_sigterm_ends_with_its_grace(lasting_world: World) -> None:
    world = lasting_world
    work = Workload(container={"command": ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]})
    world.create_pod("stubborn", work, terminationGracePeriodSeconds=3)
    world.wait_ready("stubborn")
    world.delete_pod("stubborn")
    begin = time.monotonic()
    world.wait_gone("stubborn")
    assert 2 < time.monotonic() - begin < 20
    world.wait_clean()


@pytest.mark.parametrize("kind", ["docker"], indirect=True)
def test_a_container_killed_for_memory_says_so(lasting_world: World) -> None:
    world = lasting_world
    # tail holds the one endless line of /dev/zero in memory.
    container = {
        "command": ["sh", "-c", "tail /dev/zero"],
        "resources": {"limits": {"memory": "16Mi"}},
    }
    world.create_pod("hungry", container=container, restartPolicy="Never")
    pod = world.wait_phase("hungry", "Failed", timeout=60)
    kind, ended = container_state(pod)
    assert (kind, ended["reason"], ended["exitCode"]) == ("terminated", "OOMKilled", 137)


def test_force_deleted_and_made_again_under_the_same_name(lasting_world: World) -> None:
    world = lasting_world
    first = world.create_pod("phoenix")
    world.wait_ready("phoenix")
    world.delete_pod("phoenix", grace=0)
    second = world.create_pod("phoenix")
    assert first != second
    pod = world.wait_pod(
        "phoenix", lambda p: is_ready(p) and p["metadata"]["uid"] == second, "the new one"
    )
    assert pod["metadata"]["uid"] == second
    wait_for(lambda: len(world.tags()) == 1, "the old instance is gone")
    world.assert_one_instance_each(second)
    world.assert_made_once([first, second])


def test_deleted_and_made_again_while_the_daemon_is_down(lasting_world: World) -> None:
    world = lasting_world
    first = {name: world.create_pod(name) for name in ("forced", "graceful", "kept")}
    world.wait_ready(*first)
    world.daemon.kill9()
    world.delete_pod("forced", grace=0)
    world.delete_pod("graceful")
    second = world.create_pod("forced")
    assert len(world.tags()) == 3
    world.daemon.restart()
    world.wait_gone("graceful")
    world.wait_ready("forced", "kept", timeout=60)
    wait_for(lambda: len(world.tags()) == 2, "the old instances are gone", timeout=40)
    world.assert_one_instance_each(second, first["kept"])
    world.assert_made_once([*first.values(), second])


def test_public_ports_are_reached_at_the_address_on_the_pod(make_world: Worlds) -> None:
    import json
    import urllib.request

    world = make_world("docker")
    script = "echo hello from $HOSTNAME >/www/index.html; exec httpd -f -h /www -p 8080"
    world.create_pod(
        "web",
        annotations={"spillway.dev/public-ports": "8080"},
        container={"command": ["sh", "-c", script], "ports": [{"containerPort": 8080}]},
        terminationGracePeriodSeconds=0,
    )
    pod = world.wait_pod(
        "web", lambda p: "state.spillway.dev/addresses" in p["metadata"]["annotations"], "published"
    )
    addresses = json.loads(pod["metadata"]["annotations"]["state.spillway.dev/addresses"])
    assert list(addresses) == ["8080"]

    def answer() -> str:
        try:
            with urllib.request.urlopen(f"http://{addresses['8080']}/", timeout=5) as response:
                return response.read().decode()
        except OSError:
            return ""

    assert wait_for(answer, "the container answers") == "hello from web\n"
