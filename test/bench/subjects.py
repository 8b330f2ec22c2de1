"""What is measured: bare loader, kwok, virtual-kubelet and Spillway, each on its own node."""

from __future__ import annotations

import http.client
import json
import pathlib
from typing import Any

import yaml

from test.cluster import Cluster, Keeper, binaries, wait_for
from test.cluster.cluster import REPOSITORY
from test.cluster.processes import Child

SPILLWAY = REPOSITORY / "build" / "release" / "spillway"
SPILLWAY_NAMESPACE = "spillway-system"


class Subject:
    """One program under test: how it is started, and when it is ready for pods."""

    name = ""
    title = ""
    user = ""  # in the audit log
    # It waits out a pod's grace although nothing runs, so pods of other rounds are forced away.
    slow_to_delete = False

    def __init__(self, cluster: Cluster, keeper: Keeper) -> None:
        self.cluster = cluster
        self.keeper = keeper
        self.node = f"bench-{self.name}"
        self.namespace = f"bench-{self.name}"
        self.child: Child | None = None

    # Life

    def start(self) -> None:
        """Starts the program and returns when its node is Ready."""
        self._ensure_namespace()
        self._before_start()
        self.launch()
        wait_for(self.is_ready, f"{self.title} has a Ready node", timeout=120, interval=0.02)

    def launch(self) -> None:
        """Starts the process alone, as a restart does."""
        log = self.keeper.directory / f"{self.name}.log"
        self.child = self.keeper.spawn(self.name, self._command(), log=log)

    def is_ready(self) -> bool:
        self._require().check_alive()
        status, node = self.cluster.api("GET", f"/api/v1/nodes/{self.node}")
        return status == 200 and _is_ready(node)

    def end_process(self, timeout: float = 30) -> None:
        """SIGTERM; node and pods stay."""
        child = self._require()
        child.terminate(timeout)
        self.keeper.forget(child)
        self.child = None

    def stop(self) -> None:
        """Ends the program and removes its node, and the lease, for which kwok would wait."""
        if self.child is not None:
            self.end_process()
        self.cluster.api("DELETE", f"/api/v1/nodes/{self.node}")
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        self.cluster.api("DELETE", f"{leases}/{self.node}")

    @property
    def pid(self) -> int:
        return self._require().pid

    # Parts

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _before_start(self) -> None:
        pass

    def _require(self) -> Child:
        if self.child is None:
            raise RuntimeError(f"{self.title} is not running")
        return self.child

    def _ensure_namespace(self) -> None:
        self.cluster.api("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait_for(lambda: self.cluster.api("GET", account)[0] == 200, account)

    def _make_node(self) -> None:
        self.cluster.api("POST", "/api/v1/nodes", {"metadata": {"name": self.node}})

    def _kubeconfig(self) -> pathlib.Path:
        """With all rights, under a name that the audit log can tell from the others."""
        certificate, key = self.cluster.issue_client_cert(
            self.name, common_name=self.user, organizations=["system:masters"]
        )
        path = self.keeper.directory / f"{self.name}.kubeconfig"
        server = {"server": self.cluster.server, "certificate-authority": str(self.cluster.ca)}
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bench", "cluster": server}],
            "users": [{"name": "bench", "user": user}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "current-context": "bench",
        }
        path.write_text(yaml.safe_dump(document))
        return path


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


class Bare(Subject):
    """No program at all: the loader creates each pod and writes its status twice, as any virtual
    node must at least. What the API server and the machine give, and nobody can beat by much.
    """

    name = "bare"
    title = "bare loader"
    user = "bench-bare"

    def start(self) -> None:
        self._ensure_namespace()
        self._make_node()


class Kwok(Subject):
    """kwok with its fast stages: a fake node that writes one status and remembers nothing."""

    name = "kwok"
    title = "kwok v0.8.0"
    user = "bench-kwok"

    def _before_start(self) -> None:
        self._make_node()

    def _command(self) -> list[str]:
        return [
            str(binaries.binary("kwok", "kwok")),
            f"--kubeconfig={self._kubeconfig()}",
            f"--config={binaries.binary('kwok', 'stages.yaml')}",
            f"--manage-single-node={self.node}",
            "--node-lease-duration-seconds=40",
        ]


class VirtualKubelet(Subject):
    """The virtual-kubelet library with its limits lifted (test/cluster/go/virtual-kubelet)."""

    name = "virtual-kubelet"
    title = "virtual-kubelet v1.14.1, tuned"
    user = "bench-virtual-kubelet"
    slow_to_delete = True

    def _command(self) -> list[str]:
        return [
            str(binaries.binary("virtual-kubelet", "virtual-kubelet")),
            f"--kubeconfig={self._kubeconfig()}",
            f"--nodename={self.node}",
            "--pods=20000",
        ]


class Spillway(Subject):
    """Spillway with the rights of config/deploy and the fake cloud inside its process, which boots
    at once and is never sold out. `own_cloud` moves the cloud into a process that outlives it.
    """

    name = "spillway"
    title = "Spillway"
    user = f"system:serviceaccount:{SPILLWAY_NAMESPACE}:spillway"

    def __init__(
        self,
        cluster: Cluster,
        keeper: Keeper,
        *,
        binary: pathlib.Path = SPILLWAY,
        own_cloud: bool = False,
    ) -> None:
        super().__init__(cluster, keeper)
        self._binary = binary
        self._own_cloud = own_cloud
        self._cloud: Child | None = None
        self._admin = 0

    def _before_start(self) -> None:
        directory = self.keeper.directory
        self._credentials = self.cluster.spillway_kubeconfig(SPILLWAY_NAMESPACE, name="bench")
        self._admin = self._admin or self.cluster.reserve_port()
        offer = {"id": "bench", "region": "here", "pricePerHour": 1}
        cloud: dict[str, Any] = {"bootTime": "0s", "offers": [offer]}
        provider: dict[str, Any] = {"mode": "inProcess", **cloud}
        if self._own_cloud:
            socket = directory / "cloud.sock"
            settings = directory / "cloud.json"
            settings.write_text(json.dumps(cloud))
            command = [self._binary, "fake-cloud", "--socket", socket, "--config", settings]
            self._cloud = self.keeper.spawn("fake-cloud", command, log=directory / "cloud.log")
            wait_for(socket.exists, "the fake cloud listens", timeout=10)
            provider = {"mode": "socket", "socket": str(socket)}
        capacity = {"cpu": 1000000, "memory": "1000Ti", "pods": 20000}
        config = {
            "apiVersion": "spillway.dev/v1",
            "installation": {"namespace": SPILLWAY_NAMESPACE},
            "nodes": [{"name": self.node, "capacity": capacity}],
            "providers": [{"name": "fake", "type": "fake", "config": provider}],
            "admin": {"port": self._admin},
        }
        self._config = directory / "spillway.yaml"
        self._config.write_text(yaml.safe_dump(config))

    def _command(self) -> list[str]:
        return [
            str(self._binary),
            "run",
            f"--config={self._config}",
            f"--kubeconfig={self._credentials}",
        ]

    def is_ready(self) -> bool:
        return super().is_ready() and self.is_serving()

    def is_serving(self) -> bool:
        """/readyz of this very process says yes."""
        try:
            return self._admin_get("/readyz")[0] == 200
        except OSError:
            return False

    def metrics(self) -> str:
        return self._admin_get("/metrics")[1]

    def _admin_get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._admin, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def stop(self) -> None:
        super().stop()
        if self._cloud is not None:
            self._cloud.terminate()
            self.keeper.forget(self._cloud)
            self._cloud = None
