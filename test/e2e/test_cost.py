"""What was spent: the ledger against the cloud's invoice, over restarts and after the pods are gone."""

from __future__ import annotations

import subprocess
import time
from typing import Any

from test.cluster import wait_for

from .conftest import Worlds
from .daemon import BINARY
from .test_commands import spillway
from .test_money import offer
from .world import World, container_state

CENT = 10_000  # micro-dollars

MAPS = "/api/v1/namespaces/spillway-system/configmaps"


def invoice(world: World) -> int:
    return sum(line["amountMicros"] for line in world.backend.cloud.invoice())


def cost(world: World, *words: str) -> dict[str, Any]:
    code, report = spillway(world, "cost", *words)
    assert code == 0, report
    return report


def is_written(world: World, running: int) -> bool:
    total = cost(world)["total"]
    return total["running"] == running


def test_cost_is_the_invoice_over_restarts_and_after_the_pods(make_world: Worlds) -> None:
    # A second of a minute's grain costs as much as the minute: what is rounded shows.
    grain = {"billing": {"grain": "60s", "minimum": "2m"}}
    offers = [offer("cpu", 0.9, **grain), offer("l4", 1.2, gpuModel="L4", gpuCount=1, **grain)]
    world = make_world("fake", cloud={"offers": offers}, installation="cost-a")
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    names = [f"p{i}" for i in range(6)]
    for i, name in enumerate(names):
        world.create_pod(name, container=gpu if i % 2 else {})
    world.wait_ready(*names)
    world.delete_pod(names[0])
    world.wait_gone(names[0])
    # Its closing entry stands now that its object is gone; the others are written within a second or two.
    wait_for(lambda: is_written(world, 5), "the ledger has all that runs")
    world.daemon.kill9()
    assert cost(world)["total"]["instances"] == 6
    world.daemon.restart()
    for name in names[1:]:
        world.delete_pod(name)
    world.wait_gone(*names)
    report = cost(world)
    assert report["total"]["running"] == 0
    assert report["total"]["instances"] == 6
    assert abs(report["total"]["micros"] - invoice(world)) < CENT
    assert report["total"]["micros"] >= 6 * 30_000  # two minutes each, at least
    (row,) = report["rows"]
    assert row["name"] == world.namespace
    by_pod = cost(world, "--by", "pod", "--since", "1h")
    assert {r["name"] for r in by_pod["rows"]} == {f"{world.namespace}/{n}" for n in names}
    assert sum(r["micros"] for r in by_pod["rows"]) == report["total"]["micros"]
    assert cost(world, "--by", "provider")["rows"][0]["name"] == "fake"
    # The counter is of this process alone, and knows what it has ended.
    labels = {"provider": "fake", "namespace": world.namespace}
    spent = world.daemon.metric("spillway_spend_dollars_total", **labels)
    assert 0 <= spent <= report["total"]["micros"] / 1e6


def test_what_the_sweep_ends_counts(make_world: Worlds) -> None:
    world = make_world("fake", cloud={"offers": [offer("cpu", 0.9)]}, installation="cost-b")
    world.create_pod("p")
    world.wait_ready("p")
    wait_for(lambda: is_written(world, 1), "the ledger has it")
    world.daemon.kill9()
    world.delete_pod("p", grace=0)
    world.daemon.restart()
    wait_for(lambda: not world.tags(), "the sweep ends it", timeout=60)
    wait_for(lambda: is_written(world, 0), "the ledger knows it", timeout=30)
    report = cost(world, "--by", "pod")
    assert [row["name"] for row in report["rows"]] == [f"{world.namespace}/p"]
    assert abs(report["total"]["micros"] - invoice(world)) < CENT


def test_the_day_is_remembered_over_a_restart(make_world: Worlds) -> None:
    # One pod costs $24 at once: a day is the least that is billed.
    billing = {"billing": {"minimum": "24h"}}
    spend = {"installation": {"perDay": 30}}
    world = make_world(
        "fake",
        cloud={"offers": [offer("cpu", 1, **billing)]},
        daemon={"spend": spend},
        installation="cost-c",
    )
    world.create_pod("first")
    world.wait_ready("first")
    world.delete_pod("first")
    world.wait_gone("first")
    world.daemon.kill9()
    world.daemon.restart()
    world.create_pod("second")

    def explained() -> bool:
        pod = world.pod("second")
        return pod is not None and container_state(pod)[1].get("reason") == "BudgetExceeded"

    wait_for(explained, "the pod says that the day's money is spent")
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 2, "two seconds have passed")
    assert len(world.backend.cloud.audit()["instances"]) == 1
    assert cost(world, "--since", "1d")["total"]["dollars"] == "24.00"


def test_a_pod_stays_until_its_entry_is_written(make_world: Worlds) -> None:
    world = make_world("fake", cloud={"offers": [offer("cpu", 0.9)]}, installation="cost-d")
    world.create_pod("p")
    world.wait_ready("p")
    wait_for(lambda: is_written(world, 1), "the ledger has it")
    names = [m["metadata"]["name"] for m in world.cluster.get(MAPS)["items"]]
    (name,) = [n for n in names if n.startswith("spillway-ledger-cost-d-")]
    version = world.cluster.get(f"{MAPS}/{name}")["metadata"]["resourceVersion"]
    # Somebody else writes it meanwhile: what we then write stands beside that.
    body = {"metadata": {"annotations": {"seen": "by somebody"}}}
    status, answer = world.cluster.api(
        "PATCH", f"{MAPS}/{name}", body, content_type="application/merge-patch+json"
    )
    assert status == 200, answer
    assert answer["metadata"]["resourceVersion"] != version
    world.delete_pod("p")
    world.wait_gone("p")
    rows = world.cluster.get(f"{MAPS}/{name}")["data"]["rows"].splitlines()
    assert len(rows) == 1
    assert rows[0].endswith("!")


def test_what_cannot_be_meant_is_told(make_world: Worlds) -> None:
    world = make_world("fake", installation="cost-e")
    for words in (["--since", "yesterday"], ["--by", "colour"]):
        done = subprocess.run(
            [BINARY, "cost", *words, "--config", world.daemon.config_file]
            + ["--kubeconfig", world.daemon.kubeconfig],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 2
        assert words[0] in done.stderr
    table = subprocess.run(
        [BINARY, "cost", "--config", world.daemon.config_file]
        + ["--kubeconfig", world.daemon.kubeconfig],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert table.returncode == 0, table.stderr
    assert table.stdout.split()[:5] == ["NAMESPACE", "INSTANCES", "RUNNING", "$/H", "SPENT"]
