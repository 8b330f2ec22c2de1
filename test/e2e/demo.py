#!/usr/bin/env python3
"""make demo: a real Deployment of real containers through a virtual node, step by step.

A real control plane and two private Docker engines run on this machine for a minute: `attic` is
cheap and has two GPUs, `cellar` is dear and has two more (there is no GPU here: containers are only
told which one is theirs). Ends with exit code 1 and one clear line if a step does not come true,
and takes everything down again in any case.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from test.cluster import Cluster, ClusterError, Engine, Keeper, wait_for
from test.cluster.cluster import REPOSITORY
from test.cluster.metrics_server import MetricsServer
from test.cluster.processes import Child
from test.e2e.demo_objects import APP, NODE, daemon_config, deployment

PODS = "/api/v1/namespaces/default/pods"
SCALE = f"/apis/apps/v1/namespaces/default/deployments/{APP}/scale"
ADDRESSES = "state.spillway.dev/addresses"


def instances(engine: Engine) -> int:
    """Each has one sandbox."""
    return len(engine.containers("spillway.dev/role=sandbox"))


class DemoFailed(RuntimeError):
    """A step did not come true; the message says which and what was seen instead."""


class Demo:
    """The steps, and what they share. Prints one numbered heading per step, facts below it."""

    def __init__(self, keeper: Keeper, binary: pathlib.Path) -> None:
        self._keeper = keeper
        self._binary = binary
        self._begin = time.monotonic()
        self._step = 0
        self.cluster = Cluster()
        self.metrics_server = MetricsServer(self.cluster)
        self.engines: dict[str, Engine] = {}
        self.daemon: Child | None = None

    # What people read

    def heading(self, text: str) -> None:
        self._step += 1
        spent = time.monotonic() - self._begin
        print(f"\n{self._step:2}. {text:<72} {spent:5.1f} s", flush=True)

    def fact(self, text: str) -> None:
        for line in text.splitlines():
            print(f"      {line}", flush=True)

    def table(self, rows: list[list[str]]) -> None:
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            self.fact("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())

    # What can be seen

    def pods(self) -> list[dict[str, Any]]:
        """Pods of the Deployment that are not on their way out, by name."""
        items = self.cluster.get(f"{PODS}?labelSelector=app%3D{APP}")["items"]
        living = [p for p in items if "deletionTimestamp" not in p["metadata"]]
        return sorted(living, key=lambda p: p["metadata"]["name"])

    def running(self) -> list[dict[str, Any]]:
        return [p for p in self.pods() if is_running(p)]

    def until(self, what: str, condition: Callable[[], Any], timeout: float = 40) -> Any:
        try:
            return wait_for(condition, what, timeout=timeout)
        except TimeoutError as error:
            raise DemoFailed(f"{error}\n{self.last_words()}") from None

    def last_words(self) -> str:
        with contextlib.suppress(Exception):
            pods = self.cluster.kubectl("get", "pods", "-o", "wide")
            events = self.cluster.kubectl("get", "events", "--sort-by=.lastTimestamp")
            log = self.daemon.log_tail(15) if self.daemon else "(no daemon)"
            return f"{pods}\n{events}\nthe end of the daemon's log:\n{log}"
        return ""

    def bought(self, pod: dict[str, Any]) -> str:
        """Which offer was taken for a pod and at what price: the event's words."""
        uid = pod["metadata"]["uid"]
        query = f"?fieldSelector=involvedObject.uid%3D{uid},reason%3DPlaced"
        found = self.cluster.get(f"/api/v1/namespaces/default/events{query}")["items"]
        return found[0]["message"].partition(";")[0] if found else ""

    def show_pods(self) -> None:
        rows = [["POD", "PHASE", "ADDRESS", "WHAT WAS CHOSEN"]]
        for pod in self.running():
            words = self.until(f"an event tells what was bought for {name_of(pod)}",
                               lambda p=pod: self.bought(p), 10)
            rows.append([name_of(pod), pod["status"]["phase"], address_of(pod), words])
        self.table(rows[:1] + sorted(rows[1:], key=lambda row: row[3]))

    def containers(self) -> dict[str, str]:
        """Running containers of all engines: id -> when it was started."""
        found = {}
        for engine in self.engines.values():
            for container in engine.containers():
                if container["State"] != "running":
                    continue  # what only keeps an instance's volumes
                path = f"/containers/{container['Id']}/json"
                status, details = engine.api("GET", path)
                if status == 200:  # else it went between the two questions
                    found[container["Id"]] = details["State"]["StartedAt"]
        return found

    # The steps

    def start_world(self, folder: pathlib.Path) -> None:
        self.heading("A Kubernetes control plane and two Docker engines")
        self.cluster.start(folder / "c")
        version = self.cluster.get("/version")["gitVersion"]
        for name in ("attic", "cellar"):
            self.engines[name] = Engine().start(folder / name[0])
            self.engines[name].import_busybox_image("busybox:demo")
        docker = self.engines["attic"].api("GET", "/version")[1]["Version"]
        self.metrics_server.start(folder / "m")
        self.fact(f"Kubernetes {version}: etcd, API server, scheduler, controllers; no node yet")
        self.fact(f"Docker {docker}, twice:")
        self.fact("  attic   2 x RTX-4090  $0.34 per GPU and hour")
        self.fact("  cellar  2 x H100      $1.90 per GPU and hour")

    def start_daemon(self, *, again: bool = False) -> None:
        if not again:
            self._credentials = self.cluster.spillway_kubeconfig()
            config = daemon_config(self.engines, self.cluster.reserve_port())
            self._config = self._keeper.directory / "spillway.yaml"
            self._config.write_text(yaml.safe_dump(config, sort_keys=False))
        command = [self._binary, "run", "--config", self._config, "--kubeconfig", self._credentials]
        log = self._keeper.directory / "spillway.log"
        self.daemon = self._keeper.spawn("spillway", command, log=log)

    def node_appears(self) -> None:
        self.heading("spillway run: a node that no machine stands behind")
        self.start_daemon()

        def ready() -> bool:
            self.daemon.check_alive()
            status, node = self.cluster.api("GET", f"/api/v1/nodes/{NODE}")
            return status == 200 and any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in node["status"].get("conditions", ())
            )

        self.until("the node is Ready", ready)
        self.fact(self.cluster.kubectl("get", "node", NODE))
        taints = self.cluster.get(f"/api/v1/nodes/{NODE}")["spec"].get("taints", ())
        self.fact("only pods that tolerate its taint come: "
                  + ", ".join(f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in taints))

    def deploy(self) -> None:
        self.heading("A Deployment of 3 replicas, 1 GPU each, through the real scheduler")
        self.cluster.apply(deployment(3))
        self.until("3 pods are Running and Ready", lambda: len(self.running()) == 3)
        self.show_pods()
        self.fact("the cheap host has two GPUs, so the third pod went to the dear one")
        hosts = [instances(engine) for engine in self.engines.values()]
        if hosts != [2, 1]:
            raise DemoFailed(f"expected 2 and 1 instances on attic and cellar, found {hosts}")

    def ask(self) -> None:
        self.heading("curl: the containers answer")
        for pod in self.running():
            self.fact(f"$ curl {address_of(pod)}")
            answer = self.until(f"{name_of(pod)} answers", lambda p=pod: curl(address_of(p)), 10)
            if name_of(pod) not in answer:
                raise DemoFailed(f"{address_of(pod)} answered {answer!r}, not {name_of(pod)}")
            self.fact(f"  {answer}")

    def approve_certificate(self) -> None:
        """What an administrator does once for a node that asks for its serving certificate."""
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

        def pending() -> list[str]:
            items = self.cluster.get(path)["items"]
            return [name_of(i) for i in items if not i["status"].get("conditions")]

        names = self.until("the node asks for its certificate", pending)
        self.fact(f"$ kubectl certificate approve {' '.join(names)}")
        self.cluster.kubectl("certificate", "approve", *names)

    def look_inside(self) -> None:
        self.heading("kubectl logs, exec and top: as on any node")
        self.approve_certificate()
        name = name_of(self.running()[0])
        for words in (("logs", name), ("exec", name, "--", "sh", "-c", "hostname; ls /www")):
            self.fact(f"$ kubectl {' '.join(words)}")
            answer = self.until(f"kubectl {words[0]} answers", lambda w=words: self._try(*w))
            if name not in answer:
                raise DemoFailed(f"kubectl {words[0]} answered {answer!r}, and {name} is not in it")
            self.fact("\n".join(f"  {line}" for line in answer.splitlines()))
        self.fact("$ kubectl top pod   # the real metrics-server asks every ten seconds")
        self.fact(self.until("metrics-server knows 3 pods", lambda: self._top(3), 60))

    def _try(self, *words: str) -> str:
        try:
            return self.cluster.kubectl(*words)
        except ClusterError:
            return ""

    def _top(self, pods: int) -> str:
        table = self._try("top", "pod")
        return table if len(table.splitlines()) == pods + 1 else ""

    def scale(self) -> None:
        self.heading("Scale up to 4, and down to 1")
        self._scale_to(4)
        self.until("4 pods are Running and Ready", lambda: len(self.running()) == 4)
        self.fact(f"4 Running, {self._usage()}")
        self._scale_to(1)
        self.until("one pod and one instance are left", lambda: len(self.containers()) == 2)
        self.until("the API has one pod",
                   lambda: len(self.cluster.get(f"{PODS}?labelSelector=app%3D{APP}")["items"]) == 1)
        self.fact(f"1 Running, {self._usage()}")
        self._scale_to(2)
        self.until("2 pods are Running and Ready", lambda: len(self.running()) == 2)

    def _scale_to(self, replicas: int) -> None:
        status, answer = self.cluster.api(
            "PATCH", SCALE, {"spec": {"replicas": replicas}},
            content_type="application/merge-patch+json",
        )
        if status != 200:
            raise DemoFailed(f"scaling to {replicas}: {status} {answer}")

    def _usage(self) -> str:
        counts = {name: instances(engine) for name, engine in self.engines.items()}
        return "instances: " + ", ".join(f"{n} on {name}" for name, n in counts.items())

    def lose_one(self) -> None:
        self.heading("An instance is removed behind Spillway's back")
        victim = self.running()[0]
        engine, ids = self._instance_of(victim)
        self.fact(f"$ docker rm --force   # all of {name_of(victim)}")
        engine.docker("rm", "--force", *ids)
        begin = time.monotonic()

        def replaced() -> bool:
            names = {name_of(p) for p in self.running()}
            return name_of(victim) not in names and len(names) == 2

        self.until("the lost pod is replaced", replaced, 60)
        status, old = self.cluster.api("GET", f"{PODS}/{name_of(victim)}")
        if status == 200:
            reason, message = old["status"].get("reason"), old["status"].get("message")
            self.fact(f"{name_of(victim)}: {old['status']['phase']}, {reason}: {message}")
            if old["status"]["phase"] != "Failed":
                raise DemoFailed(f"{name_of(victim)} is {old['status']['phase']}, not Failed")
        self.fact(f"its ReplicaSet's new pod runs {time.monotonic() - begin:.0f} s later")
        self.show_pods()

    def _instance_of(self, pod: dict[str, Any]) -> tuple[Engine, list[str]]:
        running = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        for engine in self.engines.values():
            by_tag: dict[str, list[str]] = {}
            mine = ""
            for container in engine.containers():
                tag = next((v for v in container["Labels"].values() if v.startswith("spw-")), "")
                by_tag.setdefault(tag, []).append(container["Id"])
                if container["Id"] == running:
                    mine = tag
            if mine:
                return engine, by_tag[mine]
        raise DemoFailed(f"no engine has container {running} of {name_of(pod)}")

    def crash_and_adopt(self) -> None:
        self.heading("kill -9 of the daemon, and another start")
        before = self.containers()
        names = {name_of(p) for p in self.running()}
        self.daemon.kill()
        self._keeper.forget(self.daemon)
        self.fact(f"killed; {len(before)} containers go on without it")
        begin = time.monotonic()
        self.start_daemon(again=True)
        # A scale-up is served only by a daemon that has taken over.
        self._scale_to(3)
        self.until("the new daemon runs a third pod", lambda: len(self.running()) == 3, 60)
        after = self.containers()
        if any(after.get(container) != started for container, started in before.items()):
            raise DemoFailed(f"containers were restarted or lost: {before} became {after}")
        if not names <= {name_of(p) for p in self.running()}:
            raise DemoFailed("a pod was replaced although its container never stopped")
        self.fact(f"adopted after {time.monotonic() - begin:.1f} s, with a third pod on top:")
        self.fact(f"the {len(before)} containers are the same, none was restarted")

    def clean_up(self) -> None:
        self.heading("kubectl delete deployment: nothing may be left")
        self.cluster.kubectl("delete", "deployment", APP, "--wait=false")
        self.until("all pods are gone from the API",
                   lambda: not self.cluster.get(f"{PODS}?labelSelector=app%3D{APP}")["items"])
        for name, engine in self.engines.items():
            left = engine.leftovers()
            if any(left.values()):
                raise DemoFailed(f"{name} still has {json.dumps(left)}")
            self.fact(f"{name:<7} " + ", ".join(f"{len(v)} {what}" for what, v in left.items()))
        self.daemon.send_signal(signal.SIGTERM)
        if not self.daemon.wait(10) or self.daemon.returncode != 0:
            raise DemoFailed(f"the daemon did not end well: exit code {self.daemon.returncode}")
        self.fact("the daemon ends on SIGTERM with exit code 0; its node stays for the next start")

    def stop(self) -> None:
        for engine in self.engines.values():
            engine.stop()
        self.metrics_server.stop()
        self.cluster.stop()


def name_of(pod: dict[str, Any]) -> str:
    return pod["metadata"]["name"]


def is_running(pod: dict[str, Any]) -> bool:
    status = pod["status"]
    return status.get("phase") == "Running" and any(
        c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ())
    )


def address_of(pod: dict[str, Any]) -> str:
    """Where port 8080 of a pod is published."""
    text = pod["metadata"].get("annotations", {}).get(ADDRESSES, "{}")
    return json.loads(text).get("8080", "-")


def curl(address: str) -> str:
    done = subprocess.run(
        ["curl", "--silent", "--fail", "--noproxy", "*", "--max-time", "3", f"http://{address}/"],
        capture_output=True, text=True,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


@contextlib.contextmanager
def everything_ends(binary: pathlib.Path) -> Iterator[tuple[Demo, pathlib.Path]]:
    """A demo in a folder of its own; all of it is taken down on the way out, also by Ctrl-C."""
    # Unix sockets need short paths.
    keeper = Keeper("demo", pathlib.Path(tempfile.mkdtemp(prefix="spw-", dir="/tmp")))
    demo = Demo(keeper, binary)
    try:
        yield demo, keeper.directory
    finally:
        # A second Ctrl-C would leave things behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if demo.daemon is not None and demo.daemon.alive():
            demo.daemon.terminate()
        demo.stop()
        keeper.close()


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = REPOSITORY / "build" / "release" / "spillway"
    parser.add_argument("--binary", type=pathlib.Path, default=default, help="the spillway to run")
    binary = parser.parse_args().binary.absolute()
    if not binary.exists():
        parser.error(f"{binary} does not exist: run `make build`")
    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    begin = time.monotonic()
    try:
        with everything_ends(binary) as (demo, folder):
            demo.start_world(folder)
            demo.node_appears()
            demo.deploy()
            demo.ask()
            demo.look_inside()
            demo.scale()
            demo.lose_one()
            demo.crash_and_adopt()
            demo.clean_up()
    except KeyboardInterrupt:
        print("\ninterrupted; everything was taken down", file=sys.stderr)
        return 130
    except (RuntimeError, TimeoutError, OSError) as error:
        print(f"\ndemo: failed: {error}", file=sys.stderr)
        return 1
    print(f"\nDone in {time.monotonic() - begin:.0f} s. Control plane and engines are gone again.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
