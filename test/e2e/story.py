#!/usr/bin/env python3
"""make story: training takes the GPUs, inference moves out, and comes home again; ends with a picture.

A real control plane on this machine, with kwok's nodes as the home cluster (16 GPUs) and a fake
cloud that rents machines. A Deployment serves, a Job trains with a higher priority, and one
Spillway runs the virtual node, the capacity gate and the drainer. Nothing of it needs an account.
Ends with exit code 1 and one clear line if a step does not come true.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from test.cluster import Cluster, Gate, Keeper, wait_for
from test.cluster.cluster import REPOSITORY
from test.cluster.kwok import Kwok

from .backends import FakeBackend
from .daemon import BINARY
from .fake_cloud import FakeCloud
from .home import GATE_TAINT, MERGE, WORLD_LABEL, allow_surge
from .timeline import Mark, Sample, draw
from .world import PROVIDER_TAINT, World, condition, is_ready, start

GPU = "nvidia.com/gpu"
HOME_GPUS = 16
REPLICAS, PEAK, NIGHT = 12, 18, 4
RESERVE = 1

#: The dearest one is the last to be bought and the first to be given back.
OFFERS = [
    {"id": "l4-small", "region": "eu", "gpuModel": "L4", "gpuCount": 1, "pricePerHour": 0.5, "stock": 8},
    {"id": "l4-large", "region": "us", "gpuModel": "L4", "gpuCount": 1, "pricePerHour": 0.8, "stock": 6},
    {"id": "a10", "region": "us", "gpuModel": "A10", "gpuCount": 1, "pricePerHour": 1.1},
]


class StoryFailed(RuntimeError):
    """A step did not come true; the message says which and what was seen instead."""


class Watcher:
    """Looks at everything several times a second, and notes what must never be so."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._end = threading.Event()
        self.samples: list[Sample] = []
        self.broken: list[str] = []
        self.changes: list[float] = []  # of the gate
        self.floor = 0  # of Ready pods, as long as a step promises one
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self._look()
            except Exception as error:
                self.broken.append(f"the watcher failed: {error!r}")
                return
            self._end.wait(0.15)

    def _look(self) -> None:
        story = self._story
        pods = story.world.pods()
        is_open = story.gate_is_open()
        lines = story.cloud.invoice()
        rented = story.cloud.instances()
        at = story.elapsed()
        ours = [p for p in pods if p["metadata"].get("labels", {}).get("app") == "inference"]
        home = sum(is_ready(p) and p["spec"].get("nodeName") in story.homes for p in ours)
        away = sum(is_ready(p) and p["spec"].get("nodeName") == story.world.node for p in ours)
        living = [p for p in ours if p["status"].get("phase") not in ("Failed", "Succeeded")]
        sample = Sample(
            at=at,
            home=home,
            away=away,
            waiting=len(living) - home - away,
            free=HOME_GPUS - sum(story.gpus_at_home(p) for p in pods),
            is_open=is_open,
            burn=sum(line["pricePerHourMicros"] for line in lines if line["running"]) / 1e6,
            bill=sum(line["amountMicros"] for line in lines) / 1e6,
        )
        if self.samples and self.samples[-1].is_open != is_open:
            self.changes.append(at)
        self.samples.append(sample)
        if home + away < self.floor:
            self.broken.append(f"{at:.1f} s: {home + away} pods are Ready, {self.floor} are promised")
        # A pod that is gone has taken its instance with it; one that is there has one at most.
        tags = [i["tag"].rsplit("-", 1)[0] for i in rented]
        if len(set(tags)) != len(tags):
            self.broken.append(f"{at:.1f} s: two instances for one pod: {sorted(tags)}")
        strangers = [
            p["metadata"]["name"]
            for p in pods
            if p["spec"].get("nodeName") == story.world.node and p not in ours
        ]
        if strangers:
            self.broken.append(f"{at:.1f} s: {strangers} stand on the rented node")

    @property
    def last(self) -> Sample:
        return self.samples[-1]

    def close(self) -> None:
        self._end.set()
        self._thread.join(10)


class Story:
    """The steps, and what they share. A world with `fake` behind it must exist, without a daemon."""

    def __init__(self, world: World, *, say: Callable[[str], None] = print, pause: float = 0) -> None:
        self.world = world
        self.cluster = world.cluster
        self.cloud: FakeCloud = world.backend.cloud
        self.homes = [f"home-{world.id}-{i}" for i in (1, 2)]
        self.marks: list[Mark] = []
        self._say = say
        self._pause = pause
        self._begin = time.monotonic()
        self._kwok = Kwok(self.cluster, world.keeper)
        world.on_close.append(self._kwok.close)
        self.watcher: Watcher | None = None

    # What people read

    def elapsed(self) -> float:
        return time.monotonic() - self._begin

    def heading(self, text: str) -> None:
        self.marks.append(Mark(self.elapsed(), text))
        self._say(f"\n{len(self.marks):2}. {text:<72} {self.elapsed():5.1f} s")

    def fact(self, text: str) -> None:
        for line in text.splitlines():
            self._say(f"      {line}")
        time.sleep(self._pause)

    # What can be seen

    def gate_is_open(self) -> bool:
        return GATE_TAINT not in self.world.taints(self.world.node)

    def gpus_at_home(self, pod: dict[str, Any]) -> int:
        if pod["spec"].get("nodeName") not in self.homes:
            return 0
        if pod["status"].get("phase") in ("Failed", "Succeeded"):
            return 0
        limits = (c.get("resources", {}).get("limits", {}) for c in pod["spec"]["containers"])
        return sum(int(each.get(GPU, 0)) for each in limits)

    def until(self, what: str, holds: Callable[[Sample], Any], timeout: float = 60) -> float:
        """Waits for it; returns how long that took."""
        begin = time.monotonic()
        assert self.watcher is not None
        watcher = self.watcher

        def look() -> bool:
            self.check()
            return bool(watcher.samples and holds(watcher.last))

        try:
            wait_for(look, what, timeout=timeout, interval=0.05)
        except TimeoutError as error:
            raise StoryFailed(f"{error}; {watcher.last}; {self.last_words()}") from None
        return time.monotonic() - begin

    def check(self) -> None:
        assert self.watcher is not None
        if self.watcher.broken:
            raise StoryFailed(self.watcher.broken[0])

    def last_words(self) -> str:
        with contextlib.suppress(Exception):
            pods = self.cluster.kubectl("get", "pods", "-n", self.world.namespace, "-o", "wide")
            return f"{pods}\nthe end of the daemon's log:\n{self.world.daemon.child.log_tail(15)}"
        return ""

    def says(self, reason: str) -> str:
        """What the node's event says; events come a moment later than what they tell of."""

        def find() -> str:
            items = self.cluster.get("/api/v1/namespaces/default/events?limit=500")["items"]
            ours = (e for e in items if e["involvedObject"].get("name") == self.world.node)
            return next((e["message"] for e in ours if e["reason"] == reason), "")

        return wait_for(find, f"the event {reason}", timeout=15)

    # What users do

    def deployment(
        self, replicas: int = REPLICAS, annotations: dict[str, str] | None = None
    ) -> dict[str, Any]:
        toleration = {"key": PROVIDER_TAINT, "operator": "Exists", "effect": "NoSchedule"}
        patience = [
            {"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 3600}
            for k in ("not-ready", "unreachable")
        ]
        container = {
            "name": "server",
            "image": "inference:1",
            "ports": [{"name": "http", "containerPort": 8080}],
            "resources": {"limits": {GPU: "1", "cpu": "1", "memory": "4Gi"}},
        }
        spec = {
            "priorityClassName": "inference",
            "nodeSelector": {WORLD_LABEL: self.world.id},
            "tolerations": [toleration, *patience],
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        labels = {"app": "inference"}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "inference", "namespace": self.world.namespace},
            "spec": {
                "replicas": replicas,
                "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels, "annotations": annotations or {}},
                    "spec": spec,
                },
            },
        }

    def training(self) -> dict[str, Any]:
        container = {"name": "train", "image": "train:1", "resources": {"limits": {GPU: "8"}}}
        spec = {
            "priorityClassName": "training",
            "nodeSelector": {WORLD_LABEL: self.world.id},
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": "Never",
            "containers": [container],
        }
        # kwok would end a Job's pod at once; a training that goes on is a ReplicaSet of two.
        labels = {"app": "training"}
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "training", "namespace": self.world.namespace},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {**spec, "restartPolicy": "Always"},
                },
            },
        }

    def scale(self, replicas: int) -> None:
        path = f"/apis/apps/v1/namespaces/{self.world.namespace}/deployments/inference"
        self._merge(path, {"spec": {"replicas": replicas}})

    def _merge(self, path: str, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        status, answer = self.cluster.api("PATCH", path, data, content_type=MERGE)
        assert status == 200, answer

    # The steps

    def set_up(self) -> None:
        for name, value in (("training", 10000), ("inference", 100)):
            path = "/apis/scheduling.k8s.io/v1/priorityclasses"
            body = {"metadata": {"name": name}, "value": value}
            status, answer = self.cluster.api("POST", path, body)
            assert status in (201, 409), answer
        labels = {WORLD_LABEL: self.world.id, "example.com/home": self.world.id}
        for name in self.homes:
            self._kwok.add_node(name, gpus=HOME_GPUS // 2, labels=labels)
        self.world.profiles[0]["labels"] = {WORLD_LABEL: self.world.id}
        drain = {"mode": "surge", "interval": "1s", "minAge": "2s", "replacementTimeout": "60s"}
        gate = {
            "name": "gpu",
            "nodes": [self.world.node],
            "homeSelector": {"example.com/home": self.world.id},
            "closeAfter": "10s",
            "minOpen": "15s",
            "reserve": RESERVE,
            "drain": drain,
        }
        allow_surge(self.world)
        start(
            self.world,
            gate={"enabled": True, "gates": [gate]},
            spend={"installation": {"perHour": 40}},
        )
        self._begin = time.monotonic()
        self.watcher = Watcher(self)
        self.world.on_close.insert(0, self.watcher.close)

    def serve_at_home(self) -> None:
        self.heading(f"{REPLICAS} replicas serve at home; 16 GPUs, the gate is closed")
        pdb = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "inference", "namespace": self.world.namespace},
            "spec": {"minAvailable": REPLICAS, "selector": {"matchLabels": {"app": "inference"}}},
        }
        self.cluster.apply(self.deployment(), pdb)
        spent = self.until("12 are Ready at home", lambda s: s.home == REPLICAS)
        self.fact(f"all Ready after {spent:.1f} s, none rented")
        self.scale(REPLICAS + 2)
        self.until("14 are at home", lambda s: s.home == REPLICAS + 2)
        self.scale(REPLICAS)
        self.until("12 again", lambda s: s.home == REPLICAS and s.waiting == 0)
        self.fact("two more stay at home as well: the gate keeps them there")

    def training_takes_all(self) -> None:
        self.heading("a training of 16 GPUs arrives, with a higher priority")
        self.cluster.apply(self.training())
        spent = self.until("training has all GPUs", lambda s: s.home == 0 and s.free == 0)
        self.fact(f"{spent:.1f} s later it has them; {REPLICAS} replicas of inference wait")
        spent = self.until("the gate is open", lambda s: s.is_open, timeout=30)
        self.fact(f"the gate opens {spent:.1f} s after that: {self.says('GateOpened')}")
        spent = self.until("all run on the rented node", lambda s: s.away == REPLICAS)
        self.fact(f"{spent:.1f} s later all {REPLICAS} are Ready on rented GPUs")

    def more_traffic(self) -> None:
        self.heading(f"more traffic: {PEAK} replicas")
        self.scale(PEAK)
        self.until("18 are Ready", lambda s: s.away == PEAK)
        self._merge(
            f"/apis/policy/v1/namespaces/{self.world.namespace}/poddisruptionbudgets/inference",
            {"spec": {"minAvailable": PEAK}},
        )
        assert self.watcher is not None
        self.fact(f"{PEAK} rented for ${self.watcher.last.burn:.2f} per hour")

    def lose_one(self) -> None:
        self.heading("a rented machine disappears")
        victim = next(i for i in self.cloud.instances())
        self.cloud.kill(victim["id"])
        self.until("one is missing", lambda s: s.away == PEAK - 1)
        spent = self.until("a new one runs", lambda s: s.away == PEAK)
        failed = [p for p in self.world.pods() if p["status"].get("phase") == "Failed"]
        reasons = {(p["status"].get("reason"), condition(p, "DisruptionTarget")) for p in failed}
        if reasons != {("InstanceLost", "True")}:
            raise StoryFailed(f"the lost pod says {reasons}")
        self.fact(f"its pod is Failed (InstanceLost); another one is Ready {spent:.1f} s later")

    def cloud_away(self, seconds: float) -> None:
        self.heading(f"the cloud's API does not answer for {seconds:.0f} s")
        assert self.watcher is not None
        self.watcher.floor = PEAK
        made = len(self.cloud.audit()["instances"])
        self.cloud.fault("error", lasts=f"{int(seconds)}s")
        time.sleep(seconds)
        self.check()
        if len(self.cloud.audit()["instances"]) != made:
            raise StoryFailed("something was rented while nobody could know what runs")
        self.cloud.clear_faults()
        self.fact("no pod changes, nothing is rented: all of them go on serving")

    def broken_image(self) -> None:
        self.heading("somebody rolls out an image that does not exist, and rolls back")
        made = len(self.cloud.audit()["instances"])
        broken = {"fake.spillway.dev/image-error": "manifest unknown"}
        self.cluster.apply(self.deployment(PEAK, broken))

        def says_so() -> bool:
            waiting = [
                status.get("state", {}).get("waiting", {}).get("reason")
                for pod in self.world.pods("app%3Dinference")
                for status in pod["status"].get("containerStatuses") or []
            ]
            return "ImagePullBackOff" in waiting or "ErrImagePull" in waiting

        wait_for(says_so, "a pod says that its image cannot be pulled", timeout=60)
        self.cluster.apply(self.deployment(PEAK))
        self.until("18 are Ready", lambda s: s.away == PEAK and s.waiting == 0, timeout=90)
        tried = len(self.cloud.audit()["instances"]) - made
        self.fact(f"the old replicas never stopped; {tried} machines were rented in vain, and given back")

    def training_ends(self) -> None:
        self.heading("the training ends: 16 GPUs are free")
        path = f"/apis/apps/v1/namespaces/{self.world.namespace}/replicasets/training"
        self.cluster.api("DELETE", path)
        spent = self.until("the gate is closed", lambda s: not s.is_open, timeout=90)
        self.fact(f"the gate closes after {spent:.0f} s: {self.says('GateClosed')}")

    def come_home(self) -> None:
        self.heading(f"the replicas come home; {PEAK} of {PEAK} stay Ready all the time")
        assert self.watcher is not None
        home = HOME_GPUS - RESERVE
        spent = self.until(
            f"{home} are home", lambda s: s.home == home and s.away == PEAK - home, timeout=240
        )
        # One slot stays free, so that the next replica finds a place, and the gate stays closed.
        time.sleep(5)
        self.check()
        last = self.watcher.last
        if last.home != home or last.is_open:
            raise StoryFailed(f"the drainer went on beyond its reserve: {last}")
        self.fact(f"{home} moved in {spent:.0f} s, each after its replacement was Ready; one GPU stays in reserve")
        left = sorted({i["offer"] for i in self.cloud.instances()})
        if left != ["l4-small"]:
            raise StoryFailed(f"the dearest had to go first, and {left} are left")
        self.fact("the three that are left are the cheapest")

    def night(self) -> None:
        self.heading(f"the night: {NIGHT} replicas")
        assert self.watcher is not None
        self.watcher.floor = NIGHT
        self._merge(
            f"/apis/policy/v1/namespaces/{self.world.namespace}/poddisruptionbudgets/inference",
            {"spec": {"minAvailable": NIGHT}},
        )
        self.scale(NIGHT)
        self.until("4 at home, none rented", lambda s: s.home == NIGHT and s.away == 0)
        wait_for(lambda: not self.cloud.instances(), "all machines are given back", timeout=30)
        self.fact("what was rented went first")

    def the_end(self) -> None:
        self.heading("everything is deleted")
        assert self.watcher is not None
        self.watcher.floor = 0
        self.world.clear()
        self.world.wait_clean()
        invoiced = sum(line["amountMicros"] for line in self.cloud.invoice())
        row = wait_for(self.closed_ledger, "the ledger is closed", timeout=30)
        if abs(row["micros"] - invoiced) >= 10_000:
            raise StoryFailed(f"the ledger says {row}, the invoice {invoiced} micro-dollars")
        moves = len(self.watcher.changes)
        self.fact(
            f"no machine is left; the bill is ${invoiced / 1e6:.4f}, and so says the ledger; "
            f"the gate changed {moves} times"
        )
        if moves != 2:
            raise StoryFailed(f"the gate changed {moves} times: {self.watcher.changes}")

    def closed_ledger(self) -> Any:
        """What the namespace has cost, once nothing of it runs any more."""
        daemon = self.world.daemon
        command = [BINARY, "cost", "--config", daemon.config_file, "--kubeconfig", daemon.kubeconfig]
        done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, timeout=60)
        rows = json.loads(done.stdout)["rows"]
        row = next((r for r in rows if r["name"] == self.world.namespace), None)
        return row if row is not None and row["running"] == 0 else None

    def tell(self, *, outage: float = 20) -> None:
        self.set_up()
        self.serve_at_home()
        self.training_takes_all()
        self.more_traffic()
        self.lose_one()
        self.cloud_away(outage)
        self.broken_image()
        self.training_ends()
        self.come_home()
        self.night()
        self.the_end()

    def picture(self) -> str:
        assert self.watcher is not None
        self.watcher.close()
        title = "Training takes the GPUs; inference moves out, and comes home"
        return draw(title, self.watcher.samples, self.marks)


@contextlib.contextmanager
def a_world() -> Iterator[World]:
    """A control plane and a world of its own; all of it ends with the block."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spw-")))
        cluster = stack.enter_context(Cluster())
        cluster.start(folder / "cluster")
        keeper = Keeper("story", folder / "w")
        stack.callback(keeper.close)
        world = World(cluster, cluster.spillway_kubeconfig(), keeper)
        stack.callback(world.discard)
        cloud = FakeCloud(keeper, offers=OFFERS, bootTime="2s").start()
        world.backends.append(FakeBackend(cloud, Gate.unix(cloud.socket, folder / "g.sock")))
        yield world


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", type=pathlib.Path, default=REPOSITORY / "build" / "story.svg")
    parser.add_argument("--pause", type=float, default=1.5, help="seconds to read after each fact")
    options = parser.parse_args()
    if not BINARY.exists():
        parser.error(f"{BINARY} does not exist: run `make build`")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    begin = time.monotonic()
    try:
        with a_world() as world:
            story = Story(world, say=lambda line: print(line, flush=True), pause=options.pause)
            try:
                story.tell()
            finally:
                if story.watcher is not None and story.watcher.samples:
                    options.picture.parent.mkdir(parents=True, exist_ok=True)
                    options.picture.write_text(story.picture())
    except KeyboardInterrupt:
        print("\ninterrupted; everything was taken down", file=sys.stderr)
        return 130
    except (RuntimeError, TimeoutError, OSError, AssertionError) as error:
        print(f"\nstory: failed: {error}", file=sys.stderr)
        return 1
    shown = os.path.relpath(options.picture)
    print(f"\nDone in {time.monotonic() - begin:.0f} s. The picture is {shown}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
