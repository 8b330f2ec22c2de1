"""The commands for people, beside a daemon at work and without one."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from test.cluster import wait_for

from .conftest import Worlds
from .daemon import BINARY
from .world import World


def spillway(world: World, *words: str) -> tuple[int, Any]:
    """Runs a command with the daemon's configuration and rights; its code and decoded output."""
    daemon = world.daemon
    command = [BINARY, *words, "--config", daemon.config_file, "--kubeconfig", daemon.kubeconfig]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, timeout=60)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.returncode, done.stderr


def test_status_shows_nodes_and_pods_with_and_without_a_daemon(make_world: Worlds) -> None:
    world = make_world("fake")
    world.create_pod("p")
    world.wait_ready("p")
    world.daemon.kill9()
    code, report = spillway(world, "status")
    assert code == 0, report
    text = json.dumps(report)
    assert world.node in text
    assert '"running"' in text
    table = subprocess.run(
        [BINARY, "status", "--config", world.daemon.config_file]
        + ["--kubeconfig", world.daemon.kubeconfig],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert table.returncode == 0
    assert world.node in table.stdout
    assert "fake" in table.stdout


def test_sweep_ends_only_what_no_pod_owns(make_world: Worlds) -> None:
    world = make_world("fake")
    cloud = world.backend.cloud
    uid = world.create_pod("p")
    world.wait_ready("p")
    world.daemon.kill9()
    ours = world.tags()[0]
    orphan = cloud.add_foreign(f"{'-'.join(ours.split('-')[:2])}-{'a' * 26}-1")
    stranger = cloud.add_foreign("somebody-else")

    def ended(instance: str) -> bool:
        found = next(i for i in cloud.audit()["instances"] if i["id"] == instance)
        return found["gone"] is not None

    code, report = spillway(world, "sweep", "--dry-run")
    assert code == 0, report
    assert [o["instance"] for o in report["orphans"]] == [orphan]
    assert not ended(orphan)
    code, report = spillway(world, "sweep")
    assert code == 0, report
    assert [(o["instance"], o["outcome"]) for o in report["orphans"]] == [(orphan, "gone")]
    assert ended(orphan)
    assert not ended(stranger)
    world.assert_one_instance_each(uid)


def test_sweep_ends_nothing_if_it_cannot_see_everything(make_world: Worlds) -> None:
    world = make_world("fake")
    cloud = world.backend.cloud
    world.create_pod("p")
    world.wait_ready("p")
    world.daemon.kill9()
    cloud.fault("partial_list", call="list_owned")
    code, report = spillway(world, "sweep")
    assert code == 3, report
    cloud.clear_faults()
    assert len(world.tags()) == 1


def test_version_names_itself() -> None:
    done = subprocess.run([BINARY, "version", "-o", "json"], capture_output=True, text=True)
    assert done.returncode == 0
    assert json.loads(done.stdout)["version"]


def test_the_socket_of_a_fake_cloud_outlives_daemons(make_world: Worlds) -> None:
    world = make_world("fake")
    uid = world.create_pod("p")
    world.wait_ready("p")
    first = world.backend.cloud.instances()[0]["id"]
    code, _ = world.daemon.sigterm()
    assert code == 0
    world.daemon.restart()
    wait_for(lambda: world.daemon.metric("spillway_instances") == 1, "it is seen again")
    assert world.backend.cloud.instances()[0]["id"] == first
    world.assert_made_once([uid])
