"""What the daemon and the commands say of where pods go and why."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

from test.cluster import wait_for

from .conftest import Worlds
from .daemon import BINARY
from .test_money import GPU, OFFERS, offer
from .world import World

WHY = "state.spillway.dev/why"


def spillway(world: World, *words: str) -> tuple[int, str, str]:
    command = [BINARY, *words, "--config", world.daemon.config_file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def why(world: World, pod: str, *words: str) -> Any:
    # As a user: the daemon itself may not read events.
    access = ["-n", world.namespace, "--kubeconfig", str(world.cluster.kubeconfig)]
    code, out, err = spillway(world, "why", pod, *access, "-o", "json", *words)
    assert code == 0, err
    return json.loads(out)


def test_why_stands_on_the_pod_in_an_event_and_in_a_command(make_world: Worlds) -> None:
    world = make_world("fake", cloud={"offers": OFFERS})
    uid = world.create_pod("gpu", container=GPU)
    pod = world.wait_ready("gpu")
    line = pod["metadata"]["annotations"][WHY]
    assert line.startswith("offer l4-cheap of provider fake at $0.70/h: expected cost $")
    assert "; next: fake/l4-dear lost by price, fake/h100 lost by price" in line
    wait_for(lambda: world.events(uid), "an event says so")
    assert [(e["reason"], e["message"]) for e in world.events(uid)] == [("Placed", line)]

    status, text = world.daemon.admin(f"/debug/placement/{uid}")
    assert status == 200
    placement = json.loads(text)
    assert placement["decided"]["best"]["offer"] == "l4-cheap"
    assert [n["offer"] for n in placement["decided"]["next"]] == ["l4-dear", "h100"]
    assert placement["now"]["rejected"] == {"gpu_count": 2}
    assert world.daemon.admin("/debug/placement/nobody")[0] == 404

    report = why(world, "gpu")
    assert (report["stage"], report["why"]) == ("running", line)
    assert report["daemon"]["decided"]["best"]["offer"] == "l4-cheap"
    assert "Placed" in [e["reason"] for e in report["events"]]
    world.daemon.kill9()
    report = why(world, "gpu")
    assert (report["stage"], report["why"], report["daemon"]) == ("running", line, None)
    assert report["placement"]["offer"] == "l4-cheap"
    world.daemon.restart()


def test_a_pod_that_waits_is_told_for_what_and_what_would_change_it(make_world: Worlds) -> None:
    world = make_world("fake", cloud={"offers": OFFERS})
    world.create_pod("gpu", container=GPU, annotations={"spillway.dev/max-price": "0.50"})
    world.wait_pod("gpu", lambda p: p["status"].get("containerStatuses"), "explained")
    report = why(world, "gpu")
    assert report["stage"] == "waiting"
    assert report["waitsFor"] == (
        "NoCapacity: 0 of 5 offers fit: 3 over the pod's maximum of $0.50, 2 too few GPUs"
    )
    changes = [c["text"] for c in report["daemon"]["now"]["changes"]]
    assert "max-price 0.50 -> 0.70 admits offer l4-cheap of provider fake at $0.70/h" in changes


MANIFEST = """
kind: Pod
apiVersion: v1
metadata: {name: p, annotations: {spillway.dev/max-price: "%s"}}
spec: {containers: [{name: c, image: app:1, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""


def test_explain_and_offers_ask_what_is_sold(make_world: Worlds, tmp_path: pathlib.Path) -> None:
    world = make_world("fake", cloud={"offers": [*OFFERS, offer("free", 0.0)]})
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(MANIFEST % "1.00")
    code, out, err = spillway(world, "explain", "-f", str(manifest))
    assert code == 0, err
    assert "buys now: offer l4-cheap of provider fake at $0.70/h" in out
    manifest.write_text(MANIFEST % "0.10")
    code, out, err = spillway(world, "explain", "-f", str(manifest))
    assert code == 3, out + err
    assert "would change it: max-price 0.10 -> 0.70 admits offer l4-cheap" in out
    assert spillway(world, "explain", "--offline", "-f", str(manifest))[0] == 0

    code, out, err = spillway(world, "offers", "--gpu", "l4", "-o", "json")
    assert code == 0, err
    report = json.loads(out)
    assert [o["offer"] for o in report["offers"]] == ["l4-cheap", "l4-dear"]
    assert report["flawed"] == 1
    code, out, err = spillway(world, "offers")
    assert code == 0, err
    assert out.splitlines()[1].split()[:2] == ["fake", "cpu-cheap"]


def test_decisions_are_recorded_and_made_again(make_world: Worlds, tmp_path: pathlib.Path) -> None:
    log = tmp_path / "decisions"
    world = make_world("fake", cloud={"offers": OFFERS}, daemon={"arguments": ["--decision-log", str(log)]})
    world.backend.cloud.fault("error", call="create", kind="no_capacity", times=3)
    names = [f"p{i}" for i in range(20)]
    for name in names:
        world.create_pod(name, container=GPU)
    world.wait_ready(*names, timeout=60)
    code, _ = world.daemon.sigterm()
    assert code == 0
    done = subprocess.run(
        [BINARY, "replay-decisions", str(log), "-o", "json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["decisions"] >= 40
    lines = log.read_text().splitlines()
    changed = next(i for i, line in enumerate(lines) if '"t":"decided"' in line)
    lines[changed] = lines[changed].replace('"chance":0.', '"chance":0.1', 1)
    log.write_text("\n".join(lines) + "\n")
    done = subprocess.run([BINARY, "replay-decisions", str(log)], capture_output=True, text=True)
    assert done.returncode == 1
    assert f":{changed + 1}: decided then: " in done.stderr
