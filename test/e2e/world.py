"""One test's world: a node, a namespace, a provider, gates before both servers, and the daemon."""

from __future__ import annotations

import json
import pathlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import yaml

from test.cluster import Cluster, Gate, Keeper, matching, wait_for
from test.cluster.gate import Match

from .backends import IMAGE, Backend, Workload, tag_part
from .daemon import TAKE_OVER, Daemon, make_config, node_profile

PROVIDER_TAINT = "virtual-kubelet.io/provider"
STATE = "state.spillway.dev/placement"
ADDRESSES = "state.spillway.dev/addresses"


def condition(item: Mapping[str, Any], kind: str) -> str:
    """The status of a condition of a pod or node; empty without it."""
    found = (c for c in item["status"].get("conditions", ()) if c["type"] == kind)
    return next((c["status"] for c in found), "")


def phase(pod: Mapping[str, Any] | None) -> str:
    return "gone" if pod is None else pod["status"].get("phase", "")


def is_ready(pod: Mapping[str, Any] | None) -> bool:
    return pod is not None and phase(pod) == "Running" and condition(pod, "Ready") == "True"


def container_state(pod: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(waiting|running|terminated, its fields) of the pod's first container; ("", {}) without."""
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    state = statuses[0]["state"]
    return next(iter(state.items()), ("", {}))


class World:
    """Made by the fixture `make_world`. Ends in finish(), which demands that nothing is left."""

    def __init__(
        self,
        cluster: Cluster,
        rights: pathlib.Path,
        keeper: Keeper,
        *,
        profile: Mapping[str, Any] | None = None,
        profiles: Sequence[Mapping[str, Any]] = (),
        installation: str = "spillway",
    ) -> None:
        self.id = uuid.uuid4().hex[:6]
        self.cluster = cluster
        self.keeper = keeper
        self.namespace = f"e2e-{self.id}"
        self.profiles = [
            node_profile(f"vn-{self.id}-{i}", **more)
            for i, more in enumerate(profiles or [profile or {}])
        ]
        self.nodes = [entry["name"] for entry in self.profiles]
        self.node = self.nodes[0]
        self.installation = installation
        self.api = Gate.tls(cluster)
        self.backends: list[Backend] = []
        self.daemons: list[Daemon] = []
        self.on_close: list[Callable[[], Any]] = []
        self._rights = rights
        body = {"metadata": {"name": self.namespace}}
        status, answer = cluster.api("POST", "/api/v1/namespaces", body)
        assert status == 201, answer
        self._wait_for_service_account()
        if installation != "spillway":
            self._allow_lease()

    def _allow_lease(self) -> None:
        """The line that rbac.yaml says another name of the installation needs."""
        name = f"spillway-{self.installation}"
        base = "/apis/rbac.authorization.k8s.io/v1/namespaces/spillway-system"
        rule = {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [name],
            "verbs": ["get", "update"],
        }
        role = {"metadata": {"name": name}, "rules": [rule]}
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": "spillway", "namespace": "spillway-system"}
            ],
        }
        for path, body in (("roles", role), ("rolebindings", binding)):
            status, answer = self.cluster.api("POST", f"{base}/{path}", body)
            assert status in (201, 409), answer

    def _wait_for_service_account(self) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        wait_for(lambda: self.cluster.api("GET", path)[0] == 200, "the default ServiceAccount")

    # The daemon

    @property
    def lease_path(self) -> str:
        """The installation's Lease."""
        leases = "/apis/coordination.k8s.io/v1/namespaces/spillway-system/leases"
        return f"{leases}/spillway-{self.installation}"

    @property
    def gate_lease_path(self) -> str:
        """That of its gates."""
        return self.lease_path.replace("/leases/spillway-", "/leases/spillway-gate-")

    @property
    def backend(self) -> Backend:
        return self.backends[0]

    @property
    def daemon(self) -> Daemon:
        return self.daemons[0]

    def kubeconfig(self, server: str, name: str = "daemon") -> pathlib.Path:
        """A kubeconfig with the daemon's rights, for that server."""
        document = yaml.safe_load(self._rights.read_text())
        document["clusters"][0]["cluster"]["server"] = server
        path = self.keeper.directory / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(document))
        path.chmod(0o600)
        return path

    def config(self, *, port: int, **options: Any) -> dict[str, Any]:
        providers = [backend.provider() for backend in self.backends]
        return make_config(self.installation, self.profiles, providers, admin_port=port, **options)

    def add_daemon(
        self,
        name: str = "daemon",
        *,
        command: str = "run",
        arguments: Sequence[str] = (),
        **options: Any,
    ) -> Daemon:
        """A daemon that is not yet started. Options as in make_config, and of its command line."""
        config = self.config(port=self.keeper.reserve_port(), **options)
        access = self.kubeconfig(self.api.url)
        daemon = Daemon(self.keeper, name, config, access, command=command, arguments=arguments)
        self.daemons.append(daemon)
        return daemon

    def taints(self, node: str) -> list[str]:
        """Keys of the node's taints."""
        found = self.cluster.get(f"/api/v1/nodes/{node}")
        return [taint["key"] for taint in found["spec"].get("taints", ())]

    # Pods

    def pods_path(self, name: str = "", namespace: str = "") -> str:
        path = f"/api/v1/namespaces/{namespace or self.namespace}/pods"
        return f"{path}/{name}" if name else path

    def pod_spec(
        self,
        workload: Workload | None = None,
        *,
        container: Mapping[str, Any] | None = None,
        scheduled: bool = False,
        **spec: Any,
    ) -> dict[str, Any]:
        """A PodSpec for the world's node: bound to it, or (scheduled) led to it."""
        work = workload or self.backend.workload()
        bare: dict[str, Any] = {
            "terminationGracePeriodSeconds": 2,
            "containers": [{"name": "main", "image": IMAGE, **work.container, **(container or {})}],
        }
        if scheduled:
            bare["tolerations"] = [{"key": PROVIDER_TAINT, "operator": "Exists"}]
            bare["nodeSelector"] = {"kubernetes.io/hostname": self.node}
        else:
            bare["nodeName"] = self.node
        return {**bare, **spec}

    def create_pod(
        self,
        name: str,
        workload: Workload | None = None,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
        container: Mapping[str, Any] | None = None,
        scheduled: bool = False,
        **spec: Any,
    ) -> str:
        """Creates a pod and returns its UID."""
        work = workload or self.backend.workload()
        metadata = {
            "name": name,
            "labels": dict(labels or {}),
            "annotations": {**work.annotations, **(annotations or {})},
        }
        body = {
            "metadata": metadata,
            "spec": self.pod_spec(work, container=container, scheduled=scheduled, **spec),
        }
        status, answer = self.cluster.api("POST", self.pods_path(namespace=namespace), body)
        assert status == 201, answer
        return answer["metadata"]["uid"]

    def pod(self, name: str, namespace: str = "") -> dict[str, Any] | None:
        status, answer = self.cluster.api("GET", self.pods_path(name, namespace))
        assert status in (200, 404), answer
        return answer if status == 200 else None

    def pods(self, selector: str = "", namespace: str = "") -> list[dict[str, Any]]:
        query = f"?labelSelector={selector}" if selector else ""
        return self.cluster.get(self.pods_path(namespace=namespace) + query)["items"]

    def wait_pod(
        self,
        name: str,
        holds: Callable[[dict[str, Any] | None], Any],
        what: str,
        timeout: float = 30.0,
        namespace: str = "",
    ) -> Any:
        """Waits until `holds` of the pod (None: it is gone); returns the pod."""
        last: dict[str, Any] | None = None

        def look() -> bool:
            nonlocal last
            last = self.pod(name, namespace)
            return bool(holds(last))

        try:
            wait_for(look, f"pod {name} is {what}", timeout=timeout, interval=0.1)
        except TimeoutError as error:
            shown = "gone" if last is None else json.dumps(last["status"])
            raise TimeoutError(f"{error}; it is: {shown}; {self.records(name)}") from None
        return last

    def records(self, name: str) -> str:
        """What the daemons think of a pod, for messages."""
        found = []
        for daemon in self.daemons:
            if daemon.running:
                status, text = daemon.admin("/debug/pods")
                pods = json.loads(text) if status == 200 else []
                found += [f"{daemon.name}: {p}" for p in pods if p["name"] == name]
        return "; ".join(found) or "no daemon has a record of it"

    def wait_ready(self, *names: str, timeout: float = 30.0, namespace: str = "") -> dict[str, Any]:
        """Waits until the pods are Running and Ready; returns the last one."""
        pod: dict[str, Any] = {}
        for name in names:
            pod = self.wait_pod(name, is_ready, "Running and Ready", timeout, namespace)
        return pod

    def wait_phase(self, name: str, wanted: str, timeout: float = 30.0) -> dict[str, Any]:
        return self.wait_pod(name, lambda pod: phase(pod) == wanted, wanted, timeout)

    def wait_gone(self, *names: str, timeout: float = 40.0, namespace: str = "") -> None:
        for name in names:
            self.wait_pod(name, lambda pod: pod is None, "gone", timeout, namespace)

    def delete_pod(self, name: str, grace: int | None = None, namespace: str = "") -> None:
        query = "" if grace is None else f"?gracePeriodSeconds={grace}"
        status, answer = self.cluster.api("DELETE", self.pods_path(name, namespace) + query)
        assert status in (200, 202), answer

    def events(self, uid: str, namespace: str = "") -> list[dict[str, Any]]:
        """The daemon's events about an object."""
        where = namespace or self.namespace
        items = self.cluster.get(f"/api/v1/namespaces/{where}/events?limit=500")["items"]
        ours = (e for e in items if e["involvedObject"].get("uid") == uid)
        return [e for e in ours if e.get("reportingComponent") == "spillway"]

    def state_of(self, name: str) -> dict[str, Any]:
        """What the daemon noted on a pod about its placement."""
        pod = self.pod(name)
        assert pod is not None
        return json.loads(pod["metadata"].get("annotations", {}).get(STATE, "{}"))

    # Steps of a pod's life, as the API gate sees them

    def status_patch(self, name: str, *, body: str | None = None, where: Any = None) -> Match:
        path = self.pods_path(name) + "/status"
        return matching(verb="patch", resource="pods/status", path=path, body=body, where=where)

    def pod_delete(self, name: str) -> Match:
        return matching(verb="delete", resource="pods", path=self.pods_path(name))

    def writes(self, name: str = "*") -> int:
        """How many status PATCHes of the pod the gate has let through."""
        path = self.pods_path(name) + "/status"
        seen = self.api.requests(lambda s: s.resource == "pods/status" and s.verb == "patch")
        return sum(name == "*" or s.path == path for s in seen)

    # What must hold

    def tags(self) -> list[str]:
        return [tag for backend in self.backends for tag in backend.tags()]

    def assert_one_instance_each(self, *uids: str) -> None:
        """Exactly these pods have an instance, exactly one each."""
        tags = sorted(tag.split("-")[2] for tag in self.tags())
        assert tags == sorted(tag_part(uid) for uid in uids), self.tags()

    def assert_made_once(self, uids: Iterable[str]) -> None:
        """Never in their lives did these pods have a second instance."""
        for uid in uids:
            made = [backend.ever_made(uid) for backend in self.backends]
            assert sum(made) == 1, f"{made} instances were made for pod {uid}"

    def wait_clean(self, timeout: float = 30.0) -> None:
        """No instance of ours exists any more."""
        try:
            wait_for(lambda: not self.tags(), "no instance is left", timeout=timeout, interval=0.1)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; left are {self.tags()}") from None

    # The end

    def clear(self, timeout: float = 60.0) -> None:
        """Deletes all that tests have put into the namespace, and waits until it is gone."""
        for kind in ("apps/v1/{}/deployments", "apps/v1/{}/replicasets", "batch/v1/{}/jobs"):
            path = "/apis/" + kind.format(f"namespaces/{self.namespace}")
            if self.cluster.get(path + "?limit=1")["items"]:
                self.cluster.api("DELETE", path + "?propagationPolicy=Background")
        deadline = time.monotonic() + timeout
        while True:
            names = [pod["metadata"]["name"] for pod in self.pods()]
            if not names:
                break
            assert time.monotonic() < deadline, f"pods stay: {names}, {self.records(names[0])}"
            self.cluster.api("DELETE", self.pods_path())
            time.sleep(0.2)
        self.wait_clean()
        for backend in self.backends:
            wait_for(lambda: not backend.leftovers(), f"nothing is left at {backend.kind}")

    def finish(self) -> None:
        """The proper end of a test: all pods go, and with them every instance."""
        self.api.clear()
        for backend in self.backends:
            backend.gate.clear()
        if self.pods() or self.tags():
            if not any(daemon.running for daemon in self.daemons):
                self.daemon.restart()
            self.clear()
        for daemon in self.daemons:
            if daemon.running:
                code, spent = daemon.sigterm()
                assert code == 0, f"{daemon.name} ended with {code} after {spent:.1f} s"
        assert [left for backend in self.backends for left in backend.leftovers()] == []
        errors = self.api.errors + [e for b in self.backends for e in b.gate.errors]
        assert not errors, "a rule of a gate threw:\n" + "\n".join(errors)

    def discard(self) -> None:
        """Takes everything away, whatever its state."""
        for daemon in self.daemons:
            if daemon.running:
                daemon.sigcont()
                daemon.kill9()
        for path in (self.lease_path, self.gate_lease_path):
            self.cluster.api("DELETE", path)
        for pod in self.pods():
            path = self.pods_path(pod["metadata"]["name"])
            self.cluster.api("DELETE", f"{path}?gracePeriodSeconds=0")
        for node in self.nodes:
            self.cluster.api("DELETE", f"/api/v1/nodes/{node}")
        self.cluster.api("DELETE", f"/api/v1/namespaces/{self.namespace}")
        for backend in self.backends:
            for tag in backend.tags():
                backend.remove(tag)
            backend.close()
            backend.gate.close()
        self.api.close()
        for close in self.on_close:
            close()
        self.keeper.close()


def start(world: World, timeout: float = TAKE_OVER, **options: Any) -> World:
    """Adds the world's first daemon and returns once it is ready."""
    world.add_daemon(**options).start().wait_ready(timeout)
    for name in world.nodes:
        # Every new node has this taint until the controllers have seen its status.
        wait_for(
            lambda: "node.kubernetes.io/not-ready" not in world.taints(name),
            f"node {name} is seen to be ready",
        )
    return world
