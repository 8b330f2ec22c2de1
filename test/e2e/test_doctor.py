"""`spillway doctor` on a live cluster: nothing where all is well, and each fault that can be planted."""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import yaml

from test.cluster import Cluster, wait_for

from .conftest import Worlds
from .daemon import BINARY
from .home import GATE_TAINT, gate_config, patch
from .world import PROVIDER_TAINT, World, start

CSR = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
ALL = {"operator": "Exists"}
POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "maxNoOfPodsToEvictPerNode": 1,
    "profiles": [
        {
            "name": "home",
            "pluginConfig": [
                {
                    "name": "DefaultEvictor",
                    "args": {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}},
                }
            ],
            "plugins": {"deschedule": {"enabled": ["RemovePodsViolatingNodeTaints"]}},
        }
    ],
}


class Patient:
    """A cluster of its own in which all is well: two virtual nodes, a gate, and a daemon at work."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster = world.cluster
        self.ns = world.namespace

    def doctor(
        self,
        *words: str | pathlib.Path,
        output: str = "json",
        kubeconfig: pathlib.Path | None = None,
        change: Callable[[dict[str, Any]], None] | None = None,
    ) -> tuple[int, Any]:
        """Its exit code, and what it says. `change`: of the daemon's configuration."""
        config = copy.deepcopy(self.world.daemon.config)
        if change is not None:
            change(config)
        file = self.world.keeper.directory / "doctor.yaml"
        file.write_text(yaml.safe_dump(config))
        command = [BINARY, "doctor", "--config", file, "-o", output, *words]
        command += ["--kubeconfig", kubeconfig or self.cluster.kubeconfig]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if output == "table" or not done.stdout:
            return done.returncode, done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout)

    def findings(self, *words: str, **options: Any) -> tuple[int, list[tuple[str, str, str]]]:
        """The exit code, and (check, object, what) of all findings and checks that did not run."""
        code, report = self.doctor(*words, **options)
        assert isinstance(report, dict), report
        found = []
        for check in report["checks"]:
            if check["result"] == "not checked":
                found.append((check["check"], "not checked", check["note"]))
            for finding in check["findings"]:
                assert finding["why"], finding
                assert finding["fix"], finding
                found.append((check["check"], finding["object"], finding["what"]))
        return code, found

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        status, answer = self.cluster.api("POST", path, body)
        assert status == 201, answer
        return answer

    @contextlib.contextmanager
    def object(self, collection: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """An object that stands for the length of the block."""
        made = self.post(collection, body)
        path = f"{collection}/{made['metadata']['name']}"
        try:
            yield made
        finally:
            self.cluster.api("DELETE", f"{path}?propagationPolicy=Background&gracePeriodSeconds=0")
            wait_for(lambda: self.cluster.api("GET", path)[0] == 404, f"{path} is gone")

    @contextlib.contextmanager
    def workload(self, *, budgets: int = 1, **spec: Any) -> Iterator[None]:
        """A Deployment of one pod that may burst, as it should be but for `spec`; never scheduled."""
        labels = {"app": "api", **spec.pop("labels", {})}
        seconds = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
        tolerations = [
            {"key": PROVIDER_TAINT, "operator": "Exists"},
            {"key": "node.kubernetes.io/not-ready", **seconds},
            {"key": "node.kubernetes.io/unreachable", **seconds},
        ]
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
        pod = {
            "schedulerName": "nobody",
            "containers": [container],
            "tolerations": tolerations + spec.pop("more_tolerations", []),
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
            **spec,
        }
        template = {"metadata": {"labels": labels}, "spec": pod}
        selector = {"matchLabels": {"app": "api"}}
        deployment = {
            "metadata": {"name": "api"},
            "spec": {"replicas": 1, "selector": selector, "template": template},
        }
        with contextlib.ExitStack() as stack:
            for i in range(budgets):
                stack.enter_context(self.budget(f"api-{i}", maxUnavailable=1))
            path = f"/apis/apps/v1/namespaces/{self.ns}/deployments"
            stack.callback(lambda: wait_for(lambda: not self.world.pods(), "its pod is gone"))
            stack.enter_context(self.object(path, deployment))
            wait_for(lambda: self.world.pods("app=api"), "its pod is there")
            yield

    def budget(self, name: str, **spec: Any) -> contextlib.AbstractContextManager[Any]:
        body = {
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": "api"}}, **spec},
        }
        return self.object(f"/apis/policy/v1/namespaces/{self.ns}/poddisruptionbudgets", body)

    def policy(self, policy: Mapping[str, Any]) -> contextlib.AbstractContextManager[Any]:
        body = {"metadata": {"name": "descheduler"}, "data": {"policy.yaml": yaml.safe_dump(policy)}}
        return self.object(f"/api/v1/namespaces/{self.ns}/configmaps", body)

    def well(self) -> None:
        code, found = self.findings()
        assert (code, found) == (0, [])


@pytest.fixture(scope="module")
def patient(request: pytest.FixtureRequest, short_tmp: pathlib.Path) -> Iterator[Patient]:
    def no_engine():  # type: ignore[no-untyped-def]
        raise AssertionError("nothing here has an engine")

    with Cluster() as cluster:
        cluster.start(short_tmp / f"doctor-{time.monotonic_ns() % 100000}")
        worlds = Worlds(cluster, cluster.spillway_kubeconfig(), short_tmp, no_engine)
        world = worlds.bare("fake", profiles=[{}, {}])
        start(world, gate=gate_config(world, allowNoHome=True))
        wait_for(lambda: cluster.api("GET", world.gate_lease_path)[0] == 200, "the gate works")
        made = Patient(world)
        try:
            wait_for(lambda: made.findings()[0] == 0, "all is well", timeout=30)
        except TimeoutError:
            pytest.fail(f"the clean cluster is not well: {made.findings()}")
        yield made
        worlds.end(request.session.testsfailed > 0, "doctor")


@pytest.fixture(autouse=True)
def all_is_well(patient: Patient) -> None:
    """Before each test, so that what it finds is what it has planted."""
    patient.well()


def only(patient: Patient, check: str, code: int, *words: str, **options: Any) -> tuple[str, str]:
    """(object, what) of the only finding, which is of that check."""
    got, found = patient.findings(*words, **options)
    assert [name for name, _, _ in found] == [check], found
    assert got == code
    return found[0][1], found[0][2]


def test_a_healthy_cluster(patient: Patient) -> None:
    code, shown = patient.doctor(output="table")
    assert code == 0, shown
    rows = {line.split()[0]: line for line in shown.splitlines()}
    assert rows["rights"].split()[1] == "ok"
    assert "the daemon: " in rows["leases"]
    assert f"node {patient.world.node}: " in rows["leases"]
    assert rows["kueue-flavors"].split(maxsplit=2)[1:] == ["skipped", "Kueue is not installed"]
    with patient.workload(), patient.policy(POLICY):
        patient.well()


def test_help_fits_a_screen() -> None:
    done = subprocess.run([BINARY, "doctor", "--help"], capture_output=True, text=True, check=True)
    assert "Exit codes: 0 all is well, 1 warnings" in done.stdout
    assert len(done.stdout.splitlines()) < 25


# Pods


def test_a_workload_without_a_budget(patient: Patient) -> None:
    with patient.workload(budgets=0):
        where, _ = only(patient, "pdb-missing", 1)
    assert where == f"Deployment {patient.ns}/api"


@pytest.mark.parametrize(
    ("spec", "why"),
    [({"maxUnavailable": 0}, "maxUnavailable is 0"), ({"minAvailable": 1}, "minAvailable is 1 of 1")],
)
def test_a_budget_that_never_allows(patient: Patient, spec: dict[str, Any], why: str) -> None:
    with patient.workload(budgets=0), patient.budget("tight", **spec):
        where, what = only(patient, "pdb-blocks", 1)
    assert where == f"PodDisruptionBudget {patient.ns}/tight"
    assert why in what


def test_two_budgets_on_one_pod(patient: Patient) -> None:
    with patient.workload(budgets=2):
        _, what = only(patient, "pdb-overlap", 3)
    assert what.endswith("api-0, api-1")


@pytest.mark.parametrize(
    ("toleration", "what"),
    [({"key": GATE_TAINT, "operator": "Exists"}, GATE_TAINT), (ALL, "every taint")],
)
def test_a_pod_that_tolerates_the_gate(
    patient: Patient, toleration: dict[str, Any], what: str
) -> None:
    with patient.workload(more_tolerations=[toleration]):
        assert what in only(patient, "tolerates-gate", 1)[1]


def test_a_pod_with_the_default_tolerations(patient: Patient) -> None:
    with patient.workload(tolerations=[{"key": PROVIDER_TAINT, "operator": "Exists"}]):
        assert only(patient, "short-tolerations", 1)[1].endswith("after 300 s")


def test_a_gang(patient: Patient) -> None:
    with patient.workload(labels={"scheduling.x-k8s.io/pod-group": "llm"}):
        assert only(patient, "gangs", 3)[1].endswith("as group llm")


def test_training_that_may_leave_home(patient: Patient) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    with (
        patient.object(classes, {"metadata": {"name": "big"}, "value": 10000}),
        patient.workload(priorityClassName="big"),
    ):
        patient.well()
        only(patient, "training", 1, "--training-class", "big")


def test_a_quota_that_is_used_up(patient: Patient) -> None:
    path = f"/api/v1/namespaces/{patient.ns}/resourcequotas"
    body = {"metadata": {"name": "all"}, "spec": {"hard": {"requests.cpu": "150m"}}}
    with patient.workload(), patient.object(path, body):
        counted = lambda: patient.cluster.get(f"{path}/all").get("status", {}).get("used")  # noqa: E731
        wait_for(counted, "the quota is counted")
        where, what = only(patient, "resource-quota", 1)
    assert where == f"ResourceQuota {patient.ns}/all"
    assert "requests.cpu" in what


# Deschedulers


def test_a_policy_that_fights(patient: Patient) -> None:
    fights = copy.deepcopy(POLICY)
    fights["profiles"][0]["plugins"] = {"balance": {"enabled": ["RemoveDuplicates"]}}
    with patient.policy(fights):
        where, what = only(patient, "policy-fights", 3)
    assert where == f"ConfigMap {patient.ns}/descheduler, policy.yaml, profile home"
    assert what == f"RemoveDuplicates looks at node {patient.world.node}"


def test_a_policy_with_a_selector_for_less_than_two_nodes(patient: Patient) -> None:
    selector = f"kubernetes.io/hostname={patient.world.node}"
    with patient.policy({**POLICY, "nodeSelector": selector}):
        assert only(patient, "policy-nodes", 1)[1].endswith("leaves 1 Ready nodes")


def test_a_policy_that_protects_an_empty_dir(patient: Patient) -> None:
    protects = copy.deepcopy(POLICY)
    del protects["profiles"][0]["pluginConfig"]
    with patient.policy(protects):
        patient.well()
        with patient.workload():
            only(patient, "policy-local-storage", 1)


def test_a_policy_without_a_limit(patient: Patient) -> None:
    unbounded = {key: value for key, value in POLICY.items() if not key.startswith("maxNo")}
    with patient.policy(unbounded):
        only(patient, "policy-unbounded", 1)


# Nodes


def test_a_daemon_set_that_is_everywhere(patient: Patient) -> None:
    labels = {"app": "exporter"}
    spec = {"containers": [{"name": "main", "image": "x"}], "tolerations": [ALL]}
    body = {
        "metadata": {"name": "exporter"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    with patient.object(f"/apis/apps/v1/namespaces/{patient.ns}/daemonsets", body):
        where, _ = only(patient, "daemonsets", 1)
    wait_for(lambda: not patient.world.pods(), "its pods are gone", timeout=40)
    assert where == f"DaemonSet {patient.ns}/exporter"


def test_a_zone_label_on_one_node(patient: Patient) -> None:
    path = f"/api/v1/nodes/{patient.world.node}"
    zone = "topology.kubernetes.io/zone"
    patch(patient.world, path, {"metadata": {"labels": {zone: "dc1"}}})
    try:
        where, what = only(patient, "zone-labels", 1)
    finally:
        patch(patient.world, path, {"metadata": {"labels": {zone: None}}})
    assert where == "nodes"
    assert patient.world.node in what


def test_a_flavor_of_kueue_that_counts_our_node(patient: Patient) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta2", "served": True, "storage": True}
    names = {"plural": "resourceflavors", "kind": "ResourceFlavor"}
    crd = {
        "metadata": {
            "name": "resourceflavors.kueue.x-k8s.io",
            # The group is protected; a test has no approval.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": "kueue.x-k8s.io",
            "names": names,
            "scope": "Cluster",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    collection = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
    with patient.object(CRD, crd):
        wait_for(lambda: patient.cluster.api("GET", collection)[0] == 200, "the CRD is served")
        body = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ResourceFlavor",
            "metadata": {"name": "h100"},
            "spec": {"nodeLabels": {"type": "virtual-kubelet"}},
        }
        with patient.object(collection, body):
            assert only(patient, "kueue-flavors", 3)[0] == "ResourceFlavor h100"
    wait_for(lambda: patient.cluster.api("GET", collection)[0] == 404, "the group is gone")


def test_no_kube_state_metrics_beside_prometheus(patient: Patient) -> None:
    def change(config: dict[str, Any]) -> None:
        config["gate"]["prometheus"] = {"url": "http://127.0.0.1:9"}
        # The default queries know no selector.
        del config["gate"]["gates"][0]["homeSelector"]

    only(patient, "kube-state-metrics", 1, change=change)
    image = "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.15.0"
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": image}]}
    with patient.object(patient.world.pods_path(), {"metadata": {"name": "ksm"}, "spec": spec}):
        assert patient.findings(change=change) == (0, [])


# The daemon


def test_a_missing_right(patient: Patient) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/spillway"
    before = patient.cluster.get(path)["rules"]
    rules = [rule for rule in before if "serviceaccounts/token" not in rule["resources"]]
    assert len(rules) == len(before) - 1
    patch(patient.world, path, {"rules": rules})
    try:
        found = wait_for(lambda: patient.findings()[1], "the right is missed")
        only(patient, "rights", 3)
    finally:
        patch(patient.world, path, {"rules": before})
        wait_for(lambda: patient.findings()[0] == 0, "the right is back")
    expected = "may not create serviceaccounts/token"
    assert found == [("rights", "ServiceAccount spillway-system/spillway", expected)]


def test_another_account_has_no_rights(patient: Patient) -> None:
    code, found = patient.findings("--service-account", "default/default")
    assert code == 3
    assert {check for check, _, _ in found} == {"rights"}
    assert ("rights", "ServiceAccount default/default", "may not delete pods") in found


def test_a_node_as_the_daemon(patient: Patient) -> None:
    user = f"system:node:{patient.world.node}"
    _, found = patient.findings("--service-account", user)
    assert ("gate-identity", user, "is a node: it may not write taints") in found


def test_a_kubeconfig_of_a_node_says_so_and_what_it_may_not_read(patient: Patient) -> None:
    user = f"system:node:{patient.world.node}"
    certificate, key = patient.cluster.issue_client_cert(
        "a-node", common_name=user, organizations=["system:nodes"]
    )
    document = yaml.safe_load(patient.cluster.kubeconfig.read_text())
    document["users"][0]["user"] = {
        "client-certificate": str(certificate),
        "client-key": str(key),
    }
    file = patient.world.keeper.directory / "node.kubeconfig"
    file.write_text(yaml.safe_dump(document))
    code, found = patient.findings(kubeconfig=file)
    assert code == 1, found
    assert ("gate-identity", user) in {(check, where) for check, where, _ in found}
    unread = {check: note for check, where, note in found if where == "not checked"}
    # A node may ask what others may do.
    assert "rights" not in unread
    assert "forbidden" in unread["pdb-missing"]
    assert "forbidden" in unread["policy-fights"]


def test_a_certificate_that_nobody_approves(patient: Patient) -> None:
    def change(config: dict[str, Any]) -> None:
        config["kubeletApi"] = {"enabled": True, "certificate": {"source": "csr"}}

    assert patient.findings(change=change) == (0, [])
    directory = patient.world.keeper.directory
    subject = f"/O=system:nodes/CN=system:node:{patient.world.node}"
    request = subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-keyout", str(directory / "x.key"), "-subj", subject]
        + ["-addext", f"subjectAltName=DNS:{patient.world.node}"],
        capture_output=True,
        check=True,
    ).stdout
    body = {
        "metadata": {"name": f"spillway-{patient.world.installation}-planted"},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"],
        },
    }
    with patient.object(CSR, body) as made:
        where, what = only(patient, "certificates", 1, change=change)
    assert where == f"CertificateSigningRequest {made['metadata']['name']}"
    assert what == "nobody has approved it"


def test_a_clock_that_is_ahead(patient: Patient) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() + 60))
    lease = {
        "metadata": {"name": "ghost"},
        "spec": {"holderIdentity": "elsewhere", "leaseDurationSeconds": 40, "renewTime": now},
    }

    def change(config: dict[str, Any]) -> None:
        config["nodes"].append({"name": "ghost"})

    with patient.object(NODE_LEASES, lease):
        where, what = only(patient, "clock", 3, change=change)
    assert where == "the clock of elsewhere"
    assert what.endswith("s ahead of the API server's")


def test_a_daemon_that_has_ended(patient: Patient) -> None:
    code, _ = patient.world.daemon.sigterm()
    assert code == 0
    try:
        code, found = patient.findings()
    finally:
        patient.world.daemon.restart()
        wait_for(lambda: patient.findings()[0] == 0, "all is well again", timeout=40)
    assert code == 3
    expected = f"Lease spillway-system/spillway-{patient.world.installation}"
    assert ("leases", expected, "nobody holds it: the daemon has ended") in found
    assert {check for check, _, _ in found} == {"leases"}


def test_no_api_server(patient: Patient) -> None:
    document = yaml.safe_load(patient.cluster.kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    file = patient.world.keeper.directory / "away.kubeconfig"
    file.write_text(yaml.safe_dump(document))
    code, report = patient.doctor(kubeconfig=file)
    assert code == 2
    assert report["problem"].startswith("the API server cannot be asked: ")
    assert [check["check"] for check in report["checks"]] == ["providers"]


# Providers


@pytest.mark.parametrize(
    ("kind", "says"),
    [("unauthenticated", "does not accept our credentials"), ("unavailable", "cannot be asked")],
)
def test_a_provider_that_refuses(patient: Patient, kind: str, says: str) -> None:
    cloud = patient.world.backend.cloud
    cloud.fault("error", call="list_offers", kind=kind)
    try:
        where, what = only(patient, "providers", 3)
    finally:
        cloud.clear_faults()
    assert where == "provider fake"
    assert what.startswith(says)


def test_a_provider_whose_account_is_full(patient: Patient) -> None:
    world = patient.world
    world.backend.cloud.fault("error", call="create", kind="quota")
    seconds = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
    long = [{"key": f"node.kubernetes.io/{key}", **seconds} for key in ("not-ready", "unreachable")]
    uid = world.create_pod("full", tolerations=long)
    try:
        refused = lambda: {e["reason"] for e in world.events(uid)} >= {"QuotaExceeded"}  # noqa: E731
        wait_for(refused, "the event QuotaExceeded")
        where, _ = only(patient, "provider-quota", 1)
    finally:
        world.delete_pod("full")
        world.wait_gone("full")
        world.backend.cloud.clear_faults()
        patient.cluster.api("DELETE", f"/api/v1/namespaces/{patient.ns}/events")
    assert where == f"Pod {patient.ns}/full"
