"""What is bought, from whom, for how much, and by which of two daemons."""

from __future__ import annotations

import time

import pytest

from test.cluster import wait_for
from test.cluster.gate import after, before

from .backends import DockerBackend
from .conftest import Worlds
from .daemon import Daemon
from .kills import intent
from .world import World, is_ready, phase


def test_a_pod_costs_two_patches_and_at_most_one_event(lasting_world: World) -> None:
    world = lasting_world
    world.api.reset()
    uid = world.create_pod("p")
    world.wait_ready("p")
    # Whatever else it might want to say would have been said by now.
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 2, "two seconds have passed")
    # A boot that takes longer than a second has the instance's id written at once.
    allowed = (2,) if world.backend.kind == "fake" else (2, 3)
    assert world.writes("p") in allowed
    assert len(world.events(uid)) <= 1
    assert world.api.count(verb="create", resource="events") <= 1
    assert world.api.count(verb="patch", resource="pods") == 0


def offer(name: str, price: float, **more: object) -> dict[str, object]:
    return {
        "id": name,
        "region": "eu",
        "cpu": 32,
        "memory": "128Gi",
        "pricePerHour": price,
        **more,
    }


OFFERS = [
    offer("cpu-dear", 0.9),
    offer("cpu-cheap", 0.2),
    offer("l4-dear", 1.5, gpuModel="L4", gpuCount=1),
    offer("l4-cheap", 0.7, gpuModel="L4", gpuCount=1),
    offer("h100", 2.5, gpuModel="H100", gpuCount=1),
]

GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


def test_the_cheapest_offer_that_fits_is_bought(make_world: Worlds) -> None:
    world = make_world("fake", cloud={"offers": OFFERS})
    world.create_pod("plain")
    world.create_pod("gpu", container=GPU)
    world.wait_ready("plain", "gpu")
    assert world.state_of("plain")["offer"] == "cpu-cheap"
    state = world.state_of("gpu")
    assert (state["offer"], state["gpus"], state["pricePerHourMicros"]) == ("l4-cheap", 1, 700_000)
    lines = {line["tag"]: line for line in world.backend.cloud.invoice()}
    assert lines[state["tag"]]["pricePerHourMicros"] == 700_000
    assert len(lines) == 2


def test_a_price_above_the_cap_is_never_paid(make_world: Worlds) -> None:
    cap = {"maxPricePerHour": 0.5}
    world = make_world("fake", cloud={"offers": OFFERS}, profile=cap)
    uid = world.create_pod("gpu", container=GPU)
    world.create_pod("plain")
    world.wait_ready("plain")
    pod = world.wait_pod("gpu", lambda p: p["status"].get("containerStatuses"), "explained")
    assert phase(pod) == "Pending"
    wait_for(lambda: world.events(uid), "an event says why")
    text = " ".join(event["message"] for event in world.events(uid))
    assert "0.5" in text
    assert len(world.backend.cloud.audit()["instances"]) == 1


def test_an_instance_that_costs_more_than_was_offered_is_given_back(make_world: Worlds) -> None:
    cap = {"maxPricePerHour": 0.95}
    world = make_world("fake", cloud={"offers": OFFERS}, profile=cap)
    cloud = world.backend.cloud
    cloud.fault("overcharge", call="create", percent=1000, times=1)
    uid = world.create_pod("plain")
    world.wait_ready("plain", timeout=60)
    audit = cloud.audit()["instances"]
    assert [i["offer"] for i in audit] == ["cpu-cheap", "cpu-dear"]
    assert audit[0]["endedBy"] == "terminate"
    assert world.state_of("plain")["attempt"] == 2
    world.assert_one_instance_each(uid)


def test_the_next_offer_is_tried_if_an_instance_does_not_start(make_world: Worlds) -> None:
    options = {"placement": {"maxStartAttempts": 2}}
    world = make_world("fake", cloud={"offers": OFFERS}, daemon=options)
    broken = {"fake.spillway.dev/fail-boot": "the host died"}
    uid = world.create_pod("unlucky", annotations=broken)
    pod = world.wait_phase("unlucky", "Failed")
    assert pod["status"]["reason"] == "StartFailed"
    assert "the host died" in pod["status"]["message"]
    audit = world.backend.cloud.audit()["instances"]
    assert [i["offer"] for i in audit] == ["cpu-cheap", "cpu-dear"]
    assert all(i["gone"] for i in audit)
    # Events give way to statuses, so they come a little later.
    wait_for(lambda: world.events(uid), "an event says so")
    assert {e["reason"] for e in world.events(uid)} == {"Placed", "StartFailed"}


# Two daemons


def second_daemon(world: World) -> Daemon:
    return world.add_daemon("second")


def test_of_two_daemons_one_waits_and_takes_over(make_world: Worlds) -> None:
    world = make_world("fake")
    uids = [world.create_pod("a")]
    world.wait_ready("a")
    second = second_daemon(world).start()
    wait_for(lambda: "lease" in second.admin("/readyz")[1], "the second one waits for the lease")
    assert second.admin("/readyz")[0] == 503
    assert second.admin("/healthz")[0] == 200
    uids.append(world.create_pod("b"))
    world.wait_ready("b")
    assert second.metric("spillway_instances") == 0
    code, _ = world.daemon.sigterm()
    assert code == 0
    # The lease was released: no need to wait until it runs out.
    second.wait_ready(10)
    uids.append(world.create_pod("c"))
    world.wait_ready("a", "b", "c")
    world.assert_one_instance_each(*uids)
    world.assert_made_once(uids)


@pytest.mark.parametrize("when", ["before_create_is_sent", "while_create_is_answered"])
def test_a_daemon_paused_past_its_lease_buys_nothing_when_it_wakes(
    make_world: Worlds, when: str
) -> None:
    world = make_world("fake")
    first = world.daemon
    cloud = world.backend.cloud
    kept = world.create_pod("kept")
    world.wait_ready("kept")
    if when == "before_create_is_sent":
        # It is stopped before the answer to its intent arrives, so that it wakes with it.
        gate, match = intent(world, "torn")
        rule = gate.on(match, after(lambda _: first.sigstop()))
    else:
        create = world.backend.step("create")
        rule = world.backend.gate.on(create, before(lambda _: first.sigstop()))
    torn = world.create_pod("torn")
    rule.wait()
    bought = 1 if when == "before_create_is_sent" else 2
    # The gate passes the request on after the daemon was stopped.
    wait_for(lambda: len(world.tags()) == bought, f"the cloud has {bought} instances")
    begin = time.monotonic()
    second = second_daemon(world).start()
    second.wait_ready(75)
    print(f"the second daemon took over after {time.monotonic() - begin:.1f} s")
    world.wait_ready("torn", "kept", timeout=60)
    late = world.create_pod("late")
    world.wait_ready("late")
    calls = cloud.audit()["creates"]
    first.sigcont()
    wait_for(lambda: "lease" in first.admin("/readyz")[1], "the first one stands by", timeout=20)
    more = world.create_pod("more")
    world.wait_ready("more")
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 3, "three seconds have passed")
    uids = [kept, torn, late, more]
    world.assert_one_instance_each(*uids)
    world.assert_made_once(uids)
    now = cloud.audit()["creates"]
    assert {tag: now[tag] for tag in calls} == calls, "it asked for an instance when it woke"
    assert all(is_ready(world.pod(name)) for name in ("kept", "torn", "late", "more"))
    code, _ = second.sigterm()
    assert code == 0
    first.wait_ready(10)
    world.delete_pod("torn")
    world.wait_gone("torn")


# GPUs of a docker host

FOUR_L4 = {
    "gpuModel": "L4",
    "gpuCount": 4,
    "pricePerGpuHour": 0.5,
    "gpuRequest": "environment",
    "maxInstances": 110,
}


def indices(backend: DockerBackend, uid: str) -> list[str]:
    env = dict(e.split("=", 1) for e in backend.container_of(uid)["Config"]["Env"])
    return env["NVIDIA_VISIBLE_DEVICES"].split(",")


def test_fifty_pods_and_two_restarts_never_share_a_gpu(make_world: Worlds) -> None:
    world = make_world("docker", host=FOUR_L4)
    backend = world.backend
    names = [f"g{i}" for i in range(50)]
    uids = {name: world.create_pod(name, container=GPU) for name in names[:25]}
    world.daemon.kill9()
    uids |= {name: world.create_pod(name, container=GPU) for name in names[25:]}
    world.daemon.restart()

    def running() -> list[str]:
        return [pod["metadata"]["name"] for pod in world.pods() if is_ready(pod)]

    wait_for(lambda: len(running()) == 4, "four run", timeout=60, interval=0.25)
    world.daemon.kill9()
    world.daemon.restart()
    wait_for(lambda: len(running()) == 4, "four run after the restart", timeout=60, interval=0.25)
    first = running()
    taken = [index for name in first for index in indices(backend, uids[name])]
    assert sorted(taken) == ["0", "1", "2", "3"]
    assert len(backend.containers("sandbox")) == 4
    # As one goes another comes, and gets the index that became free.
    world.delete_pod(first[0])
    wait_for(
        lambda: len(set(running()) - set(first)) == 1 and len(running()) == 4,
        "the next one runs",
        timeout=60,
        interval=0.25,
    )
    taken = [index for name in running() for index in indices(backend, uids[name])]
    assert sorted(taken) == ["0", "1", "2", "3"]


def test_a_gpu_is_asked_for_as_docker_wants_it(make_world: Worlds) -> None:
    host = {key: value for key, value in FOUR_L4.items() if key != "gpuRequest"}
    world = make_world("docker", host=host)
    gate, step = world.backend.gate, world.backend.step
    sandbox = gate.on(step("create"), after(lambda _: None))
    container = gate.on(step("create container"), after(lambda _: None))
    resources = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
    world.create_pod("gpu", container=resources, restartPolicy="Never")
    # The engine here has no GPU to give: what counts is what it was asked for.
    assert sandbox.wait().request.json()["Labels"]["spillway.dev/gpus"] == "0,1"
    asked = container.wait()
    assert asked.response.status == 201
    (request,) = asked.request.json()["HostConfig"]["DeviceRequests"]
    assert request["Driver"] in ("", "nvidia")
    assert sorted(request["DeviceIDs"]) == ["0", "1"]
    assert request["Capabilities"] == [["gpu"]]
